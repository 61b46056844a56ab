"""fnp: methods of ufuncs, ufuncs made by `frompyfunc`, and arrays written with brackets; against NumPy."""

import inspect

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.errors import ArgumentError, ShapeError, UnsupportedError

A = np.random.default_rng(0).normal(size=(3, 4, 2))
BINARY = ("add", "subtract", "multiply", "maximum", "minimum", "logaddexp", "copysign", "hypot", "logical_and", "fmax")
LESS = fnp.frompyfunc(lambda x, y: x * y - y, 2, 1)
PLUS = fnp.frompyfunc(lambda x, y: x + y, 2, 1, identity=0)


def close(got, want):
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", BINARY)
def test_methods(name):
    f, want = getattr(fnp, name), getattr(np, name)
    close(f.reduce(A), want.reduce(A))
    close(f.reduce(A, axis=1, keepdims=True), want.reduce(A, axis=1, keepdims=True))
    close(f.accumulate(A, axis=1), want.accumulate(A, axis=1))
    close(f.outer(A[0, 0], A[1]), want.outer(A[0, 0], A[1]))
    close(f.reduceat(A, np.array([0, 2, 1]), axis=1), want.reduceat(A, [0, 2, 1], axis=1))
    x, places, values = A[:, 0, 0].copy(), np.array([0, 2, 0]), np.array([0.5, -0.3, 0.9])
    got = f.at(x, places, values, inplace=False)
    want.at(x, places, values)
    close(got, x)
    assert (f.nin, f.nout, f.nargs) == (want.nin, want.nout, want.nargs)


def test_reductions_with_masks_and_beginnings():
    mask = A > 0
    for name in ("add", "multiply", "logaddexp", "maximum"):
        f, want = getattr(fnp, name), getattr(np, name)
        close(f.reduce(A, 1, initial=0.5, where=mask), want.reduce(A, 1, initial=0.5, where=mask))
        close(f.reduce(A, None, initial=0.5), want.reduce(A, None, initial=0.5))
    close(fnp.logaddexp.reduce(A, 1, initial=7.1), np.logaddexp.reduce(A, 1, initial=7.1))  # 7.1 keeps its digits
    close(fnp.add.reduce(A, (0, 2)), np.add.reduce(A, (0, 2)))
    close(fnp.logaddexp.reduce(A[:0]), np.logaddexp.reduce(A[:0]))
    close(fnp.subtract.accumulate(A[:0]), A[:0])
    with pytest.raises(ShapeError, match="identity"):
        fnp.subtract.reduce(A[:0])
    with pytest.raises(ArgumentError, match="initial="):
        fnp.subtract.reduce(A, where=mask)


def test_updates_of_one_argument():
    x = np.array([1.0, 2.0, 3.0])
    got = fnp.negative.at(x, np.array([0, 0, 2]), inplace=False)
    np.negative.at(x, np.array([0, 0, 2]))
    close(got, x)
    with pytest.raises(UnsupportedError, match="inplace=False"):
        fnp.add.at(x, [0], 1.0)


def test_out_and_where_are_none():
    close(PLUS(A, A, out=None, where=None), A + A)
    calls = (
        lambda: PLUS(A, A, where=A > 0), lambda: PLUS(A, A, out=A),
        lambda: fnp.add.reduce(A, out=A[0]), lambda: PLUS.accumulate(A, out=A),
        lambda: fnp.add.reduceat(A, np.array([0]), out=A),
    )  # fmt: skip
    for call in calls:
        with pytest.raises(UnsupportedError, match=r"out=|where="):
            call()


def test_running_results_of_a_flattened_array():
    for name in ("add", "subtract", "maximum"):
        close(getattr(fnp, name).accumulate(A, axis=None), getattr(np, name).accumulate(A.ravel()))


def test_functions_of_ones_own():
    close(PLUS(A, A[0]), A + A[0])
    assert isinstance(PLUS, fnp.ufunc) and isinstance(fnp.sin, fnp.ufunc) and not isinstance(fnp.sum, fnp.ufunc)
    close(PLUS.reduce(A), A.sum(0))
    close(PLUS.reduce(A[:0]), A[:0].sum(0))
    want = np.frompyfunc(lambda x, y: x * y - y, 2, 1)
    close(LESS.reduce(A, axis=1), want.reduce(A, axis=1).astype(float))
    close(LESS.accumulate(A), want.accumulate(A).astype(float))
    close(LESS.outer(A[0, 0], A[1, 1]), want.outer(A[0, 0], A[1, 1]).astype(float))
    with pytest.raises(ArgumentError, match="2 arguments"):
        PLUS(1.0)
    with pytest.raises(ArgumentError, match="two arguments"):
        fnp.frompyfunc(lambda x: x, 1, 1).reduce(A)


def test_transformations():
    ft.testing.check_grads(lambda a: fnp.logaddexp.reduce(a, 1), (A,), order=1)
    ft.testing.check_vmap(fnp.subtract.accumulate, (A,))
    ft.testing.check_jit(lambda a, i: LESS.reduceat(a, i), (A, np.array([0, 1])))


def test_grids():
    np.testing.assert_allclose(fnp.mgrid[0:3, 1:2:4j], np.mgrid[0:3, 1:2:4j], rtol=2e-7)
    for got, want in zip(fnp.ogrid[0:3, 2:8:2], np.ogrid[0:3, 2:8:2], strict=True):
        close(got, want)
    close(fnp.mgrid[2:5], np.mgrid[2:5])
    x, y = np.arange(3.0), np.ones(3)
    for key in ((x, 0.5, y), ("0,2", x, y), ("-1,3,0", x, y), ("1,2,0", x, y), (A, A)):
        close(fnp.r_[key], np.asarray(np.r_[key]))
    close(fnp.r_["c", x, y], np.concatenate([x, y])[:, None])
    close(fnp.r_["r", x, y], np.concatenate([x, y])[None])
    close(fnp.r_[0:3, 5], np.r_[0:3, 5])
    for key in ((x, y), (A[0], A[0]), (1, 2)):
        close(fnp.c_[key], np.c_[key])
    ft.testing.check_jit(lambda x: fnp.r_[x, 0:2, 1.5], (x,))
    with pytest.raises(ArgumentError, match="begin with"):
        fnp.r_["nonsense", x]


def test_methods_show_the_line_of_the_user():
    methods = {n: f for n, f in vars(fnp.ufunc).items() if inspect.isfunction(f)}
    public = {n for n, f in methods.items() if hasattr(f, "__wrapped__")}
    assert public == {"__call__", "__init__"} | {n for n in methods if not n.startswith("_")}
    with pytest.raises(ShapeError, match=r"at: .*test_ufuncs\.py"):
        fnp.add.accumulate(A, axis=9)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8"])
@pytest.mark.parametrize(
    "name", ["bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "logical_xor"]
)
def test_reductions_of_nothing_have_the_identity_of_the_dtype(name: str, dtype: str) -> None:
    for x in (np.zeros(0, dtype), np.zeros((0, 2), dtype)):
        result, expected = getattr(fnp, name).reduce(x), getattr(np, name).reduce(x)
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)
