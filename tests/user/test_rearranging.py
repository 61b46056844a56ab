"""lax: top_k, approximate extremes, tile, split, barriers, running log-sum-exp."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.errors import ArgumentError, DtypeError, ShapeError

X = np.random.default_rng(0).normal(size=(4, 5, 3)).astype(np.float32)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_top_k_along_any_axis(axis):
    values, places = lax.top_k(X, 2, axis=axis)
    order = np.take(np.argsort(-X, axis, kind="stable"), range(2), axis)
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, np.take_along_axis(X, order, axis))
    assert places.dtype == np.int32


def test_top_k_has_a_derivative():
    weights = np.array([3.0, 1.0], np.float32)
    for wrap in (lambda f: f, ft.jit):
        got = wrap(ft.vmap(ft.grad(lambda row: fnp.sum(lax.top_k(row, 2)[0] * weights))))(X[:, 0])
        want = np.zeros((4, 3), np.float32)
        np.put_along_axis(want, np.argsort(-X[:, 0], 1)[:, :2], weights, 1)
        np.testing.assert_array_equal(got, want)


def test_approximate_extremes_are_exact():
    np.testing.assert_array_equal(lax.approx_max_k(X, 2)[0], lax.top_k(X, 2)[0])
    np.testing.assert_array_equal(lax.approx_min_k(X, 2, reduction_dimension=0)[0], np.sort(X, 0)[:2])
    with pytest.raises(DtypeError, match=r"lax\.top_k"):
        lax.approx_max_k(np.arange(3), 1)
    with pytest.raises(ArgumentError, match="recall_target"):
        lax.approx_max_k(X, 1, recall_target=2.0)


def test_top_k_refuses():
    with pytest.raises(ArgumentError, match="k=4"):
        lax.top_k(X, 4)
    with pytest.raises(ShapeError):
        lax.top_k(np.float32(1), 1)


def test_tile_and_split():
    np.testing.assert_array_equal(lax.tile(X, (2, 1, 3)), np.tile(X, (2, 1, 3)))
    parts = ft.jit(lambda x: lax.split(x, (1, 4), axis=-2))(X)
    assert isinstance(parts, list)
    for got, want in zip(parts, np.split(X, [1], 1), strict=True):
        np.testing.assert_array_equal(got, want)
    with pytest.raises(ShapeError, match="add up to 4"):
        lax.split(X, (1, 3), axis=1)
    np.testing.assert_array_equal(ft.grad(lambda x: lax.split(x, (1, 4), 1)[1].sum())(X)[:, 0], 0)


def test_a_barrier_keeps_what_it_holds_apart():
    f = lambda x: lax.optimization_barrier({"a": x, "b": (2.0 * x, 1)})
    out = ft.jit(f)(X)
    np.testing.assert_array_equal(out["b"][0], 2 * X)
    assert int(out["b"][1]) == 1
    assert "optimization_barrier" in ft.jit(f).lower(X).as_text()
    np.testing.assert_array_equal(ft.grad(lambda x: f(x)["b"][0].sum())(X), np.full_like(X, 2))
    assert lax.optimization_barrier(()) == ()


@pytest.mark.parametrize("reverse", [False, True])
def test_running_log_sum_exp(reverse):
    x = np.array([1.0, 800.0, -np.inf, 2.0, 801.0, -1000.0], np.float32)
    turn = (lambda v: v[::-1]) if reverse else (lambda v: v)
    np.testing.assert_allclose(lax.cumlogsumexp(x, reverse=reverse), turn(np.logaddexp.accumulate(turn(x))), rtol=1e-6)
    for odd in ([np.inf, np.inf, 1.0], [-np.inf, -np.inf, 0.0], [0.0, np.nan, 1.0], [-np.inf, np.inf, -np.inf]):
        y = np.array(odd, np.float32)
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(lax.cumlogsumexp(y), np.logaddexp.accumulate(y))
    slope = np.asarray(ft.grad(lambda x: lax.cumlogsumexp(x, reverse=reverse).sum())(x))
    assert np.isfinite(slope).all()
    np.testing.assert_allclose(slope.sum(), 6, rtol=1e-4)


def test_two_barriers_stay_two():
    """A user who applies two barriers to have a value computed twice gets two; equal sums are merged."""

    def twice(x):
        return sum(lax.optimization_barrier(x) for _ in range(2)) + (x + 1) * (x + 1)

    text = ft.jit(twice).lower(np.ones(3, np.float32)).as_text()
    assert text.count("stablehlo.optimization_barrier") == 2 and text.count("dense<1.000000e+00>") == 1
    np.testing.assert_array_equal(ft.jit(twice)(np.ones(3)), np.full(3, 6.0))


def test_repeats_that_are_too_few_are_filled_up_with_the_last_element():
    x, counts = fnp.arange(1.0, 6.0), np.array([0, 2, 1, 0, 0])
    for repeat in (lambda n: fnp.repeat(x, n, total_repeat_length=5),
                   ft.jit(lambda n: fnp.repeat(x, n, total_repeat_length=5))):  # fmt: skip
        assert repeat(counts).tolist() == [2, 2, 3, 5, 5]


def test_traced_repeats_take_memory_for_elements_and_results_only():
    repeat = ft.jit(lambda x, n: fnp.repeat(x, n, total_repeat_length=40_000))
    counts = np.random.default_rng(0).integers(0, 4, 20_000)
    x = np.arange(20_000.0)
    want = np.repeat(x, counts)[:40_000]
    np.testing.assert_array_equal(repeat(x, counts)[: want.size], want)
    assert repeat.lower(x, counts).compile().memory_analysis()["temp"] < 10 << 20
    assert fnp.repeat(x[:3], counts[:3] > 9, total_repeat_length=2).tolist() == [2, 2]


@pytest.mark.parametrize("shift", [2**40, -(2**40), 7, -3])
def test_rolls_farther_than_32_bits(shift):
    x = np.arange(5)
    for given in (shift, fnp.asarray(shift), np.asarray(shift)):
        np.testing.assert_array_equal(fnp.roll(x, given), np.roll(x, shift))
    np.testing.assert_array_equal(ft.jit(fnp.roll)(x, np.asarray(shift)), np.roll(x, shift))
    np.testing.assert_array_equal(fnp.roll(fnp.arange(300), fnp.asarray(100, "int8")), np.roll(np.arange(300), 100))


@pytest.mark.parametrize(
    ("shift", "axis"), [([1, 2], 0), ([1], 0), ([1, 2], (0, 2)), ([1, 2], 1), ([1, 2], None), (1, (0, 1))]
)
def test_vectors_of_shifts(shift, axis):
    x = np.arange(24.0).reshape(2, 3, 4)
    for given in (shift, np.asarray(shift), fnp.asarray(shift)):
        np.testing.assert_array_equal(fnp.roll(x, given, axis), np.roll(x, shift, axis))
        np.testing.assert_array_equal(ft.jit(lambda x, s: fnp.roll(x, s, axis))(x, given), np.roll(x, shift, axis))


def test_rolls_of_rows_by_shifts_of_their_own():
    x, shifts = np.arange(24.0).reshape(4, 6), np.array([0, 1, -2, 15])
    want = [np.roll(row, n) for row, n in zip(x, shifts, strict=True)]
    np.testing.assert_array_equal(ft.vmap(fnp.roll)(x, shifts), want)
    with pytest.raises(DtypeError, match="roll"):
        fnp.roll(x, fnp.asarray(1.5))
    with pytest.raises(ShapeError, match="roll"):
        fnp.roll(x, np.ones((2, 2), int), 0)
