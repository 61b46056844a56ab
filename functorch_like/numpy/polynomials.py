"""Polynomials as arrays of coefficients, from the highest power to the constant."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes, lax
from functorch_like import numpy as fnp
from functorch_like.avals import ShapedArray
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.convolving import convolve
from functorch_like.numpy.operands import given, known
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, NestedArrayLike


def _coefficients(name: str, *ps: Any) -> tuple[Any, ...]:
    result = tuple(fnp.atleast_1d(p) if not promotion.is_array(p) or not aval_of(p).ndim else p for p in given(*ps))
    for p in result:
        if aval_of(p).ndim > 1:
            raise promotion.error(
                ShapeError, f"fnp.{name} of coefficients {aval_of(p)!r}", "give one dimension, the highest power first"
            )
    return result


def _order(value: Any, name: str) -> int:
    m = operator.index(value)
    if m < 0:
        raise promotion.error(ArgumentError, f"fnp.{name} takes a non-negative m, got {m}", "use 0 or more")
    return m


def _aligned(a: Any, b: Any) -> tuple[Any, Any]:
    """Align coefficients of equal powers."""
    a, b = promotion.promote(a, b)
    n = max(aval_of(a).size, aval_of(b).size)
    return fnp.pad(a, (n - aval_of(a).size, 0)), fnp.pad(b, (n - aval_of(b).size, 0))


def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Sum of two polynomials.

    Args:
        a1: coefficients (n,), the highest power first.
        a2: coefficients (m,).

    Returns:
        (max(n, m),), promoted; leading zeros stay.

    >>> fnp.polyadd([1, 2], [5, 0, 0]).tolist()
    [5, 1, 2]
    """
    return _polyadd(*_coefficients("polyadd", a1, a2))


@eager_jit
def _polyadd(a: Any, b: Any) -> Any:
    return fnp.add(*_aligned(a, b))


def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Difference of two polynomials; arguments as for `polyadd`.

    Args:
        a1: coefficients, from the highest power.
        a2: coefficients, from the highest power.

    Returns:
        Coefficients, from the highest power.

    >>> fnp.polysub([1, 2], [5, 0, 0]).tolist()
    [-5, 1, 2]
    """
    return _polysub(*_coefficients("polysub", a1, a2))


@eager_jit
def _polysub(a: Any, b: Any) -> Any:
    return fnp.subtract(*_aligned(a, b))


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """Product of two polynomials.

    Args:
        a1: coefficients (n,).
        a2: coefficients (m,).
        trim_leading_zeros: drop leading zeros of both first, as NumPy does; their values must be known then.

    Returns:
        (n + m - 1,).

    >>> fnp.polymul([1, 2], [1, -2]).tolist()
    [1, 0, -4]
    """
    a, b = _coefficients("polymul", a1, a2)
    if trim_leading_zeros:
        a, b = (fnp.trim_zeros(p, "f") for p in (a, b))
        a, b = (p if aval_of(p).size else fnp.zeros(1, aval_of(p).dtype) for p in (a, b))
    return convolve(a, b)


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """Quotient and remainder of two polynomials.

    Args:
        u: coefficients (n,) of the dividend.
        v: coefficients (m,) of the divisor, the first not 0.
        trim_leading_zeros: drop leading zeros of the remainder, as NumPy does; its values must be known then.

    Returns:
        The quotient (max(n - m + 1, 1),) and the remainder, (n,) where leading zeros stay; in floating point.

    >>> q, r = fnp.polydiv([1.0, 5.0, 7.0], [1.0, 2.0])
    >>> q.tolist(), r.tolist()
    ([1.0, 3.0], [0.0, 0.0, 1.0])
    """
    quotient, rest = _polydiv(*_coefficients("polydiv", u, v))
    if trim_leading_zeros:
        rest = fnp.trim_zeros(rest, "f")
        rest = rest if aval_of(rest).size else fnp.zeros(1, aval_of(rest).dtype)
    return quotient, rest


@eager_jit
def _polydiv(u: Any, v: Any) -> tuple[Any, Any]:
    """Divide by long division; a scan has one step for each coefficient of the quotient."""
    u, v = map(promotion.to_inexact, promotion.promote(u, v))
    n, m = aval_of(u).size, aval_of(v).size
    if n < m:
        return fnp.zeros(1, aval_of(u).dtype), u
    below = fnp.pad(v[1:], (0, n - m))

    def step(rest: Any, _: None) -> tuple[Any, Any]:
        q = rest[0] / v[0]
        return fnp.append(rest[1:] - q * below, fnp.zeros(1, aval_of(rest).dtype)), q

    rest, quotient = lax.scan(step, u, None, length=n - m + 1)
    return quotient, fnp.pad(rest[: m - 1], (n - m + 1, 0))


def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The m-th derivative of a polynomial.

    Args:
        p: coefficients (n,).
        m: the order, a Python int.

    Returns:
        (max(n - m, 0),).

    >>> fnp.polyder([1, 2, 3]).tolist()
    [2, 2]
    """
    (p,) = _coefficients("polyder", p)
    return _polyder(p, m=_order(m, "polyder"))


