"""pow: powers of real, complex and whole numbers; half_integer_pow: those that are roots of whole powers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import SampleInput, aval_of
from functorch_like.errors import ArgumentError
from functorch_like.primitives.base.elementwise_makers import KIND, binary, same, samples_of, unary
from functorch_like.primitives.base.lowering import Alternative, Lowering
from functorch_like.primitives.base.shapes import full_like
from functorch_like.primitives.elementwise import powers_cpu, vectorized_cpu
from functorch_like.primitives.elementwise.arithmetic import abs as _abs
from functorch_like.primitives.elementwise.arithmetic import compare, mul, sub
from functorch_like.primitives.elementwise.bitwise import BITS, and_, not_, or_
from functorch_like.primitives.elementwise.comparison import eq, ge, ne, select_n
from functorch_like.primitives.elementwise.transcendental import log, sqrt
from functorch_like.primitives.elementwise.vectorized_cpu import LARGE
from functorch_like.primitives.formulas.complex import halves
from functorch_like.primitives.formulas.term import Term, where


def _pow_left(g: Any, x: Any, y: Any, z: Any) -> Any:
    # y x**(y-1); 0 where that is 0 times infinity: there the result is constant.
    zero, one = full_like(y, 0), full_like(y, 1)
    still = and_(eq(y, zero), _has_no_inverse(x))
    return mul(g, select_n(still, mul(y, pow(x, select_n(still, sub(y, one), one))), zero))


def _has_no_inverse(x: Any) -> Any:
    """True where 1 / x overflows, or x is NaN."""
    dtype = aval_of(x).dtype
    if dtypes.is_complex(dtype):
        return or_(eq(x, full_like(x, 0)), ne(x, x))
    return not_(ge(_abs(x), full_like(x, dtypes.finfo(dtype).tiny)))


def _pow_right(g: Any, x: Any, y: Any, z: Any) -> Any:
    # log(x) x**y; where x is 0 so is the result, for all y > 0.
    return mul(g, mul(log(select_n(eq(x, full_like(x, 0)), x, full_like(x, 1))), z))


def _pow_ref(x: np.ndarray, y: np.ndarray) -> Any:
    if KIND[x.dtype] not in "iu":
        return np.power(x, y)
    # The power of a whole number that would be a fraction is rounded towards zero; 0 to a negative power is 0 too.
    whole = np.power(x, np.where(y < 0, 0, y).astype(x.dtype))
    unit = np.where(x == 1, 1, np.where((x < 0) & (x + 1 == 0), 1 - 2 * (y & 1), 0)).astype(x.dtype)
    return np.where(y < 0, unit, whole)


def _whole_pow(e: Any, x: Any, y: Any, out: Any, signed: bool) -> Any:
    # XLA reads no more than six bits of an exponent: x**y is the product of (x**64**j)**(digit j of y to base 64).
    binary = lambda op, a, b: e.op(f"stablehlo.{op}", [a, b], [out])
    product, base, low = None, x, e.full(63, out)
    for shift in range(0, BITS[out.dtype] - signed, 6):
        digit = (
            binary("and", binary("shift_right_logical", y, e.full(shift, out)), low) if shift else binary("and", y, low)
        )
        factor = binary("power", base, digit)
        product = factor if product is None else binary("multiply", product, factor)
        base = binary("multiply", binary("power", base, low), base)
    if not signed:
        return product
    # XLA without fusion emitters gives 0 for (-1)**-1: there the last bit of the exponent is enough.
    inverse = compare(e, "EQ", x, e.full(-1, out), out)
    power = e.op("stablehlo.select", [inverse, binary("and", y, e.full(1, out)), y], [out])
    negative = compare(e, "LT", y, e.full(0, out), out)
    return e.op("stablehlo.select", [negative, binary("power", x, power), product], [out])


def _pow_lower(e: Any, x: Any, y: Any) -> Any:
    (out,) = e.outs
    kind = KIND[out.dtype]
    if kind in "iu":
        return _whole_pow(e, x, y, out, signed=kind == "i")
    z = e.op("stablehlo.power", [x, y], [out])
    if kind != "c":
        return z
    # XLA finds NaN for a power of 0; it is 0 where the exponent's real part is positive, and 1 where it is 0.
    empty = compare(e, "EQ", x, e.full(0, out), out)
    positive = halves(e, y, out)[0] > 0
    vanishes = e.op("stablehlo.and", [empty, positive.v], [positive.aval])
    return e.op("stablehlo.select", [vanishes, e.full(0, out), z], [out])


def _six_bits_lower(e: Any, x: Any, y: Any) -> Any:
    """Take XLA's own form where all exponents have six bits, which are those that it reads."""
    (out,) = e.outs
    flags = compare(e, "EQ", e.op("stablehlo.and", [y, e.full(63, out)], [out]), y, out)
    own = lambda inner, x, y: inner.op("stablehlo.power", [x, y], inner.outs)
    return vectorized_cpu.one_of(e, (x, y), flags, own, _pow_lower)


