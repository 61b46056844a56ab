"""Reductions that leave NaN out, quantiles by all methods, running sums with initial values, `out=` refused."""

import itertools

import numpy as np
import pytest
from support.compare import agrees

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.errors import ArgumentError
from functorch_like.testing import check_grads


def holes() -> np.ndarray:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 4, 5))
    x[rng.random(x.shape) < 0.4] = np.nan
    x[0, :, 0] = np.nan
    return x


X = holes()
WILD = np.where(X > 1.2, np.inf, np.where(X < -1.2, -np.inf, X))


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "median"])
def test_infinities(name):
    for axis in (None, 0, (0, 2)):
        agrees(f"nan{name}", WILD, axis=axis, keepdims=True)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_where_and_initial(name):
    agrees(f"nan{name}", X, axis=1, initial=0.5, where=X < 1)


@pytest.mark.parametrize("name", ["nanmean", "nanvar", "nanstd"])
def test_moments(name):
    for axis in (None, 1, (0, 2)):
        agrees(name, X, axis=axis, keepdims=True)
        agrees(name, X, axis=axis, where=X < 1)
    if name != "nanmean":
        for ddof in (1, 2):
            agrees(name, X, axis=1, ddof=ddof)
    agrees(name, np.arange(4))


def test_known_means():
    x = np.arange(6.0).reshape(2, 3)
    for name in ("var", "std", "nanvar", "nanstd"):
        agrees(name, x, axis=1, mean=np.array([[1.0], [2.0]]))


def test_derivatives_do_not_see_what_is_left_out():
    x = np.array([[1.0, np.nan, 3.0], [4.0, 2.5, np.nan]])
    seen = ~np.isnan(x)
    for name in ("nansum", "nanmean", "nanvar", "nanmax", "nanmedian", "nancumsum"):
        loss = lambda v, name=name: (getattr(fnp, name)(v, axis=1) ** 2).sum()
        slope = np.asarray(ft.grad(loss)(fnp.asarray(x)))
        assert np.isfinite(slope).all(), name
        if name in ("nansum", "nanmean", "nanvar"):
            np.testing.assert_allclose(slope[~seen], 0)
    check_grads(lambda v: fnp.nanvar(fnp.where(seen, v, np.nan), axis=1), (np.nan_to_num(x),), order=1)
    slope = ft.grad(lambda v: fnp.var(v, where=fnp.asarray([True, True, False])))(fnp.asarray([1.0, 3.0, np.nan]))
    assert slope.tolist() == [-1.0, 1.0, 0.0]


@pytest.mark.parametrize("name", ["nanargmax", "nanargmin"])
def test_positions(name):
    some = np.where(np.isnan(X).all(1, keepdims=True), 1.0, X)
    for axis in (None, 1):
        agrees(name, some, axis=axis)
        agrees(name, some, axis=axis, keepdims=True)
    f = getattr(fnp, name)
    assert int(f(np.array([np.nan, np.nan]))) == -1
    assert int(f(np.array([np.nan, -np.inf]))) == int(f(np.array([np.nan, np.inf]))) == 1
    agrees(name, np.array([3, 1, 3]))


@pytest.mark.parametrize("name", ["nancumsum", "nancumprod"])
def test_running(name):
    for axis in (None, 1):
        agrees(name, X, axis=axis)
    agrees(name, np.arange(3) + 1)
    agrees(name, X.astype("complex64"), axis=0)


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_running_with_initial(name):
    a = np.arange(6, dtype="int8").reshape(2, 3)
    for more in ({}, {"include_initial": True}, {"include_initial": True, "dtype": "float32"}):
        agrees(name, a, axis=1, **more)
        agrees(name, a, axis=-2, **more)
        agrees(name, a[0], **more)
    for wrong in (a, np.array(1.0)):
        with pytest.raises(ValueError, match="axis"):
            getattr(fnp, name)(wrong)


METHODS = ["linear", "lower", "higher", "nearest", "midpoint", "hazen", "weibull", "median_unbiased", "normal_unbiased"]
METHODS += ["inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf"]


