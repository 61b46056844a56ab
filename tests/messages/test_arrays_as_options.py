"""Arrays in the place of axes and dtypes, and elements that no array holds: the errors name them and the remedy."""

from decimal import Decimal

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.errors import ArgumentError, DtypeError, FtError, ShapeError

X = np.arange(6, dtype="float32").reshape(2, 3)
A = fnp.asarray(X)


def refused(work, kind):
    with pytest.raises(kind) as e:
        work()
    assert __file__ in e.value.at
    return e.value


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    ("name", "remedy"),
    [("max", "fnp.maximum(a, b)"), ("min", "fnp.minimum(a, b)"), ("sum", "a + b"), ("mean", "give an int")]
    + [("concatenate", "fnp.concatenate([a, b])"), ("stack", "fnp.stack([a, b])"), ("all", "a & b")],
)
def test_a_second_array_is_not_an_axis(name, remedy, wrap):
    error = refused(lambda: wrap(lambda a, b: getattr(fnp, name)(a, b))(A, A), ShapeError)
    assert f"fnp.{name}: axis is an array of shape (2, 3), not an int" in error.reason
    assert remedy in error.fix


@pytest.mark.parametrize("name", ["sum", "max", "argmin", "cumsum", "median", "nanmean", "std", "any", "count_nonzero"])
def test_an_axis_that_is_an_array_of_rank_0_is_an_int(name):
    for axis in (fnp.asarray(1), np.asarray(-1)):
        result = getattr(fnp, name)(A, axis=axis)
        np.testing.assert_allclose(result, getattr(np, name)(X.astype("float64"), axis=1), rtol=1e-6)
    for axis in (np.asarray([0]), fnp.asarray(1.0), fnp.asarray([0])):
        refused(lambda axis=axis: getattr(fnp, name)(A, axis=axis), FtError)


@pytest.mark.parametrize(
    ("work", "option"),
    [
        (lambda: fnp.std(A, ddof=A), "ddof is an array of shape (2, 3)"),
        (lambda: fnp.linalg.norm(A, ord=A), "ord is an array of shape (2, 3)"),
        (lambda: fnp.fft.fft(A, norm=["ortho"]), "norm is ['ortho']"),
        (lambda: fnp.percentile(A, 50, method=["linear"]), "method is ['linear']"),
    ],
)
def test_options_are_no_arrays_or_lists(work, option):
    error = refused(work, ArgumentError)
    assert f"the option {option}" in error.reason and "the arguments are fnp." in error.fix


def test_the_methods_of_arrays():
    np.testing.assert_array_equal(A.max(fnp.asarray(0)), X.max(0))
    assert "fnp.maximum(a, b)" in refused(lambda: A.max(A), ShapeError).fix


@pytest.mark.parametrize(
    "work",
    [
        lambda: fnp.vstack(A, A),
        lambda: fnp.hstack(A, A),
        lambda: fnp.zeros(3, A),
        lambda: A.astype(A),
        lambda: fnp.full(2, 1, X),
        lambda: ft.jit(lambda a: fnp.ones(3, a))(A),
    ],
)
def test_an_array_is_not_a_dtype(work):
    error = refused(work, DtypeError)
    assert "an array of shape (2, 3) is not a dtype" in error.reason
    assert "x.dtype" in error.fix and "[a, b]" in error.fix


def test_what_has_a_dtype_and_is_no_array_still_names_it():
    for dtype in (np.float64(1), np.float64, np.dtype("float64"), fnp.float64, "float64", A.astype("float64").dtype):
        assert fnp.zeros(2, dtype).dtype == np.float64
    assert fnp.result_type(A, fnp.float64) == np.float64 and fnp.promote_types(A, A) == np.float32


@pytest.mark.parametrize(
    ("values", "element", "fix"),
    [
        ([1, None], "None, the element at [1]", "fnp.nan"),
        ([[1.0, 2.0], [None, 3.0]], "None, the element at [1][0]", "fnp.nan"),
        ([1, 2**70], f"{2**70}, the element at [1]", "64 bits"),
        ([1, Decimal("1.5")], "Decimal('1.5'), the element at [1]", "float(...)"),
    ],
)
def test_the_element_that_no_array_holds_is_named(values, element, fix):
    error = refused(lambda: fnp.asarray(values), DtypeError)
    assert element in error.reason and fix in error.fix


def test_numpy_names_of_dtypes():
    for name, dtype in (("half", "float16"), ("long", "int64"), ("ubyte", "uint8")):
        with pytest.raises(AttributeError, match=f"use fnp.{dtype}"):
            getattr(fnp, name)


@pytest.mark.parametrize("work", [lambda x: x * "2", lambda x: "2" * x, lambda x: x * b"2"])
def test_text_is_not_multiplied(work):
    for error in (refused(lambda: work(A), DtypeError), refused(lambda: ft.jit(work)(A), DtypeError)):
        assert "are not combined" in error.reason and "float(...)" in error.fix
    assert "ab" * fnp.asarray(2) == "abab"


def test_draws_of_distributions_name_the_module_of_draws():
    from functorch_like.scipy import stats

    with pytest.raises(AttributeError, match=r"ft\.random\.normal"):
        stats.norm.rvs(size=3)
