"""Sums of bfloat16 and float16 are kept in float32: each result is what float64 gives, rounded once."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax

N = 16384
NARROW = ("bfloat16", "float16")


def wide(x):
    return np.asarray(x).astype(np.float64)


def agree(result, expected, dtype, ulps=0):
    """Assert that the result is `expected` rounded to the dtype, up to `ulps` units in the last place."""
    assert result.dtype == dtype
    eps = 2.0 ** (-7 if dtype == "bfloat16" else -10)
    rounded = wide(np.asarray(expected).astype(np.asarray(result).dtype))
    np.testing.assert_allclose(wide(result), rounded, rtol=ulps * eps + 1e-9, atol=1e-30)


def scanned(v, x):
    """Return the sum of a scan over `x` whose steps all read `v`."""
    return lax.scan(lambda c, y: (c, fnp.sin(v) * y), 0.0, x)[1].sum()


LINE, TABLE = (N,), (512, 300)
REDUCTIONS = {
    "sum": (fnp.sum, np.sum, LINE),
    "sum of rows": (lambda x: x.sum(0), lambda x: x.sum(0), TABLE),
    "sum of columns": (lambda x: x.sum(1), lambda x: x.sum(1), TABLE),
    "sum of few": (lambda x: x.sum(1), lambda x: x.sum(1), (2048, 9)),
    "sum over the first axis": (lambda x: x.sum(0), lambda x: x.sum(0), (64, 1 << 15)),
    "ufunc": (fnp.add.reduce, np.sum, LINE),
    "lax.reduce": (lambda x: lax.reduce(x, x[0] * 0, lax.add, (0,)), np.sum, LINE),
    "mean": (fnp.mean, np.mean, LINE),
    "nansum": (fnp.nansum, np.nansum, LINE),
    "nanmean": (fnp.nanmean, np.nanmean, LINE),
    "average": (lambda x: fnp.average(x, axis=0, weights=x[:, 0]), lambda x: x.mean(0), TABLE),
    "1-norm": (lambda x: fnp.linalg.norm(x, 1), lambda x: np.linalg.norm(x, 1), LINE),
    "2-norm": (fnp.linalg.norm, np.linalg.norm, TABLE),
    "trace": (fnp.trace, np.trace, (1500, 1500)),
    "einsum of a diagonal": (lambda x: fnp.einsum("ii", x), np.trace, (1500, 1500)),
    "einsum of rows": (lambda x: fnp.einsum("ij->i", x), lambda x: x.sum(1), TABLE),
    "einsum with a vector": (lambda x: fnp.einsum("ij,j->i", x, x[0]), lambda x: x @ x[0], TABLE),
    "matrix product": (lambda x: x.T @ x, lambda x: x.T @ x, TABLE),
    "dot": (lambda x: fnp.dot(x, x), lambda x: x @ x, LINE),
    "vdot": (lambda x: fnp.vdot(x, x), lambda x: x @ x, LINE),
    "cumsum": (fnp.cumsum, np.cumsum, LINE),
    "cumulative sums of rows": (lambda x: fnp.cumsum(x, 0), lambda x: x.cumsum(0), TABLE),
    "trapezoid": (fnp.trapezoid, lambda x: x.sum() - (x[0] + x[-1]) / 2, LINE),
    "psum": (lambda x: ft.vmap(lambda v: lax.psum(v, "i"), axis_name="i")(x)[0], np.sum, LINE),
    "reduce_window": (
        lambda x: lax.reduce_window(x, x[0, 0] * 0, lax.add, (512, 1), (1, 1), "VALID")[0], lambda x: x.sum(0), TABLE,
    ),
    "avg_pool": (
        lambda x: lax.reduce_window(x, x[0] * 0, lax.add, (16,), (16,), "VALID"),
        lambda x: x.reshape(-1, 16).sum(1), LINE,
    ),
    "scatter": (lambda x: fnp.zeros(2, x.dtype).at[fnp.zeros(N, int)].add(x)[0], np.sum, LINE),
    "scatter of rows": (
        lambda x: fnp.zeros((2, 300), x.dtype).at[fnp.zeros(512, int)].add(x)[0], lambda x: x.sum(0), TABLE,
    ),
    "segment_sum": (lambda x: ft.ops.segment_sum(x, fnp.zeros(N, int), 2)[0], np.sum, LINE),
    "bincount": (lambda x: fnp.bincount(fnp.zeros(N, int), x, length=1)[0], np.sum, LINE),
    "gradient of a broadcast": (
        lambda x: ft.grad(lambda v: fnp.sum(fnp.broadcast_to(v, (N,)) * x))(fnp.ones((), x.dtype)), np.sum, LINE,
    ),
    "gradient of a gather": (
        lambda x: ft.grad(lambda v: fnp.sum(v[fnp.zeros(N, int)] * x))(fnp.ones(2, x.dtype))[0], np.sum, LINE,
    ),
    "gradient of a scanned constant": (
        lambda x: ft.grad(lambda v: scanned(v, x))(fnp.zeros((), x.dtype)),
        np.sum, LINE,
    ),
    "gradient of many uses": (
        lambda x: ft.grad(lambda v: sum(v * x[i] for i in range(300)))(fnp.ones((), x.dtype)),
        lambda x: x[:300].sum(), LINE,
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_equal_elements_are_summed_in_float32(name, dtype):
    """A narrow sum that has grown large against its terms loses every further term."""
    f, expected, shape = REDUCTIONS[name]
    x = fnp.full(shape, 0.1, dtype)
    agree(ft.jit(f)(x), expected(wide(x)), dtype)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize(
    "name", ["sum", "sum of rows", "mean", "2-norm", "einsum of rows", "scatter", "segment_sum", "trace"]
)
def test_any_elements_are_summed_in_float32(name, dtype):
    f, expected, shape = REDUCTIONS[name]
    x = fnp.asarray(np.random.default_rng(0).uniform(0.5, 1, shape), dtype)
    agree(f(x), expected(wide(x)), dtype, ulps=0.51)


@pytest.mark.parametrize("dtype", NARROW)
def test_products_are_kept_in_float32(dtype):
    x = fnp.asarray(np.random.default_rng(0).uniform(0.9, 1.1, 300), dtype)
    agree(fnp.prod(x), np.prod(wide(x)), dtype, ulps=0.51)
    agree(fnp.ones(2, dtype).at[fnp.zeros(300, int)].multiply(x)[0], np.prod(wide(x)), dtype, ulps=0.51)


@pytest.mark.parametrize("dtype", NARROW)
def test_one_update_to_a_place_needs_no_wider_sum(dtype):
    x, i = fnp.ones((1000, 3), dtype), fnp.arange(5)
    lowered = lambda f, *args: ft.jit(f).lower(*args).as_text()
    assert "xf32" in lowered(lambda x, i: x.at[i].add(1), x, i)
    for text in (
        lowered(lambda x, i: x.at[i].add(1, unique_indices=True), x, i),
        lowered(lambda x, i: x.at[i].add(1), x, i[0]),
        lowered(lambda x, i: ft.vmap(lambda r, k: r.at[k].add(1))(x[:5], i), x, i),
    ):
        assert "f32" not in text


@pytest.mark.parametrize("dtype", NARROW)
def test_sums_are_rounded_once_under_batches_and_derivatives(dtype):
    x = fnp.full((3, N), 0.1, dtype)
    agree(ft.vmap(fnp.sum)(x), wide(x).sum(1), dtype)
    out, tangent = ft.jvp(fnp.sum, (x,), (x,))
    agree(out, wide(x).sum(), dtype)
    agree(tangent, wide(x).sum(), dtype)
    weight = fnp.full((), 0.1, dtype)
    loop = lambda v: scanned(v, x[0])
    agree(ft.grad(ft.grad(loop))(weight), -np.sin(wide(weight)) * wide(x[0]).sum(), dtype, ulps=1)
    stacked = ft.vmap(ft.grad(loop))(fnp.zeros(2, dtype))
    agree(stacked, np.full(2, wide(x[0]).sum()), dtype)


@pytest.mark.parametrize("dtype", NARROW)
def test_moments_and_norms_are_computed_in_float32(dtype):
    """float16 cannot hold the sums of these squares, and bfloat16 loses their digits."""
    x = fnp.asarray(np.random.default_rng(0).uniform(0.5, 3, (4, 65536)), dtype)
    w = wide(x)
    agree(fnp.linalg.vector_norm(x), np.linalg.norm(w), dtype, 0.51)
    agree(fnp.linalg.norm(x[0], 3), np.linalg.norm(w[0], 3), dtype, 0.51)
    agree(fnp.linalg.norm(x, axis=1), np.linalg.norm(w, axis=1), dtype, 0.51)
    agree(fnp.average(x, axis=1, weights=x[0]), np.average(w, axis=1, weights=w[0]), dtype, 0.51)
    agree(fnp.var(x, 1), np.var(w, 1), dtype, 0.51)
    agree(fnp.std(x), np.std(w), dtype, 0.51)
    agree(fnp.nanstd(x, 0), np.std(w, 0), dtype, 0.51)
    agree(fnp.diagonal(fnp.cov(x)), np.diagonal(np.cov(w)), dtype, 0.51)
    standard = (w - w.mean(1, keepdims=True)) / np.sqrt(w.var(1, keepdims=True) + 1e-5)
    result = ft.nn.standardize(x)
    assert result.dtype == dtype
    np.testing.assert_allclose(wide(result), standard, rtol=0.005, atol=1e-4)
