"""The regularized incomplete beta function and its derivatives by a and b.

I = x**a (1 - x)**b / (a B(a, b)) times the continued fraction DLMF 8.17.22, by Lentz's algorithm, in float64. The
fraction converges slowly above x = (a + 1) / (a + b + 2): there it is 1 - I with a and b, x and 1 - x exchanged. The
derivatives by a and b are those of the fraction's terms. The factor in front is written around the distribution's
mean, so that nothing cancels in its exponent.
"""

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
from functorch_like.primitives.formulas.gamma import digamma, log1p_less, stirling
from functorch_like.primitives.formulas.term import Term, choose, iterate, where, widened

#: End of the fraction: a factor that should be 1 is off by three roundings.
_EPS, _MOST = 2.0**-51, 10000


# ---------------------------------------------------------------------------------------------------------- lowering
def _factor(a: Term, b: Term, x: Term, y: Term) -> Term:
    """x**a y**b / B(a, b), where y = 1 - x."""
    off = x * b - y * a  # of the mean a / (a + b), times a + b
    u, v = off / a, -(off / b)
    part = lambda n, r, z: where(abs(r) < 0.5, n * log1p_less(r), n * (z * (a + b) / n).log() - n * r)
    exponent = part(a, u, x) + part(b, v, y) + stirling(a + b) - stirling(a) - stirling(b)
    return exponent.exp() * (a / (a + b) * b / (2 * math.pi)).sqrt()


def _fraction(a: Term, b: Term, x: Term, by_a: Term, active: Term) -> tuple[Term, Term]:
    """The continued fraction, and the derivative of its logarithm: by a where `by_a` is 1, by b where it is 0."""

    def one(top: Term, dtop: Term, c: Term, dc: Term, d: Term, dd: Term) -> Any:
        new_d = 1 / (top * d + 1)
        new_dd = -(new_d * new_d) * (dtop * d + top * dd)
        new_c = top / c + 1
        new_dc = (dtop - top * dc / c) / c
        return new_c, new_dc, new_d, new_dd

    def odd(k: Any, a: Term, b: Term, x: Term, by_a: Term) -> tuple[Term, Term]:
        twice = a + k + k
        ratio = x * (a + b + k) / twice * ((a + k) / (twice + 1))
        log_a = 1 / (a + k) - 1 / twice - 1 / (twice + 1)
        return -ratio, -ratio * (by_a * log_a + 1 / (a + b + k))

    def step(k: Term, operands: Any, h: Term, g: Term, c: Term, dc: Term, d: Term, dd: Term) -> Any:
        a, b, x, by_a = operands
        twice = a + k + k
        shared = k * x / ((twice - 1) * twice)
        top = shared * (b - k)
        dtop = where(by_a > 0.5, -(top * (1 / (twice - 1) + 1 / twice)), shared)
        c, dc, d, dd = one(top, dtop, c, dc, d, dd)
        h, g = h * (c * d), g + dc / c + dd / d
        c, dc, d, dd = one(*odd(k, a, b, x, by_a), c, dc, d, dd)
        factor, change = c * d, dc / c + dd / d
        done = (abs(factor - 1) <= _EPS) & (abs(change) <= (abs(g) + abs(dc / c)) * _EPS)
        return (h * factor, g + change, c, dc, d, dd), done

    first, dfirst = odd(0, a, b, x, by_a)
    d = 1 / (first + 1)
    dd = -(d * d * dfirst)
    start = [d, dd / d, a.like(1), a.like(0), d, dd]
    return tuple(iterate(start, [a, b, x, by_a], active, step, _MOST)[:2])  # type: ignore[return-value]


#: End of the fraction for results in single precision, and its pairs of steps between two looks at that.
_EPS_SINGLE, _PAIRS = 1e-10, 4


