"""The regularized incomplete beta function and its derivatives by a and b."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import SampleInput
from functorch_like.primitives import elementwise
from functorch_like.primitives.base.elementwise_makers import add, elementwise_primitive
from functorch_like.primitives.base.shapes import full_like
from functorch_like.primitives.elementwise.erf_and_gamma import digamma_of, each
from functorch_like.primitives.elementwise.incomplete_gamma import difference
from functorch_like.primitives.elementwise.log_power import log_beside_power, power_factors
from functorch_like.primitives.formulas.incomplete_beta import SINGLE, formula
from functorch_like.primitives.formulas.term import widened


# ----------------------------------------------------------------------------------------------- the meaning, in NumPy
def _value(a: float, b: float, x: float) -> float:
    """Sum the series DLMF 8.17.7, of terms of one sign after the first few."""
    if not (a > 0 and b > 0 and 0 <= x <= 1):
        return math.nan
    if x in (0, 1):
        return float(x)
    if x > 0.5:
        return 1 - _value(b, a, 1 - x)
    return _series(a, b, x)[0]


def _series(a: float, b: float, x: float) -> tuple[float, float, float]:
    """I and its derivatives by a and b: x**a y**b / (a B) times the sum of (a + b)_n x**n / (a + 1)_n, DLMF 8.17.8."""
    front = math.lgamma(a + b) - math.lgamma(a + 1) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    term, total, by_a, by_b, log_a, log_b = 1.0, 1.0, 0.0, 0.0, 0.0, 0.0
    for n in range(100000):
        term *= (a + b + n) * x / (a + 1 + n)
        log_b += 1 / (a + b + n)
        log_a += 1 / (a + b + n) - 1 / (a + 1 + n)
        total, by_a, by_b = total + term, by_a + term * log_a, by_b + term * log_b
        if term * (1 + abs(log_b)) < 1e-18 * total:
            break
    shared, factor = digamma_of(a + b), math.exp(front)
    slope_a = total * (math.log(x) + shared - digamma_of(a + 1)) + by_a
    slope_b = total * (math.log1p(-x) + shared - digamma_of(b)) + by_b
    return factor * total, factor * slope_a, factor * slope_b


def _grad(wrt: int) -> Any:
    def of(a: float, b: float, x: float) -> float:
        if not (a > 0 and b > 0 and 0 < x < 1):
            return 0.0 if x in (0, 1) else math.nan
        return -_series(b, a, 1 - x)[2 - wrt] if x > 0.5 else _series(a, b, x)[1 + wrt]

    return of


# ----------------------------------------------------------------------------------------------------------- primitives
def _density(a: Any, b: Any, x: Any) -> Any:
    one = full_like(x, 1)
    front = elementwise.sub(
        elementwise.sub(elementwise.lgamma(elementwise.add(a, b)), elementwise.lgamma(a)), elementwise.lgamma(b)
    )
    log, factor = power_factors(elementwise.sub(a, one), x)
    log1p, factor1p = power_factors(elementwise.sub(b, one), elementwise.neg(x), elementwise.log1p, zero=-1)
    inner = elementwise.exp(elementwise.add(front, elementwise.add(log, log1p)))
    return elementwise.mul(elementwise.mul(factor, factor1p), inner)


def _sum(terms: Any) -> Any:
    total = None
    for g, slope in terms:
        if g is not None:
            t = elementwise.mul(g, slope())
            total = t if total is None else add(total, t)
    return total


def _samples(params: Any) -> Any:
    def made() -> list[SampleInput]:
        rng = np.random.default_rng(5)

        def one(shape: tuple[int, ...], dtype: Any) -> SampleInput:
            x = np.asarray(rng.uniform(0.1, 0.9, shape)).astype(dtype)
            return SampleInput((ShapedArray(shape, dtype), ShapedArray(shape, dtype), x), dict(params), (0.5, 4.0))

        kinds = [((), "float32"), ((2, 3), "float32"), ((0, 2), "float32")]
        kinds += [((5,), d) for d in ("float64", "float16", dtypes.bfloat16)]
        return [one(*kind) for kind in kinds]

    return made


def _jvp(primals: Any, tangents: Any) -> Any:
    a, b, x = primals
    slopes = (
        lambda: incomplete_beta_grad(a, b, x, wrt=0),
        lambda: incomplete_beta_grad(a, b, x, wrt=1),
        lambda: _density(a, b, x),
    )
    return regularized_incomplete_beta(a, b, x), _sum(zip(tangents, slopes, strict=True))


regularized_incomplete_beta = elementwise_primitive(
    "regularized_incomplete_beta", each(_value), widened(formula(), formula(eps=SINGLE)), count=3,
    takes="f", jvp=_jvp, samples=_samples({}),
)  # fmt: skip


def _grad_jvp(primals: Any, tangents: Any, *, wrt: int) -> Any:
    a, b, x = primals
    primitive = functools.partial(incomplete_beta_grad, wrt=wrt)
    total = elementwise.digamma(elementwise.add(a, b))

    def by_x() -> Any:
        exponent = elementwise.sub(b if wrt else a, full_like(x, 1))
        log = (
            log_beside_power(exponent, elementwise.neg(x), elementwise.log1p, zero=-1)
            if wrt
            else log_beside_power(exponent, x)
        )
        slope = elementwise.add(elementwise.sub(log, elementwise.digamma(b if wrt else a)), total)
        return elementwise.mul(_density(a, b, x), slope)

    slopes = (lambda: difference(primitive, 0, a, b, x), lambda: difference(primitive, 1, a, b, x), by_x)
    return primitive(a, b, x), _sum(zip(tangents, slopes, strict=True))


def _grad_samples() -> list[SampleInput]:
    return [*_samples({"wrt": 0})(), *_samples({"wrt": 1})()]


def _lower_grad(e: Any, *operands: Any, wrt: int) -> Any:
    return widened(formula(wrt))(e, *operands)


#: The derivative of regularized_incomplete_beta by its operand `wrt`, 0 or 1. Its own
#: derivatives by operands 0 and 1 are finite differences.
incomplete_beta_grad = elementwise_primitive(
    "incomplete_beta_grad", lambda a, b, x, *, wrt: each(_grad(wrt))(a, b, x), _lower_grad, count=3, takes="f",
    jvp=_grad_jvp, samples=_grad_samples, shape=lambda *avals, wrt: regularized_incomplete_beta.shape(*avals),
)  # fmt: skip
