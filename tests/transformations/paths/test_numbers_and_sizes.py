"""Paths that return Python numbers beside arrays, and sizes of results that Python takes from traced values."""

import numpy as np
import pytest
from support.python_paths import paths

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.errors import BoundsError, ConcretizationError

XS = np.array([0.5, -2.0, 3.0], np.float32)


def early(x):
    if x < 0:
        return 0
    return x * 2


def three_kinds(x):
    return 1 if x > 2 else 0.5 if x > 0 else x


def numbers_alone(x):
    return 1 if x > 2 else 0.5 if x > 0 else 2


def nested(x):
    return {"a": 1 if x > 2 else x, "b": (x > 0, x * 2 if x > 0 else 3)}


MAPS = [
    lambda f: ft.vmap(paths(f)),
    lambda f: paths(ft.vmap(f)),
    lambda f: paths(lambda xs: lax.map(f, xs)),
    lambda f: lambda xs: lax.map(paths(f), xs),
]


@pytest.mark.parametrize("over", MAPS, ids=["outer vmap", "inner vmap", "map", "inside of map"])
@pytest.mark.parametrize("f", [early, three_kinds, numbers_alone, nested], ids=lambda f: f.__name__)
def test_numbers_take_the_dtype_of_other_paths(f, over):
    results = over(f)(XS)
    expected = ft.tree.map(lambda *xs: np.stack(xs), *[f(x) for x in XS])
    for got, want in zip(ft.tree.leaves(results), ft.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)
        assert got.dtype == ("bool" if want.dtype == bool else "float32")


def test_a_sum_that_starts_at_zero():
    rows = np.array([[1, -2, 3], [-1, -2, -3], [1, 2, 3]], np.float32)
    total = lambda xs: sum(x for x in xs if x > 0)
    np.testing.assert_allclose(ft.vmap(paths(total))(rows), np.where(rows > 0, rows, 0).sum(1), rtol=1e-6)


def test_a_call_alone_keeps_the_type_of_its_path():
    f = paths(early)
    for _ in range(4):
        assert [f(x).dtype for x in XS] == ["float32", "int32", "float32"]


@pytest.mark.parametrize("wide", [True, 0.5], ids=["bool", "float beside integers"])
def test_other_dtypes_are_refused_with_the_reason(wide):
    def f(n):
        if n > 1:
            return wide
        return n

    with pytest.raises(ConcretizationError, match=r"differ in shape, dtype or structure(.|\n)*one shape and dtype"):
        ft.vmap(paths(f))(np.arange(4))


def test_loops_that_count_in_python_are_refused_with_the_reason():
    def steps(n):
        count = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            count += 1
        return count

    with pytest.raises(ConcretizationError, match=r"too many conditions for one program(.|\n)*lax\.while_loop"):
        ft.vmap(paths(steps))(np.array([5, 27]))
    with pytest.raises(ConcretizationError, match=r"more than 64 paths, most at(.|\n)*lax\.while_loop"):
        paths(ft.vmap(steps))(np.array([5, 27]))


X = np.arange(12, dtype=np.float32)
SIZES = {
    "x[:n]": lambda x, n: x[:n],
    "x[-n:]": lambda x, n: x[-n:],
    "x[n:0:-1]": lambda x, n: x[n:0:-1],
    "x[:, :n]": lambda x, n: x.reshape(3, 4)[:, :n],
    "arange": lambda x, n: x[0] + fnp.arange(n),
    "arange with a start": lambda x, n: x[0] + fnp.arange(1, n),
    "split": lambda x, n: fnp.split(x, n),
    "array_split": lambda x, n: fnp.array_split(x, n + 2),
    "histogram": lambda x, n: fnp.histogram(x, bins=n),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_guards(name):
    f, numpy = SIZES[name], SIZES[name].__globals__ | {"fnp": np}
    plain = type(f)(f.__code__, numpy)
    followed = paths(f)
    for n in (3, 2, 3, 4, 2):
        for got, want in zip(ft.tree.leaves(followed(X, n)), ft.tree.leaves(plain(X, n)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6)


def test_slices_with_traced_ends_have_derivatives():
    slope = paths(ft.grad(lambda x, n: fnp.sum(x[:n] ** 2) - fnp.sum(x[n:])))
    np.testing.assert_allclose(slope(X, 5), np.where(np.arange(12) < 5, 2 * X, -1))
    followed = paths(lambda x, n: fnp.sum(x[:n] ** 2))
    np.testing.assert_allclose(ft.grad(followed)(X, 7), np.where(np.arange(12) < 7, 2 * X, 0))


def test_traced_ends_of_slices_that_are_no_integers_are_refused():
    with pytest.raises(BoundsError, match=r"a slice has the end f32\[\](.|\n)*astype"):
        paths(lambda x, n: x[:n])(X, 2.0)


def test_the_remedy_for_traced_sizes_names_paths_where_they_are_not_followed():
    with pytest.raises(ConcretizationError, match="control_flow='paths'"):
        ft.jit(lambda x, n: x[:n])(X, 2)
    with pytest.raises(ConcretizationError, match="traced end") as refused:
        paths(ft.vmap(lambda x, n: x[:n], in_axes=(None, 0)))(X, np.arange(3))
    assert "control_flow" not in str(refused.value)


def test_numbers_of_parts_and_of_a_permutation_may_be_arrays():
    assert len(fnp.split(X, fnp.int32(3))) == len(fnp.array_split(X, np.array(3))) == 3
    drawn = ft.random.permutation(ft.random.key(0), fnp.int32(5))
    assert sorted(drawn.tolist()) == [0, 1, 2, 3, 4]
    assert drawn.tolist() == ft.random.permutation(ft.random.key(0), 5).tolist()
