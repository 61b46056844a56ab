import math

import numpy as np
import pytest
from support.compare import agrees

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.backends.xla import counters
from functorch_like.errors import ArgumentError, DtypeError

X = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
FOLDS = ["sum", "prod", "mean", "var", "std", "max", "min", "all", "any", "ptp", "count_nonzero", "median", "nansum"]
FOLDS += ["nanmax", "nanmin", "nanmean", "nanvar", "nanstd"]


@pytest.mark.parametrize("name", FOLDS)
def test_axes(name):
    for axis in (None, 1, -1, (0, 2), (-1, 0)):
        agrees(name, X, axis=axis)
        agrees(name, X, axis=axis, keepdims=True)
    agrees(name, X, axis=3)
    agrees(name, X, axis=(1, 1))


@pytest.mark.parametrize("name", [n for n in FOLDS if n != "ptp"])
@pytest.mark.parametrize("dtype", ["int32", "int8", "bool", "float64"])
def test_dtypes(name, dtype):
    agrees(name, (X * 3).astype(dtype))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_arg(name):
    for axis in (None, 0, -1):
        agrees(name, X, axis=axis)
        agrees(name, X, axis=axis, keepdims=True)
    agrees(name, np.array([1.0, np.nan, 5.0, np.nan]))
    agrees(name, np.array([2, 7, 7, 1, 1]))


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "max", "min", "all", "any"])
def test_where(name):
    more = {"initial": -1.0 if name == "max" else 1.0} if name in ("max", "min") else {}
    agrees(name, X, axis=1, where=X > 0, **more)


def test_options():
    agrees("var", X, ddof=1, axis=0)
    agrees("sum", X, dtype="float64")
    agrees("sum", X, initial=3.0)
    agrees("max", np.zeros((0, 3)), axis=0)
    agrees("max", np.zeros((0, 3)), axis=0, initial=-1.0)
    agrees("sum", np.zeros((0, 3)))
    agrees("average", X, axis=1, weights=X[0, :, 0])
    agrees("mean", np.array([np.inf, 1.0]))
    for name in ("sum", "prod", "mean", "var", "std"):
        agrees(name, X + 1j * X[::-1], axis=1)


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "nearest", "midpoint"])
def test_quantiles(method):
    for q in (np.array([0.1, 0.5, 0.99]), np.array(0.3), np.array(1.0)):
        for axis in (None, 1, (0, 2)):
            agrees("quantile", X.astype(np.float64), q, axis=axis, method=method)
    agrees("quantile", X, np.array([0.1, 0.2]), axis=1, keepdims=True)
    agrees("quantile", np.array([1.0, np.nan]), 0.5)


def test_cumulative():
    for n in range(1, 9):
        agrees("cumsum", X.reshape(-1)[:n])
    for axis in (None, 0, 1, -1):
        agrees("cumsum", X, axis)
        agrees("cumprod", X, axis)
    agrees("cumsum", X > 0)
    for n in (0, 1, 2, 3):
        agrees("diff", X, n)
    agrees("diff", X, prepend=0.0, append=X[:, :, :1])
    agrees("trapezoid", X[0], np.arange(5.0), axis=1)
    agrees("trapezoid", X[0], axis=0, dx=0.5)
    for few in (1, 2, 3):
        agrees("trapezoid", X[0, :few], axis=0, dx=0.5)
    assert float(fnp.trapezoid(fnp.asarray([math.inf, 1.0, 2.0]))) == math.inf
    assert float(fnp.trapezoid(fnp.asarray([1.0, -math.inf, 2.0]))) == -math.inf
    assert math.isnan(float(fnp.trapezoid(fnp.asarray([math.inf, 1.0, -math.inf]))))
    assert ft.grad(fnp.trapezoid)(fnp.asarray([math.inf, 1.0, 2.0])).tolist() == [0.5, 1.0, 0.5]


@pytest.mark.parametrize(
    ("shape", "axis"), [((70_000,), None), ((9, 8000), None), ((40, 300), 1), ((300, 40), 0), ((9, 33), 1)]
)
def test_booleans_of_large_arrays_are_folded(shape, axis):
    for odd in (None, 0, -1):
        flags = np.ones(shape, bool)
        if odd is not None:
            flags.flat[odd] = False
        np.testing.assert_array_equal(ft.jit(lambda x: fnp.all(x, axis))(flags), flags.all(axis))
        np.testing.assert_array_equal(ft.jit(lambda x: fnp.any(~x, axis))(flags), (~flags).any(axis))


def test_half_precision_means_are_summed_wide():
    assert float(fnp.mean(fnp.full(4096, 1.0, "float16"))) == 1.0
    assert fnp.mean(fnp.ones(3, "bfloat16")).dtype == fnp.bfloat16


def test_one_kernel_and_no_calls_in_jaxprs():
    text = str(ft.make_jaxpr(lambda x: fnp.std(x, axis=0))(X))
    assert "call" not in text
    assert "reduce_sum" in text


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "all", "any", "argmax", "argmin", "mean", "var", "std"])
def test_a_call_without_options_has_a_kernel_of_its_own(name):
    function, x = getattr(fnp, name), fnp.asarray([[3, 1, 2], [0, 5, 4]])
    plain = function(x)
    assert plain.aval == function(x, axis=None).aval == ft.jit(function)(x).aval
    assert plain == function(x, None) == function(a=x) == getattr(x, name)() == ft.jit(function)(x)
    assert function(fnp.asarray(x, fnp.float32)) == plain
    for _ in range(3):
        assert function(x) == plain
    before = counters.misses
    assert function(x) == plain and counters.misses == before