def _six_bits_edges() -> list[tuple[SampleInput, bool]]:
    base = np.resize(np.array([0, 1, -1, 2, 3, -3, 7], np.int32), LARGE)
    small, mixed = (np.resize(np.array(y, np.int32), LARGE) for y in ([0, 1, 5, 63], [0, 1, 64, -1, 5]))
    return [
        (SampleInput((base, small)), True),
        (SampleInput((base, mixed)), True),
        (SampleInput((base[:9], small[:9])), False),
    ]


_SIX_BITS = Alternative(
    "power by exponents of six bits", f"whole numbers, arrays of {LARGE} elements or more",
    lambda ins, outs: KIND[outs[0].dtype] in "iu" and outs[0].size >= LARGE, _six_bits_lower, _six_bits_edges,
    slow_compile=True,
    conditional=True,
)  # fmt: skip


def _pow_samples() -> list[SampleInput]:
    base = np.array([0, 1, -1, 2, 3, -3, 7, 2, -1], np.int32)
    power = np.array([-1, -5, -3, -1, 5, 64, 1000003, 40, 100], np.int32)
    return [
        *samples_of(2, "fciu", (0.3, 2.5), ({},), True),
        SampleInput((base, power)),
        SampleInput((base, np.abs(power))),
    ]


pow = binary(
    "pow", _pow_ref, Lowering("pow", _pow_lower, _SIX_BITS, *powers_cpu.forms(_pow_lower)), _pow_left, _pow_right,
    samples=_pow_samples,
)  # fmt: skip


# ---------------------------------------------------------------------------------------------------- halves of wholes
#: Exponents that half_integer_pow takes: with more factors it would lose digits.
HALVES = (-2.5, -1.5, -0.5, 1.5, 2.5)
_HALF_SAME = same("half_integer_pow", "f")


def _half_shape(x: Any, *, y: float) -> Any:
    if y not in HALVES:
        raise ArgumentError(f"half_integer_pow of {x!r} with the power {y}", fix=f"use pow, or one of {HALVES}")
    return _HALF_SAME(x)


def _half_lower(e: Any, x: Any, *, y: float) -> Any:
    # 20 times as fast as XLA's power. The special values are those of IEEE's pow: of -0 and -inf as of 0 and inf.
    term = Term(e, x, e.outs[0])
    size = abs(term)
    factors = int(abs(y))  # besides the root
    product = size * size if factors == 2 else size
    if y > 0:
        z = product * size.sqrt()
    else:  # the root first: the product alone would underflow where the result does not overflow
        z = size.apply("stablehlo.rsqrt")
        z = z / product if factors else z
    return where((term >= 0) | term.equals(-math.inf), z, math.nan).v


def _half_tangent(g: Any, x: Any, z: Any, *, y: float) -> Any:
    slope = {1.5: sqrt, -2.5: lambda x: pow(x, full_like(x, -3.5))}.get(y)
    return mul(g, mul(full_like(x, y), slope(x) if slope else half_integer_pow(x, y=y - 1)))


half_integer_pow = unary(
    "half_integer_pow", lambda x, *, y: np.power(x, np.asarray(y, x.dtype)), _half_lower, _half_tangent, takes="f",
    shape=_half_shape, samples=lambda: [s for y in HALVES for s in samples_of(1, "f", (0.3, 2.5), ({"y": y},), True)],
)  # fmt: skip
