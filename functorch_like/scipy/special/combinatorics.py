"""Counting: factorial, comb, bernoulli."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from functorch_like import numpy as fnp
from functorch_like.errors import ArgumentError, UnsupportedError
from functorch_like.lax import stop_gradient
from functorch_like.numpy import promotion
from functorch_like.scipy import gamma_single
from functorch_like.scipy.gamma_ratios import gamma, log_choose
from functorch_like.scipy.special.makers import in_double, one, two

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


def _factorial_by(gamma: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def body(n: Any) -> Any:
        below = n < 0
        return fnp.where(below, 0, gamma(fnp.where(below, 0, n) + 1))

    return body


_FACTORIAL = in_double(_factorial_by(gamma), _factorial_by(gamma_single.gamma))
_factorial = one("factorial", _FACTORIAL, "The factorial, gamma(n + 1); 0 for negative numbers.", "3")


def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """The factorial.

    Args:
        n: array or number.
        exact: not supported, since arrays cannot hold big integers.

    Returns:
        gamma(n + 1) in floating point; 0 for negative n.

    Raises:
        UnsupportedError: with `exact`.

    >>> float(ft.scipy.special.factorial(5))
    120.0
    """
    _inexact(exact, "factorial", "math.factorial")
    return _factorial(n)


def _inexact(exact: bool, name: str, instead: str) -> None:
    if exact:
        raise promotion.error(
            UnsupportedError, f"special.{name} with exact=True: arrays cannot hold big integers", f"use {instead}(n)"
        )


def _comb_body(n: Any, k: Any) -> Any:
    """Compute a binomial coefficient, rounded where n and k are whole and doubles hold it."""
    inside = (n >= 0) & (k >= 0) & (k <= n)
    a, b = fnp.where(inside, n, 1), fnp.where(inside, k, 1)
    value = fnp.exp(log_choose(a, b))
    whole = (fnp.floor(a) == a) & (fnp.floor(b) == b) & (value < 1e13)
    value = fnp.where(whole, value + stop_gradient(fnp.round(value) - value), value)
    return fnp.where(inside, value, fnp.where((n != n) | (k != k), math.nan, 0))


def _repeated_body(n: Any, k: Any) -> Any:
    """Compute the number of multisets: one of no elements, even if there is nothing to choose."""
    none = (k == 0) & (n >= 0)
    return fnp.where(none, 1, _comb_body(fnp.where(none, 1, n + k - 1), k))


_comb = two("comb", "N k", in_double(_comb_body), "The number of ways to choose k of N.", "5, 2")


_repeated = two("comb", "N k", in_double(_repeated_body), "The number of ways to choose k of N, repeatedly.", "5, 2")


def comb(N: ArrayLike, k: ArrayLike, *, exact: bool = False, repetition: bool = False) -> Array:
    """The number of ways to choose k of N things.

    Args:
        N: array or number.
        k: array or number.
        exact: not supported, since arrays cannot hold big integers.
        repetition: each thing may be chosen more than once.

    Returns:
        The binomial coefficient, in floating point; 0 where k > N or one is negative.

    Raises:
        UnsupportedError: with `exact`.

    >>> float(ft.scipy.special.comb(5, 2)), float(ft.scipy.special.comb(5, 2, repetition=True))
    (10.0, 15.0)
    """
    _inexact(exact, "comb", "math.comb")
    return _repeated(N, k) if repetition else _comb(N, k)


def bernoulli(n: int) -> Array:
    """Bernoulli's numbers B0 to Bn, with B1 = -1/2.

    Args:
        n: Python int, at least 0.

    Returns:
        (n + 1,), in the default float.

    Raises:
        ArgumentError: for negative n.

    >>> ft.scipy.special.bernoulli(2).round(4).tolist()[:2]
    [1.0, -0.5]
    """
    n = operator.index(n)
    if n < 0:
        raise promotion.error(ArgumentError, f"special.bernoulli of n={n}", "use 0 or more")
    return fnp.asarray([_as_float(b) for b in _bernoulli(n)])


def _bernoulli(n: int) -> list[Fraction]:
    """Compute by the tangent numbers (D. E. Knuth, T. J. Buckholtz, Math. Comp. 21, 1967), in whole numbers."""
    half = n // 2 + 1
    tangent = [0, 1, *[0] * half]
    for k in range(2, half + 1):
        tangent[k] = (k - 1) * tangent[k - 1]
    for k in range(2, half + 1):
        for j in range(k, half + 1):
            tangent[j] = (j - k) * tangent[j - 1] + (j - k + 2) * tangent[j]
    result = [Fraction(1), Fraction(-1, 2)]
    for m in range(2, n + 1):
        size = Fraction(m * tangent[m // 2], 2**m * (2**m - 1)) if m % 2 == 0 else Fraction(0)
        result.append(-size if m % 4 == 0 else size)
    return result[: n + 1]


def _as_float(b: Fraction) -> float:
    try:
        return float(b)
    except OverflowError:
        return math.copysign(math.inf, b)