def _fraction_single(a: Term, b: Term, x: Term, active: Term) -> Term:
    """The fraction as a quotient of two recurrences, scaled after each few steps (DLMF 3.10.5)."""

    def step(k: Term, operands: Any, value: Term, n: Term, d: Term, n1: Term, d1: Term) -> Any:
        a, b, x = operands
        before = value
        for j in range(_PAIRS):
            m = k * _PAIRS - (_PAIRS - 1 - j)
            twice = a + m + m
            inverse = x / (twice * (twice * twice - 1))  # one division for both coefficients
            even = m * (b - m) * (twice + 1) * inverse
            odd = -(a + m) * (a + b + m) * (twice - 1) * inverse
            n, d, n1, d1 = n1, d1, n1 + even * n, d1 + even * d
            n, d, n1, d1 = n1, d1, n1 + odd * n, d1 + odd * d
        inverse = 1 / d1
        value = n1 * inverse
        done = abs(value - before) <= abs(value) * _EPS_SINGLE
        return (value, n * inverse, d * inverse, value, value * 0 + 1), done

    one = a.like(1)
    first = 1 - x * (a + b) / (a + 1)
    start = [a.like(0), one, one, one, first]
    return iterate(start, [a, b, x], active, step, _MOST // _PAIRS)[0]


def _formula_single(a: Term, b: Term, x: Term) -> Term:
    return _formula(a, b, x, single=True)


def _formula(a: Term, b: Term, x: Term, wrt: int | None = None, single: bool = False) -> Term:
    inside = (a > 0) & (b > 0) & (x > 0) & (x < 1) & (a < math.inf) & (b < math.inf)
    p, q, z = where(inside, a, 1), where(inside, b, 1), where(inside, x, 0.5)
    swap = z > (p + 1) / (p + q + 2)
    p, q, z, y = where(swap, q, p), where(swap, p, q), where(swap, 1 - z, z), where(swap, z, 1 - z)
    by_first = where(swap, z.like(1 - (wrt or 0)) * -1 + 1, z.like(1 - (wrt or 0)))
    h, g = (_fraction_single(p, q, z, inside), z) if single else _fraction(p, q, z, by_first, inside)
    value = _factor(p, q, z, y) * h / p
    edge = 0.0
    if wrt is None:
        value, edge = where(swap, 1 - value, value), 1.0
    else:
        total = digamma(p + q)
        slope = where(by_first > 0.5, z.log() + total - digamma(p) - 1 / p, y.log() + total - digamma(q))
        value = value * (slope + g)
        value = where(swap, -value, value)
    valid = (a >= 0) & (b >= 0) & (x >= 0) & (x <= 1)
    empty = (a.equals(0) & b.equals(0)) | (a.equals(math.inf) & b.equals(math.inf))
    high = (valid & ~empty) & (x.equals(1) | ((a.equals(0) | b.equals(math.inf)) & (x > 0)))
    return choose(x.like(math.nan), (inside, value), (high, x.like(edge)), (valid & ~empty, x.like(0)))


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
    powers = elementwise.add(
        elementwise.mul(elementwise.sub(a, one), elementwise.log(x)),
        elementwise.mul(elementwise.sub(b, one), elementwise.log1p(elementwise.neg(x))),
    )
    return elementwise.exp(elementwise.add(front, powers))


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
    "regularized_incomplete_beta", each(_value), widened(_formula, _formula_single), count=3,
    takes="f", jvp=_jvp, samples=_samples({}),
)  # fmt: skip


def _grad_jvp(primals: Any, tangents: Any, *, wrt: int) -> Any:
    a, b, x = primals
    primitive = functools.partial(incomplete_beta_grad, wrt=wrt)
    total = elementwise.digamma(elementwise.add(a, b))

    def by_x() -> Any:
        logs = (
            elementwise.sub(elementwise.log1p(elementwise.neg(x)), elementwise.digamma(b))
            if wrt
            else elementwise.sub(elementwise.log(x), elementwise.digamma(a))
        )
        return elementwise.mul(_density(a, b, x), elementwise.add(logs, total))

    slopes = (lambda: difference(primitive, 0, a, b, x), lambda: difference(primitive, 1, a, b, x), by_x)
    return primitive(a, b, x), _sum(zip(tangents, slopes, strict=True))


def _grad_samples() -> list[SampleInput]:
    return [*_samples({"wrt": 0})(), *_samples({"wrt": 1})()]


#: The derivative of regularized_incomplete_beta by its operand `wrt`, 0 or 1. Its own
#: derivatives by operands 0 and 1 are finite differences.
incomplete_beta_grad = elementwise_primitive(
    "incomplete_beta_grad", lambda a, b, x, *, wrt: each(_grad(wrt))(a, b, x), widened(_formula), count=3, takes="f",
    jvp=_grad_jvp, samples=_grad_samples, shape=lambda *avals, wrt: regularized_incomplete_beta.shape(*avals),
)  # fmt: skip
