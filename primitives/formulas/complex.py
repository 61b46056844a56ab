"""Complex functions by the real ones of their parts, with the special values of C99, Annex G.

Each formula takes the two parts of its operand as `Term`s and gives those of its result. XLA's own operations leave out
signs of zero, by which a branch cut is taken. They give NaN where only one part of an operand is infinite or NaN. Where
their finite values are good, these are used, and mended.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from functorch_like import dtypes
from functorch_like.primitives.formulas.real import copysign, finite, hyperbolic, infinite, nan
from functorch_like.primitives.formulas.real import expm1 as real_expm1
from functorch_like.primitives.formulas.term import Term, choose, where

Pair = tuple[Term, Term]


def halves(e: Any, z: Any, aval: Any) -> Pair:
    """Real and imaginary part."""
    part = aval.update(dtype=dtypes.real_part(aval.dtype))
    return Term(e, e.op("stablehlo.real", [z], [part]), part), Term(e, e.op("stablehlo.imag", [z], [part]), part)


def by_parts(formula: Callable[[Term, Term], Pair], real: Any) -> Any:
    """A lowering by a formula for complex operands, and by an operation or a function of the emitter for others."""

    def lower(e: Any, x: Any) -> Any:
        (out,) = e.outs
        if not dtypes.is_complex(out.dtype):
            return e.op(real, [x], [out]) if isinstance(real, str) else real(e, x)
        re, im = formula(*halves(e, x, out))
        return e.op("stablehlo.complex", [re.v, im.v], [out])

    return lower


def mended(op: str, formula: Callable[[Term, Term, Term, Term], Pair]) -> Any:
    """A lowering by XLA's operation; `formula` gets the parts of the operand and of its result."""

    def by_operation(re: Term, im: Term) -> Pair:
        e, aval = re.e, re.aval.update(dtype=dtypes.complex_of(re.aval.dtype))
        z = e.op("stablehlo.complex", [re.v, im.v], [aval])
        return formula(re, im, *halves(e, e.op(op, [z], [aval]), aval))

    return by_operation


# ---------------------------------------------------------------------------------------- exponentials and hyperbolics
def exp(x: Term, y: Term) -> Pair:
    """exp(x) (cos y + i sin y)."""
    return _turned(x, y, *_scaled_exp(x))


def exp2(x: Term, y: Term) -> Pair:
    """2**x (cos(y log 2) + i sin(y log 2)); the modulus is as exact as that of real x."""
    limit = 120.0 if x.aval.dtype.itemsize == 4 else 1000.0
    large = x > limit
    size = x.like(2.0).apply("stablehlo.power", where(large, x - limit, x))
    return _turned(x, y * math.log(2), size, lambda v: where(large, v * 2.0**limit, v))


def _turned(x: Term, y: Term, size: Term, after: Callable[[Term], Term]) -> Pair:
    """The number at an angle y, of a size that grows with x; `after` multiplies by the factor it was scaled down by."""
    beyond = infinite(x) & ~finite(y)  # exp(-inf) is 0 at any angle, exp(inf) infinite
    re = where(beyond, where(x < 0, 0, x), after(size * y.apply("stablehlo.cosine")))
    im = where(beyond & (x < 0), 0, after(size * y.apply("stablehlo.sine")))
    return re, where(y.equals(0), y, im)


def _scaled_exp(x: Term) -> tuple[Term, Callable[[Term], Term]]:
    """exp(x) without a factor, by which it overflows, and a function that multiplies by that factor."""
    limit = 80.0 if x.aval.dtype.itemsize == 4 else 700.0
    large = x > limit
    return where(large, x - limit, x).exp(), lambda v: where(large, v * math.exp(limit), v)


def sinh(x: Term, y: Term) -> Pair:
    """sinh x cos y + i cosh x sin y."""
    growth, after = _growth(x)
    odd, even = growth
    beyond = ~finite(y) & (x.equals(0) | infinite(x))
    re = where(beyond, x, after(odd * y.apply("stablehlo.cosine")))
    return re, where(y.equals(0), y, after(even * y.apply("stablehlo.sine")))


def cosh(x: Term, y: Term) -> Pair:
    """cosh x cos y + i sinh x sin y."""
    growth, after = _growth(x)
    odd, even = growth
    wild = ~finite(y)
    re = where(wild & infinite(x), abs(x), after(even * y.apply("stablehlo.cosine")))
    im = after(odd * y.apply("stablehlo.sine"))
    flat = where(nan(x), 0, copysign(y.like(1), x)) * y
    return re, choose(im, (y.equals(0), flat), (wild & x.equals(0), abs(x)))


