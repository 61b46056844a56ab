"""Floor 4. Special functions: erf erfc erf_inv lgamma digamma polygamma."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.primitives.analysis import exp
from functorch_like.primitives.arithmetic import mul, neg, square
from functorch_like.primitives.formulas import Term, choose, where
from functorch_like.primitives.gamma_formulas import lgamma1p
from functorch_like.primitives.rows import unary
from functorch_like.primitives.shapes import full_like

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
    "chlo.erf",
    lambda g, x, y: mul(g, mul(full_like(x, 2 / _ROOT_PI), exp(neg(square(x))))),
    takes="f",
)
erfc = unary(
    "erfc", each(math.erfc), "chlo.erfc",
    lambda g, x, y: mul(g, mul(full_like(x, -2 / _ROOT_PI), exp(neg(square(x))))), takes="f",
)  # fmt: skip


def _erf_inv_lower(e: Any, x: Any) -> Any:
    """In double precision XLA's is good to 12 digits; a step of Halley's method on erf or erfc gives the rest."""
    (out,) = e.outs
    found = e.op("chlo.erf_inv", [x], [out])
    if out.dtype != dtypes.float64:
        return found
    y, start = Term(e, x, out), Term(e, found, out)
    inside = abs(y) < 1
    guess = where(inside, start, 0)
    size = abs(guess)
    below = size.apply("chlo.erf") - abs(y)
    error = where(abs(y) < 0.5, below, (1 - abs(y)) - size.apply("chlo.erfc"))
    slope = (-size * size).exp() * (2 / _ROOT_PI)
    better = size - error / (slope + size * error)
    return choose(start, (inside & (abs(y) > 0), where(y < 0, -better, better))).v


erf_inv = unary(
    "erf_inv", each(_erf_inv), _erf_inv_lower, lambda g, x, y: mul(g, mul(full_like(x, _ROOT_PI / 2), exp(square(y)))),
    takes="f", domain=(-0.9, 0.9),
)  # fmt: skip


def _lgamma_lower(e: Any, x: Any) -> Any:
    """Around its zeros at 1 and 2 by a Taylor series, which keeps its digits there; up to 3.5 by recurrence."""
    (out,) = e.outs
    if out.dtype not in (dtypes.float32, dtypes.float64):
        return e.op("chlo.lgamma", [x], [out])
    term = Term(e, x, out)
    near, next_ = (term >= 0.5) & (term <= 3.5), term > 2.5
    less = where(near, term - 1, 0)
    value = lgamma1p(where(next_, less - 1, less)) + where(near & next_, less, 1).log()
    return where(near, value, term.apply("chlo.lgamma")).v


lgamma = unary("lgamma", each(_lgamma), _lgamma_lower, lambda g, x, y: mul(g, digamma(x)), takes="f", domain=(0.3, 4.0))


def _digamma_lower(e: Any, x: Any) -> Any:
    """At 0 the infinity of the side it is reached from."""
    (out,) = e.outs
    zero = e.compare("EQ", x, e.full(0, out), out.update(dtype=dtypes.bool_, weak_type=False), "FLOAT")
    pole = e.op("stablehlo.divide", [e.full(-1, out), x], [out])
    return e.op("stablehlo.select", [zero, pole, e.op("chlo.digamma", [x], [out])], [out])


digamma = unary(
    "digamma", each(digamma_of), _digamma_lower, lambda g, x, y: mul(g, polygamma(x, m=1)), takes="f", domain=(0.3, 4.0)
)


def _polygamma_lower(e: Any, x: Any, *, m: int) -> Any:
    return e.op("chlo.polygamma", [e.full(m, e.outs[0]), x], e.outs)


#: The m-th derivative of digamma.
polygamma = unary(
    "polygamma", lambda x, *, m: each(_polygamma)(x, np.full(x.shape, m)), _polygamma_lower,
    lambda g, x, y, *, m: mul(g, polygamma(x, m=m + 1)), takes="f", domain=(0.3, 4.0),
    params=({"m": 0}, {"m": 1}, {"m": 3}),
)  # fmt: skip
