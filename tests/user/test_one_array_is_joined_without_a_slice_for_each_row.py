import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp

SHAPES = [(3,), (1,), (3, 2), (3, 2, 4), (1, 2, 4), (3, 2, 4, 5), (3, 0, 2)]
CALLS = [
    *(("concatenate", {"axis": d}) for d in (0, 1, -1, None)),
    *(("stack", {"axis": d}) for d in (0, 1, -1)),
    *((name, {}) for name in ("vstack", "hstack", "dstack", "column_stack")),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("name", "options"), CALLS, ids=str)
def test_an_array_gives_what_the_list_of_its_rows_gives_numpy(name, options, shape):
    a = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    ours = getattr(fnp, name)
    try:
        expected = getattr(np, name)(list(a), **options)
    except ValueError:
        with pytest.raises(ft.errors.ShapeError):
            ours(fnp.asarray(a), **options)
        return
    for given in (a, fnp.asarray(a)):
        result = ours(given, **options)
        assert result.shape == expected.shape
        assert np.array_equal(result, expected)


@pytest.mark.parametrize(("name", "options"), CALLS, ids=str)
def test_the_program_does_not_grow_with_the_number_of_rows(name, options):
    sizes = [
        len(ft.make_jaxpr(lambda x: getattr(fnp, name)(x, **options))(fnp.ones((n, 2, 3))).equations) for n in (2, 40)
    ]
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("name", ["concatenate", "stack", "vstack", "hstack", "dstack", "column_stack"])
def test_no_rows_are_no_arrays(name):
    with pytest.raises(ft.errors.ShapeError, match="no arrays"):
        getattr(fnp, name)(fnp.ones((0, 2, 3)))


def test_the_dtype_is_converted_and_gradients_pass():
    x = np.arange(12, dtype="float32").reshape(3, 2, 2)
    assert fnp.concatenate(x, 1, dtype="bfloat16").dtype == "bfloat16"
    assert fnp.stack(x, dtype="int32").dtype == "int32"
    weights = np.random.default_rng(0).normal(size=(2, 6)).astype("float32")

    def total(x: ft.Array) -> ft.Array:
        return (fnp.hstack(x) * weights).sum()

    gradient = ft.grad(total)(fnp.asarray(x))
    assert np.array_equal(gradient, np.stack(np.split(weights, 3, axis=1)))
