"""Counts as JAX makes them: by products of uniform numbers, sums of geometric ones, or rejection over whole arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functorch_like import dtypes, lax
from functorch_like import numpy as fnp
from functorch_like.lax.unbounded import run_while
from functorch_like.numpy import promotion
from functorch_like.primitives import structural
from functorch_like.random.drawing import streams
from functorch_like.random.jax_numbers.continuous import unit

#: A function of two arrays of uniform numbers: which elements accept a count, and the counts.
Proposal = Callable[[Any, Any], tuple[Any, Any]]

#: The mean from which counts are made by rejection.
_MANY = 10.0


# ---------------------------------------------------------------------------------------------------------- rejection
def _rejected(key: Any, needed: Any, propose: Proposal, shape: tuple[int, ...], dtype: Any) -> Any:
    """Propose for all elements at once, until each has accepted; a later round replaces what it accepts again."""

    def step(carry: Any) -> Any:
        accepted, counts, key = carry
        key, first, second = streams(key, 3)
        # Else the cipher would be compiled into each of the loops that read the numbers.
        u, v = (structural.materialize(unit(one, shape, dtype)) for one in (first, second))
        now, k = propose(u - 0.5, v)
        return accepted | now, fnp.where(now, k, counts), key

    more = lambda carry: ~carry[0].all() & needed
    start = (fnp.zeros(shape, bool), fnp.full(shape, -1, dtype), key)
    return run_while(more, step, start, "rejection sampling")[1]


def _squeezed(room: Any, v: Any, squeeze: Any, possible: Any, exact: Any) -> Any:
    return ((room >= 0.07) & (v <= squeeze)) | (possible & exact)


# ------------------------------------------------------------------------------------------------------------- Poisson
def poisson(key: Any, mean: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Draw from the Poisson distribution."""
    mean = fnp.broadcast_to(promotion.convert(mean, dtypes.float32), shape)
    few = fnp.isnan(mean) | (mean < _MANY)
    small = _products(key, fnp.where(few, mean, 0), dtype)
    large = _rejected(key, ~few.all(), _poisson_proposal(fnp.where(few, 1e5, mean)), shape, mean.dtype)
    return fnp.where(mean == 0, 0, fnp.where(few, small, large.astype(dtype))).astype(dtype)


def _products(key: Any, mean: Any, dtype: Any) -> Any:
    """Count uniform numbers whose product stays above exp(-mean). D. E. Knuth, TAOCP 2, 3.4.1."""

    def step(carry: Any) -> Any:
        count, key, log = carry
        key, one = streams(key, 2)
        drawn = fnp.log(unit(one, mean.shape, dtypes.float32))
        return fnp.where(log > -mean, count + 1, count).astype(dtype), key, log + drawn

    start = (fnp.zeros(mean.shape, dtype), key, fnp.zeros_like(mean))
    return run_while(lambda carry: (carry[2] > -mean).any(), step, start, "poisson")[0] - np.ones((), dtype)


def _poisson_proposal(mean: Any) -> Proposal:
    """W. Hörmann, "The transformed rejection method for generating Poisson random variables", 1993."""
    b = 0.931 + 2.53 * fnp.sqrt(mean)
    a = -0.059 + 0.02483 * b
    scale, squeeze = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)
    log_mean = fnp.log(mean)

    def propose(u: Any, v: Any) -> tuple[Any, Any]:
        room = 0.5 - abs(u)
        k = fnp.floor((2 * a / room + b) * u + mean + 0.43)
        exact = fnp.log(v * scale / (a / (room * room) + b)) <= -mean + k * log_mean - lax.lgamma(k + 1)
        return _squeezed(room, v, squeeze, ~((k < 0) | ((room < 0.013) & (v > room))), exact), k

    return propose