def _growth(x: Term) -> tuple[Pair, Callable[[Term], Term]]:
    """sinh x and cosh x without a factor by which they overflow, and a function that multiplies by it."""
    limit = 80.0 if x.aval.dtype.itemsize == 4 else 700.0
    large = abs(x) > limit
    odd, even = hyperbolic(where(large, 0, x))
    wave = where(large, abs(x) - limit, 0).exp() * 0.5
    after = lambda v: where(large, v * math.exp(limit), v)
    return (where(large, copysign(wave, x), odd), where(large, wave, even)), after


def sin(x: Term, y: Term) -> Pair:
    """-i sinh(i z)."""
    re, im = sinh(y, x)
    return im, re


def cos(x: Term, y: Term) -> Pair:
    """cosh(i z)."""
    return cosh(-y, x)


def _tanh(x: Term, y: Term, re: Term, im: Term) -> Pair:
    wild = ~finite(y)
    re = choose(copysign(re, x), (infinite(x), copysign(x.like(1), x)), (wild & x.equals(0), x))
    return re, choose(im, (y.equals(0), y), (infinite(x) & wild, y.like(0)))


tanh = mended("stablehlo.tanh", _tanh)


def tan(x: Term, y: Term) -> Pair:
    """-i tanh(i z)."""
    re, im = tanh(y, x)
    return im, re


def expm1(x: Term, y: Term) -> Pair:
    """exp(z) - 1; its real part is expm1(x) cos y - 2 sin(y / 2)**2 where that of exp(z) is close to 1."""
    whole, turn = exp(x, y)
    grown, half = real_expm1(x), (y * 0.5).apply("stablehlo.sine")
    near = grown * y.apply("stablehlo.cosine") - 2 * half * half
    near = where(near.equals(0), copysign(near, x), near)
    return choose(near, (y.equals(0), grown), ((x > 1) | infinite(x), whole - 1)), turn


def logistic(x: Term, y: Term) -> Pair:
    """1 / (1 + exp(-z))."""
    re, im = exp(-x, -y)
    e, aval = x.e, x.aval.update(dtype=dtypes.complex_of(x.aval.dtype))
    below = e.op("stablehlo.complex", [(re + 1).v, im.v], [aval])
    return halves(e, e.op("stablehlo.divide", [e.full(1, aval), below], [aval]), aval)


# ------------------------------------------------------------------------------------------------- logarithm and roots
def _log(x: Term, y: Term, re: Term, im: Term) -> Pair:
    return where(infinite(x) | infinite(y), math.inf, re), im


log = mended("stablehlo.log", _log)


def _log1p(x: Term, y: Term, re: Term, im: Term) -> Pair:
    beside = x.equals(-1)  # the square of y may be subnormal
    return choose(re, (infinite(x) | infinite(y), re.like(math.inf)), (beside, where(beside, abs(y), 1).log())), im


log1p = mended("stablehlo.log_plus_one", _log1p)


def _sqrt(x: Term, y: Term, re: Term, im: Term) -> Pair:
    lost = nan(y) & infinite(x)  # NaN is all that XLA finds then
    re, im = copysign(re, re.like(1)), copysign(im, y)
    re = choose(re, (lost & (x > 0), x), (infinite(y), abs(y)))
    return re, choose(im, (lost & (x < 0), abs(x)), (infinite(y), y))


sqrt = mended("stablehlo.sqrt", _sqrt)


def rsqrt(x: Term, y: Term) -> Pair:
    """1 / sqrt(z). XLA's own goes by the angle, and so has no zero part where there should be one."""
    re, im = sqrt(x, y)
    e, aval = x.e, x.aval.update(dtype=dtypes.complex_of(x.aval.dtype))
    root = e.op("stablehlo.complex", [re.v, im.v], [aval])
    return halves(e, e.op("stablehlo.divide", [e.full(1, aval), root], [aval]), aval)


# ------------------------------------------------------------------------------------------------------------ inverses
def _asinh(x: Term, y: Term, re: Term, im: Term) -> Pair:
    lost = (nan(x) | nan(y)) & ~infinite(x) & ~infinite(y)
    return where(lost, math.nan, copysign(re, x)), choose(im, (lost & y.equals(0), y), (lost, y.like(math.nan)))


