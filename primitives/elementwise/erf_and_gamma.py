"""Special functions: erf erfc erf_inv lgamma digamma polygamma."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.primitives.base.elementwise_makers import unary
from functorch_like.primitives.base.lowering import Lowering
from functorch_like.primitives.base.shapes import full_like
from functorch_like.primitives.elementwise import erf_double_cpu, gamma_double_cpu
from functorch_like.primitives.elementwise.arithmetic import mul, neg, square
from functorch_like.primitives.elementwise.exponential_double_cpu import inverse_erf
from functorch_like.primitives.elementwise.transcendental import exp
from functorch_like.primitives.elementwise.vectorized_cpu import DIGAMMA, LGAMMA, large_double
from functorch_like.primitives.formulas import gamma_single
from functorch_like.primitives.formulas import special as formulas
from functorch_like.primitives.formulas.gamma import lgamma1p_near
from functorch_like.primitives.formulas.term import Term, in_single, operation, where, widened

_ROOT_PI = math.sqrt(math.pi)


def each(scalar: Callable[..., float]) -> Callable[..., Any]:
    """A function of Python floats, applied to each element."""
    vectorised = np.vectorize(scalar, otypes=[np.float64])

    def ref(x: np.ndarray, *rest: np.ndarray) -> Any:
        out = vectorised(*[np.asarray(a, np.float64) for a in (x, *rest)]) if x.size else np.zeros(x.shape)
        return out.astype(x.dtype)

    return ref


def _erf_inv(y: float) -> float:
    if not -1 < y < 1:
        return math.copysign(math.inf, y) if abs(y) == 1 else math.nan
    w = math.log1p(-y * y)
    a = 2 / (math.pi * 0.147) + w / 2
    x = math.copysign(math.sqrt(math.sqrt(a * a - w / 0.147) - a), y)  # to two digits (Winitzki, 2008)
    for _ in range(4):
        slope = 2 / _ROOT_PI * math.exp(-x * x)
        error = math.erf(x) - y if abs(y) < 0.5 else math.copysign(1, y) * (1 - abs(y) - math.erfc(abs(x)))
        x -= error / (slope + x * error)  # Halley
    return x


def _lgamma(x: float) -> float:
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


def _hurwitz(s: int, a: float) -> float:
    """The sum of (a + k)**-s, by Euler and Maclaurin."""
    n = math.ceil(max(12.0, 12.0 - a))
    total = math.fsum((a + k) ** -s for k in range(n))
    x = a + n
    total += x ** (1 - s) / (s - 1) + x**-s / 2
    factor = s * x ** (-s - 1)
    for k, bernoulli in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)):
        total += bernoulli * factor / math.factorial(2 * k + 2)
        factor *= (s + 2 * k + 1) * (s + 2 * k + 2) / (x * x)
    return total


def digamma_of(x: float) -> float:
    """Digamma of a Python float."""
    if x == 0:
        return -math.copysign(math.inf, x)
    if math.isnan(x) or x == -math.inf or (x <= 0 and x == math.floor(x)):
        return math.nan
    if x < 0.5:
        return digamma_of(1 - x) - math.pi / math.tan(math.pi * (x - round(x)))
    total = 0.0
    while x < 12:
        total, x = total - 1 / x, x + 1
    if x == math.inf:
        return x
    power, series = 1 / (x * x), 0.0
    for k, bernoulli in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730)):
        series += bernoulli / (2 * k + 2) * power ** (k + 1)
    return total + math.log(x) - 0.5 / x - series


def _polygamma(x: float, m: float) -> float:
    if m == 0:
        return digamma_of(x)
    if math.isnan(x) or x == -math.inf:
        return math.nan
    if x == math.inf or (x <= 0 and x == math.floor(x)):
        return 0.0 if x > 0 else math.inf if m % 2 else math.nan
    return (-1) ** (int(m) + 1) * math.factorial(int(m)) * _hurwitz(int(m) + 1, x)


erf = unary(
    "erf",
    each(math.erf),
    Lowering("erf", operation("chlo.erf"), erf_double_cpu.ERF),
    lambda g, x, y: mul(g, mul(full_like(x, 2 / _ROOT_PI), exp(neg(square(x))))),
    takes="f",
)


def _by(formula: Callable[[Term], Term], other: str, *only: Any) -> Any:
    """Return a lowering to a formula in some dtypes (single and double precision by default), else to an operation."""
    kept = only or (dtypes.float32, dtypes.float64)

    def lower(e: Any, x: Any) -> Any:
        (out,) = e.outs
        return formula(Term(e, x, out)).v if out.dtype in kept else e.op(other, [x], [out])

    return lower


erfc = unary(
    "erfc", each(math.erfc), _by(formulas.erfc, "chlo.erfc"),
    lambda g, x, y: mul(g, mul(full_like(x, -2 / _ROOT_PI), exp(neg(square(x))))), takes="f",
)  # fmt: skip


def _erf_inv_formula(x: Term) -> Term:
    return (formulas.erf_inv_refined if x.aval.dtype == dtypes.float64 else formulas.erf_inv_single)(x)


_ERF_INV = Lowering(
    "erf_inv",
    _by(_erf_inv_formula, "chlo.erf_inv"),
    large_double("erf_inv", inverse_erf, domain=(-1.0, 1.0)),
)
erf_inv = unary(
    "erf_inv", each(_erf_inv), _ERF_INV,
    lambda g, x, y: mul(g, mul(full_like(x, _ROOT_PI / 2), exp(square(y)))), takes="f", domain=(-0.9, 0.9),
)  # fmt: skip


def _lgamma_formula(x: Term) -> Term:
    near = (x >= 0.5) & (x <= 3.5)
    return where(near, lgamma1p_near(where(near, x - 1, 0)), x.apply("chlo.lgamma"))


_DIGAMMA = Lowering("digamma", in_single(formulas.digamma), DIGAMMA, gamma_double_cpu.DIGAMMA)
lgamma = unary(
    "lgamma", each(_lgamma), Lowering("lgamma", in_single(_lgamma_formula), LGAMMA, gamma_double_cpu.LGAMMA),
    lambda g, x, y: mul(g, digamma(x)), takes="f", domain=(0.3, 4.0),
)  # fmt: skip
digamma = unary(
    "digamma", each(digamma_of), _DIGAMMA,
    lambda g, x, y: mul(g, polygamma(x, m=1)), takes="f", domain=(0.3, 4.0),
)  # fmt: skip


def _polygamma_lower(e: Any, x: Any, *, m: int) -> Any:
    return _DIGAMMA(e, x) if m == 0 else widened(gamma_double_cpu.polygamma, gamma_single.polygamma)(e, x, m=m)


#: The m-th derivative of digamma.
polygamma = unary(
    "polygamma", lambda x, *, m: each(_polygamma)(x, np.full(x.shape, m)), _polygamma_lower,
    lambda g, x, y, *, m: mul(g, polygamma(x, m=m + 1)), takes="f", domain=(0.3, 4.0),
    params=({"m": 0}, {"m": 1}, {"m": 3}),
)  # fmt: skip