@pytest.mark.parametrize("method", METHODS)
def test_quantiles(method):
    z = np.random.default_rng(0).normal(size=(3, 8, 5))
    some = np.array([0.0, 0.1, 0.25, 0.5, 0.9, 1.0])
    agrees("quantile", z, some, axis=1, method=method)
    agrees("quantile", z, some.reshape(2, 3), axis=(0, 2), method=method, keepdims=True)
    agrees("percentile", z, 30.0, method=method)
    agrees("nanquantile", X, some, axis=1, method=method)
    agrees("nanpercentile", X, 100 * some, axis=(0, 2), method=method, keepdims=True)


@pytest.mark.parametrize("method", METHODS)
def test_one_quantile_of_few_elements(method):
    """Numbers q take another way than arrays, and few elements have positions before the first and behind the last."""
    rng = np.random.default_rng(1)
    for n, q in itertools.product((1, 2, 3, 7), (0.0, 0.05, 0.3, 0.9, 1.0)):
        agrees("quantile", rng.normal(size=(2, n)), q, axis=1, method=method)
        agrees("nanquantile", rng.normal(size=(2, n)), q, axis=1, method=method)


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_weighted_quantiles(name):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 4, 5)) if name == "quantile" else np.where(np.isnan(X).all(1, keepdims=True), 1.0, X)
    w = rng.integers(0, 3, x.shape).astype(float)
    w[:, 1] += 0.5
    some = np.array([0.0, 0.13, 0.5, 0.77, 1.0])
    got = getattr(fnp, name)(x, some, axis=1, method="inverted_cdf", weights=w)
    for i, j in itertools.product(range(3), range(5)):
        column, weight = x[i, :, j], np.where(np.isnan(x[i, :, j]), 0, w[i, :, j])
        if weight.sum():
            order = np.argsort(column)
            heap = np.cumsum(weight[order])
            want = [column[order][(heap >= q * heap[-1]) & (heap > 0)][0] for q in some]
            np.testing.assert_allclose(np.asarray(got)[:, i, j], want)
    agrees("quantile", rng.normal(size=(3, 4)), some, axis=1, method="inverted_cdf", weights=np.arange(1.0, 5.0))
    whole = {"weights": rng.random((3, 4)), "method": "inverted_cdf", "keepdims": True}
    agrees("percentile", rng.normal(size=(3, 4)), 30.0, **whole)
    assert np.isnan(getattr(fnp, name)(fnp.zeros(0), 0.5, weights=fnp.zeros(0), method="inverted_cdf"))
    with pytest.raises(ArgumentError, match="inverted_cdf"):
        getattr(fnp, name)(x, 0.5, weights=w)
    with pytest.raises(ArgumentError, match="fit"):
        getattr(fnp, name)(x, 0.5, axis=1, method="inverted_cdf", weights=w[0])


def test_quantiles_at_the_edges():
    agrees("median", np.array([-np.inf, 1.0]))
    agrees("median", np.array([1.0, np.inf]))
    agrees("median", np.array([1.0, np.nan]))
    agrees("nanmedian", np.arange(4))
    assert np.isnan(fnp.median(fnp.zeros(0)))
    with pytest.raises(ArgumentError, match="method"):
        fnp.nanquantile(X, 0.5, method="guess")
    with pytest.raises(TypeError, match=r"fnp\.nanmedian takes real numbers"):
        fnp.nanmedian(fnp.asarray([1j, 2.0]))
    check_grads(lambda v, q: fnp.quantile(v, q), (np.array([3.0, 1.0, 7.0]), np.array([0.3, 0.6])), order=1)
    # Where q falls on an element, the derivative by q is that of one side, not zero.
    assert float(ft.grad(lambda q: fnp.quantile(fnp.asarray([0.0, 1.0, 2.0]), q))(0.5)) == 2.0


REDUCTIONS = ["sum", "prod", "max", "min", "all", "any", "argmax", "mean", "var", "std", "cumsum", "cumprod", "ptp"]