asinh = mended("chlo.asinh", _asinh)


def asin(x: Term, y: Term) -> Pair:
    """-i asinh(i z)."""
    re, im = asinh(y, x)
    return im, re


def _acos(x: Term, y: Term, re: Term, im: Term) -> Pair:
    lost = (nan(x) | nan(y)) & ~infinite(x) & ~infinite(y)
    half = where(x.equals(0), x.like(math.pi / 2), math.nan)
    return where(lost, half, re), where(lost, math.nan, copysign(im, -y))


acos = mended("chlo.acos", _acos)


def _acosh(x: Term, y: Term, re: Term, im: Term) -> Pair:
    lost = (nan(x) | nan(y)) & ~infinite(x) & ~infinite(y)
    half = where(x.equals(0), x.like(math.pi / 2), math.nan)
    return where(lost, math.nan, re), where(lost, half, copysign(im, y))


acosh = mended("chlo.acosh", _acosh)


def atanh(x: Term, y: Term) -> Pair:
    """log1p(4x / ((1 - x)**2 + y**2)) / 4 + i atan2(2y, (1 - x)(1 + x) - y**2) / 2, for x >= 0."""
    info = dtypes.finfo(x.aval.dtype)
    u, v = abs(x), abs(y)
    size = u.apply("stablehlo.maximum", v)
    large = size > 0.25 * float(info.max) ** 0.5
    pole = u.equals(1) & (v < 4 * float(info.tiny) ** 0.5)
    a, b = where(large, 0, u), where(large | pole, 1, v)  # where the plain formula does not overflow
    plain = (4 * a / ((1 - a) * (1 - a) + b * b)).log1p() * 0.25
    # XLA rewrites (u / a) / a as u / (a * a), which overflows. It rewrites (u * scale) * (u * scale) of rank 0 with the
    # factor scale * scale, which is 0. The choice keeps the factors apart.
    scale = 2.0 ** (-514 if info.bits == 64 else -66)
    p, q = where(large, u * scale, 1), where(large, v * scale, 1)
    far = p / (p * p + q * q) * scale
    re = choose(plain, (large, far), (pole, (2 / v).log() * 0.5))
    turn = (2 * where(large, 0, y)).apply("stablehlo.atan2", (1 - a) * (1 + a) - where(large, 0, v * v)) * 0.5
    outside = infinite(x) | infinite(y)
    re = choose(copysign(re, x), (outside, copysign(x.like(0), x)), (x.equals(0), x))
    right = copysign(y.like(math.pi / 2), y)
    im = choose(turn, (large, right), (infinite(x) & nan(y), y))
    return re, where(infinite(y), right, im)


def atan(x: Term, y: Term) -> Pair:
    """-i atanh(i z)."""
    re, im = atanh(y, x)
    return im, re


# -------------------------------------------------------------------------------------------------- size and direction
def size(x: Term, y: Term) -> Term:
    """|z|, infinite if a part is, even where the other is NaN."""
    e, aval = x.e, x.aval.update(dtype=dtypes.complex_of(x.aval.dtype))
    plain = Term(e, e.op("stablehlo.abs", [e.op("stablehlo.complex", [x.v, y.v], [aval])], [x.aval]), x.aval)
    return where(infinite(x) | infinite(y), math.inf, plain)


def sign(x: Term, y: Term) -> Pair:
    """z / |z|, as NumPy has it: 0 for 0, and along an axis where one part is infinite and the other is not."""
    e, aval = x.e, x.aval.update(dtype=dtypes.complex_of(x.aval.dtype))
    most = float(dtypes.finfo(x.aval.dtype).max)
    large = x.like(0.25 * most) < abs(x).apply("stablehlo.maximum", abs(y))
    short = [where(large, part * 0.25, part).v for part in (x, y)]  # |z| may overflow
    plain = halves(e, e.op("stablehlo.sign", [e.op("stablehlo.complex", short, [aval])], [aval]), aval)
    zero, both = x.equals(0) & y.equals(0), infinite(x) & infinite(y)

    def along(value: Term, part: Term, other: Term) -> Term:
        axis, nothing = copysign(part.like(1), part), part.like(0)
        return choose(value, (zero, nothing), (both, part.like(math.nan)), (infinite(part), axis), (other, nothing))

    return along(plain[0], x, infinite(y)), along(plain[1], y, infinite(x))
