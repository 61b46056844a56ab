"""Distributions of counts: Poisson, binomial, multinomial, geometric. All are computed in float64.

Poisson and binomial counts of a mean below 10 are found by a search through the cumulative probabilities; those of
larger means by rejection.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes, lax
from functorch_like import numpy as fnp
from functorch_like.backends import random as settings
from functorch_like.core import aval_of
from functorch_like.errors import DtypeError, ShapeError
from functorch_like.lax.unbounded import run_while
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import shape_of
from functorch_like.random.arguments import check_key
from functorch_like.random.continuous import F64, float_dtype, inside, parameter, spread, unit
from functorch_like.random.drawing import Body, accepted, sizes_of, streams
from functorch_like.random.jax_numbers import or_jax
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike, Shape

#: The mean from which rejection is used.
_MANY = 10.0
#: End of the search: with a mean below `_MANY`, a greater count has a probability of less than 1e-60.
_LAST = 100


def _width() -> Any:
    """Return the dtype of Python's numbers as parameters."""
    return F64 if settings.are_native() else dtypes.default_float()


def _counted(body: Body, key: Any, values: Mapping[str, Any], sizes: tuple[int, ...], dtype: Any, what: str) -> Any:
    key = check_key(key, what)
    parameters = tuple(parameter(v, _width(), sizes, n) for n, v in values.items())
    return _drawn(key, parameters, body=body, shape=sizes, dtype=dtype)


@eager_jit(static=("body", "shape", "dtype"))
def _drawn(key: Any, parameters: Any, body: Body, shape: tuple[int, ...], dtype: Any) -> Any:
    return body(key, *parameters, shape, dtype)


def _in_float64(count: Callable[..., Any]) -> Body:
    """Make a kernel of a function from a key and float64 parameters, in the result's shape, to whole floats."""

    @functools.wraps(count)
    def body(key: Any, *given: Any) -> Any:
        *parameters, shape, dtype = given
        counts = count(key, *(spread(p, F64, shape) for p in parameters))
        if dtypes.is_integer(dtype):
            low, high = promotion.bounds(dtype)
            # The greatest float64 up to the bound, which for 64-bit integers is below the bound.
            top = float(high) if int(float(high)) <= high else float(np.nextafter(float(high), 0.0))
            counts = fnp.clip(fnp.where(fnp.isnan(counts), -1, counts), low, top)
        return promotion.convert(counts, dtype)

    return body


def _int_dtype(dtype: Any, what: str) -> Any:
    result = dtypes.default_int() if dtype is None else dtypes.as_dtype(dtype)
    if result not in (*dtypes.SIGNED, *dtypes.UNSIGNED):
        raise promotion.error(DtypeError, f"{what} gives integers, not {result.name}", "use an integer dtype")
    return result


