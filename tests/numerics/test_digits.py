"""Python numbers and lists beside float64 arrays keep the digits of float64, eagerly, traced and mapped."""

import warnings

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.errors import ArgumentError

X = np.random.default_rng(0).uniform(0.1, 1.9, 12)

CASES = {
    "percentile": lambda m, x: m.percentile(x, 33),
    "percentiles": lambda m, x: m.percentile(x, np.array([10, 33.3])),
    "nanpercentile": lambda m, x: m.nanpercentile(x, 33.3),
    "quantile": lambda m, x: m.quantile(x, 0.3),
    "nanquantile": lambda m, x: m.nanquantile(x, 0.3),
    "median": lambda m, x: m.median(x),
    "weighted": lambda m, x: m.quantile(x, 0.3, weights=x, method="inverted_cdf"),
    "logspace": lambda m, x: m.logspace(0.1, 0.9, 7, dtype="float64"),
    "logspace, base": lambda m, x: m.logspace(x[0], 0.9, 7, base=2.3),
    "linspace": lambda m, x: m.linspace(0.1, x[3], 6),
    "geomspace": lambda m, x: m.geomspace(x[0], 0.9, 7),
    "histogram": lambda m, x: m.histogram(x, 5, range=(0.1, 1.7))[1],
    "histogram, density": lambda m, x: m.histogram(x, 5, range=(0.1, 1.7), density=True)[0],
    "histogram2d": lambda m, x: m.histogram2d(x, x[::-1], 4, range=[[0.1, 1.3], [0.1, 1.7]])[1],
    "unwrap": lambda m, x: m.unwrap(x * 20, period=0.7),
    "unwrap, discont": lambda m, x: m.unwrap(x * 20, discont=3.3),
    "diff": lambda m, x: m.diff(x, prepend=0.1, append=0.2),
    "ediff1d": lambda m, x: m.ediff1d(x, to_begin=0.1, to_end=[0.3, 0.7]),
    "append": lambda m, x: m.append(x, 0.1),
    "append a list": lambda m, x: m.append(x, [0.1, 0.3]),
    "concatenate": lambda m, x: m.concatenate([x, [0.1, 0.3]]),
    "insert": lambda m, x: m.insert(x, 2, 0.1),
    "polyint": lambda m, x: m.polyint(x[:3], k=0.1),
    "polyval": lambda m, x: m.polyval([0.1, 0.2, 0.3], x),
    "piecewise": lambda m, x: m.piecewise(x, [x > 1, x <= 1], [0.1, lambda v: v * 0.3]),
    "outer": lambda m, x: m.add.outer(x, 0.1),
    "clip": lambda m, x: m.clip(x, 0.3, 0.7),
    "where": lambda m, x: m.where(x > 1, x, 0.1),
    "select": lambda m, x: m.select([x > 1, x > 0.5], [x, x * 2], 0.1),
    "interp": lambda m, x: m.interp(x, m.sort(x), x, left=0.1, right=0.3),
    "pad": lambda m, x: m.pad(x, 2, constant_values=0.1),
    "nan_to_num": lambda m, x: m.nan_to_num(m.where(x > 1, np.nan, x), nan=0.1),
    "sum": lambda m, x: m.sum(x, initial=0.1),
    "std": lambda m, x: m.std(x, ddof=0.3),
    "norm": lambda m, x: m.linalg.norm(x, 2.3),
    "gradient": lambda m, x: m.gradient(x, 0.1),
    "trapezoid": lambda m, x: m.trapezoid(x, dx=0.1),
}


@pytest.mark.parametrize("name", CASES)
def test_numbers_beside_float64_keep_their_digits(name):
    f = CASES[name]
    expected = f(np, X)
    ways = {
        "eager": lambda x: f(fnp, x),
        "jit": ft.jit(lambda x: f(fnp, x)),
        "vmap": lambda x: ft.vmap(lambda v: f(fnp, v))(x[None])[0],
    }
    for way, g in ways.items():
        result = g(fnp.asarray(X))
        assert result.dtype == np.float64, way
        np.testing.assert_allclose(result, expected, rtol=1e-13, atol=1e-15, err_msg=way)


def test_bins_in_a_list_are_exact():
    x, edges = np.array([0.1, 0.3, 0.7]), [0.1, 0.3, 0.7, 0.9]
    for m in (np, fnp):
        assert m.histogram(m.asarray(x), edges)[0].tolist() == [1, 1, 1]


def test_positions_beyond_float32():
    """float32 holds no odd integers above 2**24, but neighbouring elements must stay distinct."""
    n = (1 << 24) + 9
    x = np.arange(n, dtype=np.float32)
    x[-1] = 3e7
    assert fnp.quantile(x, 1.0) == np.float32(3e7)
    np.testing.assert_allclose(fnp.median(x), (n - 1) / 2)


@pytest.mark.parametrize("n", [5, 11, 50, 101, 1000])
def test_whole_numbers_at_equal_distances(n):
    for start, stop in ((0, n - 1), (0, 3 * (n - 1)), (-7, 7 * n - 14), (0, 10**8)):
        expected = start + np.arange(n, dtype=np.int64) * (stop - start) // (n - 1)
        np.testing.assert_array_equal(fnp.linspace(start, stop, n, dtype="int32"), expected)


QUANTILES = {
    "quantile": 1, "nanquantile": 1, "percentile": 100, "nanpercentile": 100,
}  # fmt: skip


@pytest.mark.parametrize("name", QUANTILES)
@pytest.mark.parametrize("where", ["above", "below", "nan"])
def test_quantiles_out_of_range(name, where):
    f, end = getattr(fnp, name), QUANTILES[name]
    q = {"above": 1.5 * end, "below": -0.1, "nan": np.nan}[where]
    for bad in (q, np.array([0.5, q]), fnp.asarray(q)):
        with pytest.raises(ArgumentError, match=f"from 0 to {end}") as told:
            f(X, bad)
        assert "percent" in str(told.value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for method in ("linear", "lower", "nearest", "midpoint"):
            result = ft.jit(lambda q, method=method: f(X, q, method=method))(np.array([0.25 * end, q]))
            np.testing.assert_allclose(result[0], getattr(np, name)(X, 0.25 * end, method=method))
            assert np.isnan(result[1])