@pytest.mark.parametrize("name", [*REDUCTIONS, "nansum", "nanmax", "nanmean", "nancumsum", "nanargmax", "median"])
def test_out_is_refused(name):
    x = fnp.ones(3)
    with pytest.raises(ArgumentError, match="immutable"):
        getattr(fnp, name)(x, out=x)


def test_small_integers_and_truths_may_keep_their_dtype():
    assert fnp.sum(np.ones(3, "int8"), promote_integers=False).dtype == "int8"
    for values in ([True, False], [True, True], []):
        x = np.array(values, bool)
        agrees("sum", x, dtype=bool)
        agrees("prod", x, dtype=bool)
        agrees("sum", x, dtype=bool, initial=True)


def test_differences_with_ends():
    agrees("ediff1d", np.arange(6).reshape(2, 3), to_end=np.array([1, 2]), to_begin=9)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize(("shape", "axis"), [((6000,), None), ((9, 700), 1), ((700, 9), 0), ((2, 50, 60), (1, 2))])
@pytest.mark.parametrize("name", ["nanmax", "nanmin", "nanargmax", "nanargmin"])
def test_extremes_of_long_rows_with_holes(name, shape, axis, dtype):
    if "arg" in name and isinstance(axis, tuple):
        shape, axis = (2, 3000), 1
    x = np.random.default_rng(1).normal(size=shape).astype("float32")
    x[x < 0.3 if name.endswith("max") else x > -0.3] = np.nan
    x.ravel()[7] = np.inf if name.endswith("min") else -np.inf
    x = fnp.asarray(x, dtype)
    exact = np.asarray(x).astype("float64")
    f = ft.jit(lambda x: getattr(fnp, name)(x, axis=axis))
    quick = f(x)
    f.optimised()
    for got in (quick, f(x)):
        np.testing.assert_array_equal(np.asarray(got).astype("float64"), getattr(np, name)(exact, axis=axis))


@pytest.mark.parametrize("name", ["nanmax", "nanmin"])
def test_rows_without_numbers_have_no_extreme_and_no_slope(name):
    x = np.full((3, 2000), np.nan, "float32")
    x[1, 5:9], x[2] = -np.inf, np.inf
    f = lambda x: getattr(fnp, name)(x, axis=1)
    np.testing.assert_array_equal(ft.jit(f)(x), [np.nan, -np.inf, np.inf])
    x[1, 5:9], x[2, 1:] = [2, 1, 2, 1], np.nan
    slopes = ft.grad(lambda x: fnp.nansum(f(x)))(x)
    want = np.zeros_like(x)
    want[2, 0], want[1, [5, 7] if name == "nanmax" else [6, 8]] = 0 if np.isnan(x[2, 0]) else 1, 0.5
    np.testing.assert_array_equal(slopes, want)
    columns = ft.vmap(f, in_axes=1)(np.repeat(x[:, None], 2, 1))
    np.testing.assert_array_equal(columns, [f(x)] * 2)


def test_padding_of_a_bucket_is_no_number():
    f = ft.jit(lambda x: (fnp.nanmax(x), fnp.nanmin(x, axis=0)), buckets={"x": 0})
    for n in (5, 3):
        x = np.float32([[np.nan, -2], [-3, np.nan], [-5, -4], [np.nan, -9], [-1, -7]])[:n]
        for got, want in zip(f(x), (np.nanmax(x), np.nanmin(x, 0)), strict=True):
            np.testing.assert_array_equal(got, want)


def test_taylor_coefficients_of_extremes_without_nan():
    x = fnp.asarray([[1.0, np.nan, 3.0], [np.nan] * 3])
    d = fnp.asarray([[2.0, 5.0, 7.0], [1.0] * 3])
    value, (first,) = ft.jet(lambda x: fnp.nanmax(x, axis=1), (x,), ([d],))
    np.testing.assert_array_equal(value, [3, np.nan])
    np.testing.assert_array_equal(first, [7, 0])