def _searched(u: Any, mask: Any, first: Any, ratio: Callable[[Any], Any]) -> Any:
    """Return the first count whose cumulative probability is above u, where p(k + 1) = p(k) ratio(k)."""

    def step(carry: Any) -> Any:
        k, above, probability, total, count = carry
        probability = probability * ratio(k)
        total = total + probability
        return k + 1, above & (u >= total), probability, total, fnp.where(above, k + 1, count)

    start = (fnp.zeros((), F64), mask & (u >= first), first, first, fnp.zeros_like(u))
    more = lambda carry: (carry[0] < _LAST) & carry[1].any()
    return run_while(more, step, start, "search of a count", expected_steps=_LAST // 4)[4]


# ------------------------------------------------------------------------------------------------------------- Poisson
def poisson(key: ArrayLike, lam: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Samples of the Poisson distribution.

    W. Hörmann, "The transformed rejection method for generating Poisson random variables", Insurance: Mathematics and
    Economics 12, 1993.

    Args:
        key: uint32[2].
        lam: mean, at least 0; number or array. Where it is negative or NaN the count is -1, or 0 if unsigned.
        shape: shape of the result; by default that of lam.
        dtype: int32 by default; any integer. Larger counts become the largest that it holds.

    Returns:
        Integers of that shape.

    Raises:
        DtypeError: for anything but a key, or a dtype that is not an integer.
        ShapeError: where lam does not broadcast to the shape.

    >>> random.poisson(random.key(0), 3.0, (2,)).dtype.name
    'int32'
    """
    what, values = "random.poisson", {"lam": lam}
    return _counted(_poisson, key, values, sizes_of(values, shape, what), _int_dtype(dtype, what), what)


@or_jax("counts.poisson")
@_in_float64
def _poisson(key: Any, lam: Any) -> Any:
    shape = aval_of(lam).shape
    below, above = streams(key, 2)
    few, many = (lam >= 0) & (lam < _MANY), (lam >= _MANY) & (lam < fnp.inf)
    small = fnp.where(few, lam, 1)
    count = _searched(unit(below, shape, F64), few, fnp.exp(-small), lambda k: small / (k + 1))
    count = accepted(above, many, count, _poisson_proposal, fnp.where(many, lam, _MANY))
    return fnp.where(lam >= 0, fnp.where(lam < fnp.inf, count, fnp.inf), fnp.nan)


def _poisson_proposal(u: Any, v: Any, mean: Any) -> tuple[Any, Any]:
    b = 0.931 + 2.53 * fnp.sqrt(mean)
    a = -0.059 + 0.02483 * b
    scale, squeeze = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)
    u = u - 0.5
    room = 0.5 - abs(u)
    k = fnp.floor((2 * a / room + b) * u + mean + 0.43)
    log_ratio = fnp.log(v * scale / (a / room**2 + b))
    exact = log_ratio <= k * fnp.log(mean) - mean - _log_factorial(fnp.maximum(k, 0))
    return _passes(room, v, squeeze, exact, k >= 0), k


def _log_factorial(k: Any) -> Any:
    """Return log k! of whole numbers, to 1e-10: by Stirling's series (DLMF 5.11.1), with a recurrence for small k."""
    x = k + 1
    small = x < 8
    product, rising = fnp.where(small, x, 1), x
    for _ in range(7):
        rising = rising + 1
        product = product * fnp.where(small, rising, 1)
    y = fnp.where(small, rising + 1, x)
    z = 1 / y**2
    series = (1 / 12 - (1 / 360 - (1 / 1260 - z / 1680) * z) * z) / y
    return (y - 0.5) * fnp.log(y) - y + 0.5 * math.log(2 * math.pi) + series - fnp.log(product)


def _passes(room: Any, v: Any, squeeze: Any, exact: Any, possible: Any) -> Any:
    """Return what the transformed rejection method accepts: by its quick tests, and else by the exact one."""
    return ((room >= 0.07) & (v <= squeeze)) | (possible & ~((room < 0.013) & (v > room)) & exact)


# ------------------------------------------------------------------------------------------------------------ binomial
def binomial(
    key: ArrayLike, n: ArrayLike, p: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Samples of the binomial distribution: how many of n trials succeed, each with probability p.

    W. Hörmann, "The generation of binomial random variates", Journal of Statistical Computation and Simulation 46,
    1993.

    Args:
        key: uint32[2].
        n: whole numbers, at least 0; number or array.
        p: from 0 to 1; number or array. Where n or p is out of bounds the count is NaN.
        shape: shape of the result; by default that to which both broadcast.
        dtype: float32 by default; float64, float16, bfloat16.

    Returns:
        Whole numbers, as floats.

    Raises:
        DtypeError: for anything but a key, or a dtype that is not a float.
        ShapeError: where n or p does not broadcast to the shape.

    >>> random.binomial(random.key(0), 5, fnp.asarray([0.0, 1.0])).tolist()
    [0.0, 5.0]
    """
    what, values = "random.binomial", {"n": n, "p": p}
    return _counted(_binomial_counts, key, values, sizes_of(values, shape, what), float_dtype(dtype, what), what)


def _binomial(key: Any, n: Any, p: Any) -> Any:
    shape = aval_of(n).shape
    below, above = streams(key, 2)
    proper = (n >= 0) & (n < fnp.inf) & (p >= 0) & (p <= 1)
    turned = p > 0.5
    rare = fnp.where(proper, fnp.where(turned, 1 - p, p), 0.5)
    trials = fnp.where(proper, fnp.floor(n), 1)
    many = proper & (trials * rare >= _MANY)
    few = proper & ~many
    odds, fails = rare / (1 - rare), fnp.log1p(-rare)
    first = fnp.where(few, fnp.exp(trials * fails), 1)
    ratio = lambda k: fnp.maximum(trials - k, 0) / (k + 1) * odds
    count = _searched(unit(below, shape, F64), few, first, ratio)
    count = fnp.minimum(count, trials)  # the probabilities may add up to a little less than 1
    m, q = fnp.where(many, trials, 4 * _MANY), fnp.where(many, rare, 0.5)
    count = accepted(above, many, count, _binomial_proposal, m, q)
    return fnp.where(proper, fnp.where(turned, trials - count, count), fnp.nan)


_binomial_counts = or_jax("counts.binomial")(_in_float64(_binomial))


def _binomial_proposal(u: Any, v: Any, n: Any, p: Any) -> tuple[Any, Any]:
    deviation = fnp.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    alpha, squeeze = (2.83 + 5.1 / b) * deviation, 0.92 - 4.2 / b
    mode = fnp.floor((n + 1) * p)
    u = u - 0.5
    room = 0.5 - abs(u)
    k = fnp.floor((2 * a / room + b) * u + n * p + 0.5)
    at = fnp.clip(k, 0, n)
    log_ratio = fnp.log(v * alpha / (a / room**2 + b))
    likely = _log_factorial(mode) + _log_factorial(n - mode) - _log_factorial(at) - _log_factorial(n - at)
    exact = log_ratio <= likely + (at - mode) * (fnp.log(p) - fnp.log1p(-p))
    return _passes(room, v, squeeze, exact, (k >= 0) & (k <= n)), k


def multinomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    unroll: int | bool = 1,
) -> Array:
    """Samples of the multinomial distribution: how often each outcome occurs in n trials.

    Each count is a binomial sample, of the trials that earlier outcomes leave.

    Args:
        key: uint32[2].
        n: (...,): whole numbers, at least 0; number or array.
        p: (..., k): probabilities of the outcomes, or weights.
        shape: shape of the result, (..., k); by default that of p, its leading dimensions broadcast with n.
        dtype: float32 by default; another float or an integer.
        unroll: number of outcomes in one round of the compiled loop; True for all.

    Returns:
        Whole numbers, in this dtype.

    Raises:
        DtypeError: for anything but a key, or a dtype of another kind.
        ShapeError: where p is a number, or n or p does not broadcast to the shape.

    >>> random.multinomial(random.key(0), 9, fnp.asarray([0.2, 0.3, 0.5])).sum().item()
    9.0
    """
    what = "random.multinomial"
    key = check_key(key, what)
    sizes = aval_of(p).shape
    if not sizes:
        raise promotion.error(ShapeError, f"{what} takes a vector p, got a scalar", "give one number for each outcome")
    lead = promotion.broadcast_shapes(aval_of(n).shape, sizes[:-1]) if shape is None else shape_of(shape, what)[:-1]
    whole = (*lead, sizes[-1]) if shape is None else shape_of(shape, what)
    trials, weights = parameter(n, _width(), lead, "n"), parameter(p, _width(), whole, "p")
    asked = None if dtype is None else dtypes.as_dtype(dtype)
    if asked is not None and dtypes.is_integer(asked):
        counts = _multinomial(key, trials, weights, shape=whole, dtype=_width(), unroll=unroll)
        return fnp.asarray(counts, asked)
    return _multinomial(key, trials, weights, shape=whole, dtype=float_dtype(dtype, what), unroll=unroll)


@eager_jit(static=("shape", "dtype", "unroll"))
@or_jax("counts.multinomial")
def _multinomial(key: Any, n: Any, p: Any, shape: tuple[int, ...], dtype: Any, unroll: int | bool) -> Any:
    n, p = spread(n, F64, shape[:-1]), fnp.moveaxis(spread(p, F64, shape), -1, 0)
    if not shape[-1]:
        return fnp.zeros(shape, dtype)
    left = fnp.flip(fnp.cumsum(fnp.flip(p, 0), axis=0), 0)
    share = fnp.where(left > 0, p / fnp.where(left > 0, left, 1), 0)
    keys = fnp.stack(streams(key, shape[-1]))

    def step(trials: Any, given: Any) -> tuple[Any, Any]:
        one, part = given
        count = _binomial(one, trials, fnp.clip(part, 0, 1))
        return trials - count, count

    _, counts = lax.scan(step, n, (keys, share), unroll=shape[-1] if unroll is True else unroll)
    return promotion.convert(fnp.moveaxis(counts, 0, -1), dtype)


# ----------------------------------------------------------------------------------------------------------- geometric
def geometric(key: ArrayLike, p: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Samples of the geometric distribution: the number of trials up to and including the first success.

    Args:
        key: uint32[2].
        p: probability that a trial succeeds, above 0; number or array. Where it is out of bounds the count is -1, or
            0 if unsigned.
        shape: shape of the result; by default that of p.
        dtype: int32 by default; any integer. Larger counts become the largest that it holds.

    Returns:
        Integers of that shape, 1 or more.

    Raises:
        DtypeError: for anything but a key, or a dtype that is not an integer.
        ShapeError: where p does not broadcast to the shape.

    >>> random.geometric(random.key(0), 1.0, (2,)).tolist()
    [1, 1]
    """
    what, values = "random.geometric", {"p": p}
    return _counted(_geometric, key, values, sizes_of(values, shape, what), _int_dtype(dtype, what), what)


@or_jax("counts.geometric")
@_in_float64
def _geometric(key: Any, p: Any) -> Any:
    count = fnp.floor(fnp.log(inside(key, aval_of(p).shape, F64)) / fnp.log1p(-p)) + 1
    return fnp.where((p > 0) & (p <= 1), count, fnp.nan)