# ------------------------------------------------------------------------------------------------------------ binomial
def binomial(key: Any, n: Any, p: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Draw from the binomial distribution."""
    p = fnp.broadcast_to(promotion.to_inexact(p), shape)
    n = fnp.broadcast_to(promotion.convert(n, p.dtype), shape)
    rare = p < 0.5
    share = fnp.where(rare, p, 1 - p)
    trials, endless = fnp.floor(n), fnp.isinf(n)
    wrong = fnp.isnan(n) | (n < 0) | fnp.isnan(share) | (share < 0)
    share = fnp.where(fnp.isnan(share) | (share < 0), 0.01, share)
    few = fnp.isnan(n) | (n < 0) | (n * share <= _MANY)
    small = _geometric_sums(key, fnp.where(few, trials, 0), share, dtype)
    propose = _binomial_proposal(fnp.where(few, 10_000, trials), fnp.where(few, 0.5, share))
    count = fnp.where(few, small, _rejected(key, ~few.all(), propose, shape, p.dtype).astype(dtype))
    count = fnp.where(rare | endless, count, trials.astype(dtype) - count)
    return fnp.where(wrong, fnp.nan, fnp.where(endless, fnp.inf, count)).astype(dtype)


def _geometric_sums(key: Any, trials: Any, p: Any, dtype: Any) -> Any:
    """Count geometric numbers whose sum stays within the number of trials."""

    def step(carry: Any) -> Any:
        count, total, key = carry
        one, key = streams(key, 2)
        waited = fnp.ceil(fnp.log(unit(one, p.shape, p.dtype)) / fnp.log1p(-p))
        return fnp.where(total <= trials, count + 1, count), total + waited, key

    start = (fnp.zeros_like(p), fnp.zeros_like(p), key)
    return (run_while(lambda carry: (carry[1] <= trials).any(), step, start, "binomial")[0] - 1).astype(dtype)


def _binomial_proposal(n: Any, p: Any) -> Proposal:
    """W. Hörmann, "The generation of binomial random variates", 1993."""
    deviation = fnp.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    alpha, squeeze = (2.83 + 5.1 / b) * deviation, 0.92 - 4.2 / b
    odds, mode = p / (1 - p), fnp.floor((n + 1) * p)
    at_mode = (mode + 0.5) * fnp.log((mode + 1) / (odds * (n - mode + 1)))
    tails = _stirling(mode) + _stirling(n - mode)

    def propose(u: Any, v: Any) -> tuple[Any, Any]:
        room = 0.5 - abs(u)
        k = fnp.floor((2 * a / room + b) * u + (n * p + 0.5))
        bound = (
            at_mode
            + (n + 1) * fnp.log((n - mode + 1) / (n - k + 1))
            + (k + 0.5) * fnp.log(odds * (n - k + 1) / (k + 1))
            + tails - _stirling(k) - _stirling(n - k)
        )  # fmt: skip
        exact = fnp.log(v * alpha / (a / (room * room) + b)) <= bound
        return _squeezed(room, v, squeeze, ~((k < 0) | (k > n)), exact), k

    return propose


def _stirling(k: Any) -> Any:
    """Return what Stirling's formula leaves out of log k!."""
    exact = [math.lgamma(i + 1) - (i + 0.5) * math.log(i + 1) + i + 1 - 0.5 * math.log(2 * math.pi) for i in range(10)]
    small = fnp.clip(k, 0, 9)
    square = (small + 1) * (small + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (small + 1)
    return fnp.where(k <= 9, fnp.asarray(exact, k.dtype)[fnp.floor(small).astype("int32")], series)


def multinomial(key: Any, n: Any, p: Any, shape: tuple[int, ...], dtype: Any, unroll: int | bool) -> Any:
    """Draw from the multinomial distribution, each count from the trials that earlier ones leave."""
    n, p = (fnp.asarray(promotion.to_inexact(x)) for x in (n, p))
    wide = fnp.promote_types(n.dtype, p.dtype)
    n = fnp.broadcast_to(n.astype(wide), shape[:-1])
    p = fnp.moveaxis(fnp.broadcast_to(p.astype(wide), shape), -1, 0)
    left = lax.cumsum(p, 0, reverse=True)
    ratios = p / fnp.where(left == 0, 1, left)

    def step(trials: Any, given: Any) -> tuple[Any, Any]:
        ratio, one = given
        count = binomial(one, trials, fnp.clip(ratio, 0, 1), shape[:-1], trials.dtype)
        return trials - count, count

    keys = fnp.stack(streams(key, shape[-1]))
    _, counts = lax.scan(step, n, (ratios, keys), unroll=shape[-1] if unroll is True else unroll)
    return fnp.moveaxis(counts, 0, -1).astype(dtype)


def geometric(key: Any, p: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Draw from the geometric distribution."""
    p = fnp.asarray(promotion.to_inexact(p))
    u = unit(key, shape, p.dtype)
    waited = fnp.floor(fnp.log(fnp.where(u == 0, 1, u)) / fnp.log1p(-p)) + 1
    return fnp.broadcast_to(waited, shape).astype(dtype)
