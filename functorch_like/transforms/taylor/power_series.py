"""Arithmetic of truncated power series: sums, products, quotients, and functions by recurrences.

A series is a list [x0, x1, ..., xK] of coefficients of 1, t, ..., t**K, None where one is zero (x0 never is). The
recurrences are those of Griewank and Walther, "Evaluating Derivatives", 2nd ed., table 13.2: z = f(x) satisfies a
differential equation, which relates the coefficients of z to those of x.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from functorch_like import dtypes
from functorch_like.core import Primitive, aval_of
from functorch_like.primitives import elementwise
from functorch_like.primitives.base.shapes import full_like

Series = Sequence[Any]
Rule = Callable[..., list[Series] | None]


# ----------------------------------------------------------------------------------------------- sums of coefficients
def fixed(x: Series) -> bool:
    """Return True if a series has no terms but the first."""
    return all(c is None for c in x[1:])


def plus(*parts: Any) -> Any:
    """Return the sum of coefficients, in which None is zero."""
    total = None
    for part in parts:
        total = part if total is None else total if part is None else elementwise.add(total, part)
    return total


def times(factor: float, x: Any) -> Any:
    """Return a multiple of a coefficient; None if it is None."""
    if x is None or factor == 0:
        return None
    return x if factor == 1 else elementwise.mul(x, full_like(x, factor))


def minus(x: Any, y: Any) -> Any:
    """Return the difference of coefficients, in which None is zero."""
    return x if y is None else elementwise.neg(y) if x is None else elementwise.sub(x, y)


def over(x: Any, y: Any) -> Any:
    """Return the quotient of two coefficients; None if the first is None."""
    return None if x is None else elementwise.div(x, y)


def folded(x: Series, y: Series, pairs: Sequence[tuple[float, int, int]], product: Any = elementwise.mul) -> Any:
    """The sum of `factor * x[i] * y[j]` over triples (factor, i, j)."""
    return plus(*(times(f, product(x[i], y[j])) for f, i, j in pairs if x[i] is not None and y[j] is not None and f))


def convolution(x: Series, y: Series, k: int, product: Any = elementwise.mul) -> Any:
    """The k-th coefficient of a product."""
    return folded(x, y, [(1, i, k - i) for i in range(k + 1)], product)


def product(x: Series, y: Series) -> list[Any]:
    """The series of a product."""
    return [convolution(x, y, k) for k in range(len(x))]


def quotient(x: Series, y: Series) -> list[Any]:
    """The series of a quotient: z y = x."""
    z = [elementwise.div(x[0], y[0])]
    for k in range(1, len(x)):
        z.append(over(minus(x[k], folded(y, z, [(1, i, k - i) for i in range(1, k + 1)])), y[0]))
    return z


def integrated(x: Series, w: Series, k: int) -> Any:
    """The k-th coefficient of z, where z' = w x'; needs those of w below k."""
    return folded(x, w, [(j / k, j, k - j) for j in range(1, k + 1)])


# ---------------------------------------------------------------------------------- solutions of differential equations
def _solution(primitive: Any, slope: Callable[[Series, Series, int], Any], *, before: Any = None) -> Rule:
    """Return the rule of z = primitive(x) with z' = w x'. `slope(x, z, k)` is w's k-th coefficient, from z's up to k.

    With `before`, w is a series of its own, made once by `before(x)`.
    """

    def solved(x: Series) -> list[Series]:
        z = [primitive(x[0])]
        w: list[Any] = before(x[:-1]) if before else []
        for k in range(1, len(x)):
            if not before:
                w.append(slope(x, z, k - 1))
            z.append(integrated(x, w, k))
        return [z]

    return solved


def _tan_slope(x: Series, z: Series, k: int) -> Any:
    square = convolution(z, z, k)
    return square if k else elementwise.add(square, full_like(square, 1))


def _tanh_slope(x: Series, z: Series, k: int) -> Any:
    return (
        elementwise.neg(s)
        if k and (s := convolution(z, z, k)) is not None
        else None
        if k
        else elementwise.one_minus_square(z[0])
    )


def _logistic_slope(x: Series, z: Series, k: int) -> Any:
    return minus(z[k], convolution(z, z, k))


def _circle(sign: float, first: Any, second: Any, pick: int) -> Rule:
    """The pair s' = c x', c' = sign s x': sines and cosines, circular and hyperbolic."""

    def solved(x: Series) -> list[Series]:
        s, c = [first(x[0])], [second(x[0])]
        for k in range(1, len(x)):
            s.append(integrated(x, c, k))
            c.append(times(sign, integrated(x, s, k)))
        return [(s, c)[pick]]

    return solved


def _exponential(x: Series, first: Any = None) -> list[Any]:
    z = [elementwise.exp(x[0]) if first is None else first]
    for k in range(1, len(x)):
        z.append(integrated(x, z, k))
    return z


def _logarithm(x: Series, first: Any = None) -> list[Any]:
    """z' x = x'."""
    z = [elementwise.log(x[0]) if first is None else first]
    for k in range(1, len(x)):
        z.append(over(minus(x[k], folded(z, x, [(j / k, j, k - j) for j in range(1, k)])), x[0]))
    return z


def _power(x: Series, exponent: float, first: Any) -> list[Any]:
    """z' x = exponent z x', for any constant exponent, where x is not zero."""
    z = [first]
    for k in range(1, len(x)):
        pairs = [(((exponent + 1) * j - k) / k, j, k - j) for j in range(1, k + 1)]
        z.append(over(folded(x, z, pairs), x[0]))
    return z


def _sqrt(x: Series) -> list[Series]:
    """z z = x."""
    z = [elementwise.sqrt(x[0])]
    twice = elementwise.add(z[0], z[0])
    for k in range(1, len(x)):
        z.append(over(minus(x[k], folded(z, z, [(1, j, k - j) for j in range(1, k)])), twice))
    return [z]


def _integer_pow(x: Series, *, y: int) -> list[Series]:
    """Power by squaring: exact where x is zero, too."""
    one = [full_like(x[0], 1), *[None] * (len(x) - 1)]
    result, factor, left = one, list(x), abs(y)
    while left:
        if left & 1:
            result = factor if result is one else product(result, factor)
        left >>= 1
        if left:
            factor = product(factor, factor)
    return [quotient(one, result) if y < 0 else [elementwise.integer_pow(x[0], y=y), *result[1:]]]


def _pow(x: Series, y: Series) -> list[Series] | None:
    """Power with a constant exponent by its derivatives, which vanish from some order on for whole numbers."""
    if dtypes.is_complex(aval_of(x[0]).dtype) or not dtypes.is_inexact(aval_of(y[0]).dtype):
        return None
    if not fixed(y):
        return [_exponential(product(_logarithm(x), y), elementwise.pow(x[0], y[0]))]
    slopes, factor, exponent = [elementwise.pow(x[0], y[0])], None, y[0]
    nothing = full_like(exponent, 0)
    for k in range(1, len(x)):
        step = times(1 / k, exponent)
        factor = step if factor is None else elementwise.mul(factor, step)
        exponent = elementwise.sub(exponent, full_like(exponent, 1))
        slopes.append(
            elementwise.select_n(
                elementwise.eq(factor, nothing), elementwise.mul(factor, elementwise.pow(x[0], exponent)), nothing
            )
        )
    return [composed(slopes, x)]


def composed(slopes: Series, x: Series) -> list[Any]:
    """The series of f(x(t)), by the coefficients of f around x0: powers of x - x0, each of which starts one later."""
    z = [slopes[0], *[None] * (len(x) - 1)]
    power: Series = [None, *x[1:]]
    for n in range(1, len(x)):
        z = [
            z[0],
            *(
                plus(a, None if b is None else elementwise.mul(slopes[n], b))
                for a, b in zip(z[1:], power[1:], strict=True)
            ),
        ]
        power = [convolution(power, [None, *x[1:]], k) for k in range(len(x))]
    return z


def _gauss(scale: float) -> Callable[[Series], list[Any]]:
    """The slope of erf: a multiple of exp(-x**2)."""

    def slope(x: Series) -> list[Any]:
        return [times(scale, c) for c in _exponential([times(-1, c) for c in product(x, x)])]

    return slope


_ROOT_PI = math.sqrt(math.pi)
_none: Any = None

#: Rules of elementwise primitives that are not linear.
FUNCTIONS: dict[Primitive, Rule] = {
    elementwise.div: lambda x, y: [quotient(x, y)],
    elementwise.square: lambda x: [product(x, x)],
    elementwise.integer_pow: _integer_pow,
    elementwise.half_integer_pow: lambda x, *, y: [_power(x, y, elementwise.half_integer_pow(x[0], y=y))],
    elementwise.pow: _pow,
    elementwise.sqrt: _sqrt,
    elementwise.rsqrt: lambda x: [_power(x, -0.5, elementwise.rsqrt(x[0]))],
    elementwise.cbrt: lambda x: [_power(x, 1 / 3, elementwise.cbrt(x[0]))],
    elementwise.exp: lambda x: [_exponential(x)],
    elementwise.exp2: lambda x: [_exponential([times(math.log(2), c) for c in x], elementwise.exp2(x[0]))],
    elementwise.expm1: _solution(elementwise.expm1, _none, before=_exponential),
    elementwise.log: lambda x: [_logarithm(x)],
    elementwise.log1p: lambda x: [
        _logarithm([elementwise.add(x[0], full_like(x[0], 1)), *x[1:]], elementwise.log1p(x[0]))
    ],
    elementwise.sin: _circle(-1, elementwise.sin, elementwise.cos, 0),
    elementwise.cos: _circle(-1, elementwise.sin, elementwise.cos, 1),
    elementwise.sinh: _circle(1, elementwise.sinh, elementwise.cosh, 0),
    elementwise.cosh: _circle(1, elementwise.sinh, elementwise.cosh, 1),
    elementwise.tan: _solution(elementwise.tan, _tan_slope),
    elementwise.tanh: _solution(elementwise.tanh, _tanh_slope),
    elementwise.logistic: _solution(elementwise.logistic, _logistic_slope),
    elementwise.erf: _solution(elementwise.erf, _none, before=_gauss(2 / _ROOT_PI)),
    elementwise.erfc: _solution(elementwise.erfc, _none, before=_gauss(-2 / _ROOT_PI)),
}