@eager_jit(static=("m",))
def _polyder(p: Any, m: int) -> Any:
    n = aval_of(p).size
    if m >= n:
        return p[:0]
    powers = np.arange(n - 1, m - 1, -1)
    factors = np.prod([powers - k for k in range(m)], axis=0, dtype=float) if m else np.ones(n)
    dtype = aval_of(p).dtype
    if dtypes.is_integer(dtype):  # a factor may exceed int8
        dtype = dtypes.promote(aval_of(p), ShapedArray((), dtypes.default_int()))[0]
    return promotion.convert(p[: n - m], dtype) * fnp.asarray(factors, dtype)


def polyint(p: ArrayLike, m: int = 1, k: int | None = None) -> Array:
    """The m-th antiderivative of a polynomial.

    Args:
        p: coefficients (n,).
        m: the order, a Python int.
        k: the constants of integration, a number or m of them, in the order of integration; 0 by default.

    Returns:
        (n + m,), in floating point.

    Raises:
        ArgumentError: where there are not m constants.

    >>> fnp.polyint([6.0, 2.0]).tolist()
    [3.0, 2.0, 0.0]
    """
    m = _order(m, "polyint")
    p, *rest = _coefficients("polyint", p, *([] if k is None else [k]))
    constants = rest[0] if rest else fnp.zeros(m)
    if k is not None and aval_of(constants).size == 1:
        constants = fnp.broadcast_to(constants, (m,))
    if aval_of(constants).size != m:
        raise promotion.error(
            ArgumentError, f"fnp.polyint with m={m} and {aval_of(constants).size} constants", "give 1 or m numbers"
        )
    return _polyint(p, constants if k is not None else None, m=m)


@eager_jit(static=("m",))
def _polyint(p: Any, constants: Any, m: int) -> Any:
    of_bools = aval_of(p).dtype == dtypes.bool_
    p = promotion.convert(p, dtypes.default_float()) if of_bools else promotion.to_inexact(p)
    if constants is not None:
        p, constants = promotion.promote(p, constants)
    for i in range(m):
        n = aval_of(p).size
        last = fnp.zeros(1, aval_of(p).dtype) if constants is None else constants[i : i + 1]
        p = fnp.concatenate([p / fnp.asarray(np.arange(n, 0, -1), aval_of(p).dtype), last])
    return p


def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """The value of a polynomial, by Horner's rule.

    Args:
        p: coefficients (n, ...); further dimensions broadcast with those of x.
        x: the points: array or number.
        unroll: steps of Horner's rule in one round of the loop.

    Returns:
        An array of the shape of x, in the common dtype.

    >>> fnp.polyval([1, 0, 2], fnp.asarray([1, 3])).tolist()
    [3, 11]
    """
    p, x = given(p, x)
    if not aval_of(p).ndim:
        p = fnp.atleast_1d(p)
    return _polyval(p, x, unroll=operator.index(unroll))