def test_nothing_to_reduce():
    with pytest.raises(ValueError, match="initial="):
        fnp.max(fnp.zeros(0))
    with pytest.raises(ValueError, match="axis 3 is out of bounds"):
        fnp.sum(fnp.zeros(2), axis=3)
    with pytest.raises(TypeError, match=r"fnp\.asarray turns a list"):
        fnp.sum([1.0, 2.0])


@pytest.mark.parametrize("axis", [None, 0, (0, 1)])
def test_minmax(axis):
    x = np.array([[3.0, -1.0, 2.0], [0.5, 8.0, np.inf]])
    for f in (fnp.minmax, ft.jit(fnp.minmax, static_argnames=("axis", "keepdims"))):
        for got, fold in zip(f(x, axis=axis, keepdims=True), (np.min, np.max), strict=True):
            np.testing.assert_array_equal(got, fold(x, axis=axis, keepdims=True))
    assert [v.item() for v in fnp.minmax(x, initial=(-5, 9), where=x < 3)] == [-5, 9]
    assert [v.item() for v in fnp.minmax(x, initial=1, where=x < 3)] == [-1, 2]
    low, high = ft.jit(ft.grad(lambda x: sum(fnp.minmax(x))))(x)
    np.testing.assert_array_equal([low, high], [[0, 1, 0], [0, 0, 1]])


class Axes(list):
    """A list that cannot be hashed, as keras's lists of attributes cannot."""


@pytest.mark.parametrize(
    "name", ["sum", "prod", "max", "mean", "std", "any", "median", "nansum", "flip", "count_nonzero"]
)
def test_axes_may_be_any_list(name):
    x, f = np.arange(24.0).reshape(2, 3, 4), getattr(fnp, name)
    for way in (lambda g: g, ft.jit):
        np.testing.assert_allclose(way(lambda x: f(x, axis=Axes([0, 1])))(x), getattr(np, name)(x, axis=(0, 1)))


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2)])
@pytest.mark.parametrize("dtype", [None, "float16", "float64"])
def test_means_of_booleans_are_counts(axis, dtype):
    x = np.random.default_rng(0).random((40, 7, 300)) < 0.3
    exact = np.mean(x, axis=axis, dtype="float64")
    got = ft.jit(lambda x: fnp.mean(x, axis=axis, dtype=dtype))(x)
    assert got.dtype == (dtype or "float32")
    np.testing.assert_allclose(np.asarray(got, "float64"), exact, rtol=2 * np.finfo(got.dtype).eps)
    some = np.indices(x.shape).sum(0) % 3 > 0
    np.testing.assert_allclose(fnp.mean(x, axis=axis, where=some), np.mean(x, axis=axis, where=some), rtol=1e-6)


@pytest.mark.parametrize("name", ["sum", "max", "min"])
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((70_007,), 0), ((3, 5, 4099), 2), ((30, 3, 700), (0, 2)), ((9, 8, 72), (1, 2))]
)
def test_folds_of_integers_with_their_operands(name, dtype, shape, axis):
    ends = np.iinfo(dtype)
    x = np.random.default_rng(1).integers(ends.min, ends.max, shape, dtype, endpoint=True)
    x[..., 5], x[..., -1] = ends.max, ends.min
    with np.errstate(over="ignore"):
        for operand in (lambda x: x, lambda x: x * x.dtype.type(3), lambda x: x > 9):
            want = getattr(np, name)(operand(x), axis=axis)
            got = np.asarray(ft.jit(lambda x, f=operand: getattr(fnp, name)(f(x), axis=axis))(x))
            np.testing.assert_array_equal(got, want.astype(got.dtype))


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "std", "all", "any", "nansum"])
def test_masks_are_booleans(name):
    x, counts = np.ones((2, 3), np.float32), np.arange(3)
    with pytest.raises(TypeError):
        getattr(np, name)(x, where=counts)
    with pytest.raises(DtypeError, match="boolean"):
        getattr(fnp, name)(x, where=counts)
    with pytest.raises(DtypeError, match="boolean"):
        ft.jit(lambda x, mask: getattr(fnp, name)(x, where=mask))(x, counts)


@pytest.mark.parametrize("name", ["add", "subtract", "maximum", "logaddexp"])
def test_masks_of_ufuncs_are_booleans(name):
    x, counts = np.ones((2, 3), np.float32), np.arange(3)
    with pytest.raises(TypeError):
        getattr(np, name).reduce(x, 1, initial=0, where=counts)
    with pytest.raises(DtypeError, match="boolean"):
        getattr(fnp, name).reduce(x, 1, initial=0, where=counts)


def test_out_is_not_implemented():
    for error in (NotImplementedError, ArgumentError):
        with pytest.raises(error, match="immutable"):
            fnp.sum(X, out=X)  # type: ignore[arg-type]


def test_booleans_are_counted_in_integers_always():
    x = np.array([True, True, False])
    assert fnp.sum(x, promote_integers=False) == 2 and fnp.sum(x, promote_integers=False).dtype == fnp.sum(x).dtype
    assert fnp.prod(x, promote_integers=False).dtype == fnp.prod(x).dtype
