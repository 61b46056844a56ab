"""Real functions where XLA's own lose digits, and the small ones that formulas are made of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.primitives.formulas.term import Term, polynomial, where


# ------------------------------------------------------------------------------------------------------- signs and bits
def bits(x: Term) -> tuple[Any, Any]:
    """A term's bits as signed integers, and their aval."""
    aval = x.aval.update(dtype=np.dtype(f"int{x.aval.dtype.itemsize * 8}"), weak_type=False)
    return x.e.op("stablehlo.bitcast_convert", [x.v], [aval]), aval


def of_bits(raw: Any, like: Term) -> Term:
    """The number with these bits, as another term is; `bits` the other way round."""
    return Term(like.e, like.e.op("stablehlo.bitcast_convert", [raw], [like.aval]), like.aval)


def pattern(value: float, dtype: Any) -> int:
    """The bits of a number, as a signed integer."""
    return int(np.array(value, dtype).view(f"int{dtype.itemsize * 8}"))


def negative(x: Term) -> Term:
    """Return True where the sign is set, that of a zero or a NaN too."""
    raw, aval = bits(x)
    flags = x.aval.update(dtype=dtypes.bool_, weak_type=False)
    return Term(x.e, x.e.compare("LT", raw, x.e.full(0, aval), flags, "SIGNED"), flags)


def upper(x: Term) -> Term:
    """x with the lower half of its digits zero: its square is exact."""
    raw, aval = bits(x)
    mask = -(1 << (12 if aval.dtype.itemsize == 4 else 27))
    kept = x.e.op("stablehlo.and", [raw, x.e.full(mask, aval)], [aval])
    return of_bits(kept, x)


def with_rest(x: Term, y: Term) -> tuple[Term, Term]:
    """x + y, and what its rounding took away (Knuth)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def copysign(x: Term, y: Term) -> Term:
    """|x| with the sign of y."""
    return where(negative(y), -abs(x), abs(x))


def infinite(x: Term) -> Term:
    """Return True where x is infinite."""
    return abs(x).equals(math.inf)


def finite(x: Term) -> Term:
    """Return True where x is neither infinite nor NaN."""
    return abs(x) < math.inf


def nan(x: Term) -> Term:
    """Return True where x is NaN."""
    return x.differs(x)


def nextafter(e: Any, x: Any, y: Any) -> Any:
    """Decide by the bits alone, since XLA:CPU treats subnormal floats as zero."""
    (out,) = e.outs
    width = out.dtype.itemsize * 8
    whole = out.update(dtype=np.dtype(f"int{width}"), weak_type=False)
    flags = out.update(dtype=dtypes.bool_, weak_type=False)
    op = lambda name, *xs, aval=whole: e.op(f"stablehlo.{name}", list(xs), [aval])
    number = lambda n: e.full(n, whole)
    compare = lambda direction, a, b: e.compare(direction, a, b, flags, "SIGNED")
    select = lambda condition, a, b: op("select", condition, a, b)
    most, infinity, lost = (pattern(v, out.dtype) for v in (-0.0, math.inf, math.nan))

    from_, to = (op("bitcast_convert", v) for v in (x, y))
    sizes = [op("and", v, number(~most)) for v in (from_, to)]
    zero = number(0)
    places = [select(compare("LT", v, zero), op("negate", s), s) for v, s in zip((from_, to), sizes, strict=True)]
    rising = compare("GT", places[1], places[0])
    grows = e.compare("EQ", rising, compare("GE", from_, zero), flags, "UNSIGNED")
    step = op("add", from_, select(grows, number(1), number(-1)))
    least = op("or", op("and", to, number(most)), number(1))  # the least number on the side of y
    moved = select(compare("EQ", sizes[0], zero), least, step)
    moved = select(compare("EQ", *places), to, moved)
    wild = op("or", *(compare("GT", s, number(infinity)) for s in sizes), aval=flags)
    return op("bitcast_convert", select(wild, number(lost), moved), aval=out)


# --------------------------------------------------------------------------------------------------------- hyperbolics
def expm1(x: Term) -> Term:
    """exp(x) - 1."""
    return x.apply("stablehlo.exponential_minus_one")


def logistic(x: Term) -> Term:
    """1 / (1 + exp(-x))."""
    return x.apply("stablehlo.logistic")


def _odd_series(square: Term) -> Term:
    """sinh(x) / x - 1 over x**2, for |x| <= 1 (DLMF 4.33.1)."""
    terms = 9 if square.aval.dtype == dtypes.float64 else 5
    return polynomial(square, [1 / math.factorial(2 * k + 3) for k in range(terms)])


def hyperbolic(x: Term) -> tuple[Term, Term]:
    """sinh and cosh: from |x| = 1 by exp(|x|), which is taken apart where it would overflow before they do."""
    size = abs(x)
    large = size > (88.0 if x.aval.dtype == dtypes.float32 else 709.0)
    root = where(large, size * 0.5, size).exp()
    grown = where(large, root * 0.5 * root, root * 0.5)
    shrunk = 0.25 / grown
    near = size < 1
    small = where(near, x, 0)
    odd = small + small * (small * small) * _odd_series(small * small)
    return where(near, odd, copysign(grown - shrunk, x)), grown + shrunk


def sinh(x: Term) -> Term:
    """Hyperbolic sine, without the loss of XLA's exp(|x| + log(1/2))."""
    return where(x.equals(0), x, hyperbolic(x)[0])


def cosh(x: Term) -> Term:
    """Hyperbolic cosine, without the loss of XLA's exp(|x| + log(1/2))."""
    return hyperbolic(x)[1]


def tanh(x: Term) -> Term:
    """Compute tanh for double precision: 1 - 2 / (exp(2|x|) + 1) where that cancels nothing, else XLA's."""
    size = abs(x)
    far = size > 0.6
    value = 1 - 2 / ((2 * where(far, size, 1)).exp() + 1)
    return where(far, copysign(value, x), x.apply("stablehlo.tanh"))


def atanh(x: Term) -> Term:
    """log1p(2x / (1 - x)) / 2 for x >= 0 (DLMF 4.37.24)."""
    size = abs(x)
    return where(x.equals(0), x, copysign((2 * size / (1 - size)).log1p() * 0.5, x))