@eager_jit(static=("unroll",), ints=True)
def _polyval(p: Any, x: Any, unroll: int) -> Any:
    p, x = promotion.promote(p, x)
    shape = promotion.broadcast_shapes(aval_of(p).shape[1:], aval_of(x).shape)
    start = fnp.zeros(shape, aval_of(p).dtype)
    if aval_of(p).shape[0] <= unroll:
        for c in range(aval_of(p).shape[0]):
            start = start * x + p[c]
        return start
    return lax.scan(lambda total, c: (total * x + c, None), start, p, unroll=unroll)[0]


def poly(seq_of_zeros: NestedArrayLike) -> Array:
    """The polynomial with these zeros and leading coefficient 1, or the characteristic polynomial of a matrix.

    Args:
        seq_of_zeros: (n,), or a square matrix.

    Returns:
        (n + 1,) in floating point: real if the argument is, otherwise complex. A scalar, 1, for no zeros.

    Raises:
        ShapeError: for anything else.

    >>> fnp.poly([1.0, -1.0]).tolist()
    [1.0, 0.0, -1.0]
    """
    (zeros,) = given(seq_of_zeros)
    shape = aval_of(zeros).shape
    if len(shape) > 2 or (len(shape) == 2 and shape[0] != shape[1]):
        raise promotion.error(ShapeError, f"fnp.poly of {aval_of(zeros)!r}", "give one dimension, or a square matrix")
    return fnp.ones((), dtypes.inexact_dtype(aval_of(zeros).dtype)) if shape == (0,) else _poly(zeros)


@eager_jit
def _poly(zeros: Any) -> Any:
    zeros = fnp.atleast_1d(promotion.to_inexact(zeros))
    real = aval_of(zeros).dtype.kind == "f"
    if aval_of(zeros).ndim == 2:
        zeros = fnp.linalg.eigvals(zeros)
    n, dtype = aval_of(zeros).size, aval_of(zeros).dtype
    made = fnp.ones(1, dtype)
    for k in range(n):
        none = fnp.zeros(1, dtype)
        made = fnp.append(made, none) - zeros[k] * fnp.append(none, made)
    return fnp.real(made) if real else made


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """The zeros of a polynomial: the eigenvalues of its companion matrix.

    Args:
        p: coefficients (n,).
        strip_zeros: drop leading zeros first, whose number must be known; so pass False where p is traced. There are
            n - 1 results then, NaN in place of those that leading zeros remove.

    Returns:
        Complex numbers.

    Raises:
        ConcretizationError: for traced p with `strip_zeros`.

    >>> sorted(fnp.roots([1.0, -3.0, 2.0]).real.tolist())
    [1.0, 2.0]
    """
    (p,) = _coefficients("roots", p)
    p = promotion.to_inexact(p)
    if not strip_zeros:
        return _roots(p, leading=True)
    trimmed = fnp.trim_zeros(p, "f")
    values = known(trimmed)
    trailing = 0
    while values is not None and trailing < values.size and values[values.size - 1 - trailing] == 0:
        trailing += 1
    trimmed = trimmed[: aval_of(trimmed).size - trailing]
    inner = _roots(trimmed, leading=False)
    return fnp.append(inner, fnp.zeros(trailing, aval_of(inner).dtype)) if trailing else inner


@eager_jit(static=("leading",))
def _roots(p: Any, leading: bool) -> Any:
    n = aval_of(p).size
    wide = np.result_type(aval_of(p).dtype, np.complex64)
    if n < 2:
        return fnp.zeros(0, wide)
    if leading:
        zeros = fnp.sum(fnp.cumprod(fnp.where(p == 0, 1, 0)))
        places = fnp.arange(n) + zeros
        p = fnp.where(places < n, p[fnp.minimum(places, n - 1)], 0)
        p = p.at[0].set(fnp.where(zeros < n, p[0], 1))
    first = (-p[1:] / p[0])[None]
    matrix = fnp.concatenate([first, fnp.eye(n - 2, n - 1, dtype=aval_of(p).dtype)])
    result = fnp.linalg.eigvals(matrix)
    if leading:
        result = result[fnp.argsort(-fnp.abs(result))]
        result = fnp.where(fnp.arange(n - 1) < n - 1 - zeros, result, fnp.nan)
    return result
