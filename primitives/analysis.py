"""Floor 4. Elementwise rows of real and complex analysis: rounding, exponentials, trigonometry, roots and powers.

One row, one line: name, meaning in NumPy, StableHLO operation, rule of the tangent `(g, x, y)` or, with two operands,
one for each `(g, x, y, z)`; g is the operand's tangent, the last letter the result. What multiplies g is computed
first, so that a linearised function has one linear row for each nonlinear one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import Sample
from functorch_like.errors import ArgumentError
from functorch_like.primitives.arithmetic import compare, div, mul, square, sub
from functorch_like.primitives.bits import BITS
from functorch_like.primitives.comparison import eq, select_n
from functorch_like.primitives.complexes import circular, following, halves
from functorch_like.primitives.formulas import Term
from functorch_like.primitives.rows import KIND, add, binary, neg, nondifferentiable, same, samples_of, unary
from functorch_like.primitives.shapes import full_like

# ------------------------------------------------------------------------------------------------------------ rounding
AWAY_FROM_ZERO, TO_NEAREST_EVEN = 0, 1  # where a fraction of one half goes


def _round_shape(x: Any, *, rounding_method: int = AWAY_FROM_ZERO) -> Any:
    if rounding_method not in (AWAY_FROM_ZERO, TO_NEAREST_EVEN):
        raise ArgumentError(f"rounding_method={rounding_method!r}", fix="0 rounds halves away from zero, 1 to even")
    return _ROUND_SAME(x)


_ROUND_SAME = same("round", "f")


def _round_ref(x: np.ndarray, *, rounding_method: int = AWAY_FROM_ZERO) -> Any:
    if rounding_method == TO_NEAREST_EVEN:
        return np.rint(x)
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole).astype(x.dtype)


def _round_lower(e: Any, x: Any, *, rounding_method: int = AWAY_FROM_ZERO) -> Any:
    op = "stablehlo.round_nearest_even" if rounding_method == TO_NEAREST_EVEN else "stablehlo.round_nearest_afz"
    return e.op(op, [x], e.outs)


floor = nondifferentiable("floor", np.floor, "floor", takes="f")
ceil = nondifferentiable("ceil", np.ceil, "ceil", takes="f")
round = nondifferentiable(
    "round",
    _round_ref,
    _round_lower,
    takes="f",
    shape=_round_shape,
    params=({"rounding_method": 0}, {"rounding_method": 1}),
)


# The step is so small that the tangent is that of x.
nextafter = binary("nextafter", np.nextafter, "chlo.next_after", lambda g, x, y, z: g, None, takes="f")


# ---------------------------------------------------------------------------------------- exponentials and logarithms
def _one_minus_square_lower(e: Any, x: Any) -> Any:
    one = e.full(1, e.outs[0])
    factors = [e.op(f"stablehlo.{op}", [one, x], e.outs) for op in ("subtract", "add")]
    return e.op("stablehlo.multiply", factors, e.outs)


#: 1 - x**2 without cancellation near 1: the slope of tanh by its result, and part of several other slopes.
one_minus_square = unary(
    "one_minus_square", lambda x: (1 - x) * (1 + x), _one_minus_square_lower, lambda g, x, y: mul(g, neg(add(x, x)))
)


def _logistic_ref(x: np.ndarray) -> Any:
    if KIND[x.dtype] == "c":
        return 1 / (1 + np.exp(-x))
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small / (1 + small), 1 / (1 + small)).astype(x.dtype)


def _exp2_lower(e: Any, x: Any) -> Any:
    return e.op("stablehlo.power", [e.full(2, e.outs[0]), x], e.outs)


def _log1p_lower(e: Any, x: Any) -> Any:
    (out,) = e.outs
    return Term(e, x, out).log1p().v if out.dtype == dtypes.float64 else e.op("stablehlo.log_plus_one", [x], [out])


exp = unary("exp", np.exp, "exponential", lambda g, x, y: mul(g, y))
exp2 = unary("exp2", np.exp2, _exp2_lower, lambda g, x, y: mul(g, mul(full_like(x, math.log(2)), y)), takes="f")
expm1 = unary("expm1", np.expm1, "exponential_minus_one", lambda g, x, y: mul(g, exp(x)))
log = unary("log", np.log, "log", lambda g, x, y: div(g, x), domain=(0.2, 3.0))
log1p = unary("log1p", np.log1p, _log1p_lower, lambda g, x, y: div(g, add(x, full_like(x, 1))), domain=(-0.8, 3.0))
logistic = unary("logistic", _logistic_ref, "logistic", lambda g, x, y: mul(g, mul(y, sub(full_like(y, 1), y))))

# ------------------------------------------------------------------------------------------------------- trigonometric
sin = unary("sin", np.sin, circular("stablehlo.sine", True, True), lambda g, x, y: mul(g, cos(x)))
cos = unary("cos", np.cos, circular("stablehlo.cosine", True, False), lambda g, x, y: mul(g, neg(sin(x))))
tan = unary("tan", np.tan, "tan", lambda g, x, y: mul(g, add(full_like(y, 1), square(y))), domain=(-1.2, 1.2))
asin = unary(
    "asin",
    np.arcsin,
    following("chlo.asin", "imag"),
    lambda g, x, y: mul(g, rsqrt(one_minus_square(x))),
    domain=(-0.9, 0.9),
)
acos = unary(
    "acos",
    np.arccos,
    following("chlo.acos", "imag", opposite=True),
    lambda g, x, y: mul(g, neg(rsqrt(one_minus_square(x)))),
    domain=(-0.9, 0.9),
)
atan = unary("atan", np.arctan, following("chlo.atan", "real"), lambda g, x, y: div(g, add(full_like(x, 1), square(x))))
sinh = unary("sinh", np.sinh, circular("chlo.sinh", False, True), lambda g, x, y: mul(g, cosh(x)))
cosh = unary("cosh", np.cosh, circular("chlo.cosh", False, False), lambda g, x, y: mul(g, sinh(x)))
tanh = unary("tanh", np.tanh, "tanh", lambda g, x, y: mul(g, one_minus_square(y)))
asinh = unary(
    "asinh", np.arcsinh, following("chlo.asinh", "real"), lambda g, x, y: mul(g, rsqrt(add(full_like(x, 1), square(x))))
)
acosh = unary(
    "acosh", np.arccosh, following("chlo.acosh", "imag"), lambda g, x, y: mul(g, _acosh_slope(x)), domain=(1.2, 4.0)
)
atanh = unary(
    "atanh",
    np.arctanh,
    following("chlo.atanh", "imag"),
    lambda g, x, y: div(g, one_minus_square(x)),
    domain=(-0.9, 0.9),
)


def _acosh_slope(x: Any) -> Any:
    one = full_like(x, 1)
    return mul(rsqrt(sub(x, one)), rsqrt(add(x, one)))  # two roots: of a complex product the root may be the other one


def _turn(part: Any, x: Any, y: Any) -> Any:
    return div(part, add(square(x), square(y)))


atan2 = binary(
    "atan2", np.arctan2, "atan2",
    lambda g, y, x, z: mul(g, _turn(x, x, y)), lambda g, y, x, z: mul(g, _turn(neg(y), x, y)),
    takes="f", domain=(0.3, 2.0),
)  # fmt: skip

# --------------------------------------------------------------------------------------------------- roots and powers
sqrt = unary("sqrt", np.sqrt, following("stablehlo.sqrt", "imag"), lambda g, x, y: div(g, add(y, y)), domain=(0.2, 3.0))
rsqrt = unary(
    "rsqrt", lambda x: (1 / np.sqrt(x)).astype(x.dtype), "rsqrt",
    lambda g, x, y: mul(g, div(mul(full_like(y, -0.5), y), x)), domain=(0.2, 3.0),
)  # fmt: skip
cbrt = unary(
    "cbrt", np.cbrt, "cbrt", lambda g, x, y: div(g, mul(full_like(y, 3), square(y))), takes="f", domain=(0.2, 3.0)
)


def _pow_left(g: Any, x: Any, y: Any, z: Any) -> Any:
    # y x**(y-1); where y is 0 the result is constant, whatever x is.
    zero, one = full_like(y, 0), full_like(y, 1)
    still = eq(y, zero)
    return mul(g, select_n(still, mul(y, pow(x, select_n(still, sub(y, one), one))), zero))


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
    return e.op("stablehlo.select", [compare(e, "LT", y, e.full(0, out), out), binary("power", x, y), product], [out])


def _pow_lower(e: Any, x: Any, y: Any) -> Any:
    (out,) = e.outs
    kind = KIND[out.dtype]
    if kind in "iu":
        return _whole_pow(e, x, y, out, signed=kind == "i")
    z = e.op("stablehlo.power", [x, y], [out])
    if kind != "c":
        return z
    # XLA finds NaN for a power of 0; it is 0 where the exponent's real part is positive, and 1 where it is 0.
    re, _, part = halves(e, y, out)
    empty = compare(e, "EQ", x, e.full(0, out), out)
    positive = compare(e, "GT", re, e.full(0, part), part)
    vanishes = e.op("stablehlo.and", [empty, positive], [part.update(dtype=dtypes.bool_, weak_type=False)])
    return e.op("stablehlo.select", [vanishes, e.full(0, out), z], [out])


def _pow_samples() -> list[Sample]:
    base = np.array([0, 1, -1, 2, 3, -3, 7, 2, -1], np.int32)
    power = np.array([-1, -5, -3, -1, 5, 64, 1000003, 40, 100], np.int32)
    return [*samples_of(2, "fciu", (0.3, 2.5), ({},), True), Sample((base, power)), Sample((base, np.abs(power)))]


pow = binary("pow", _pow_ref, _pow_lower, _pow_left, _pow_right, samples=_pow_samples)
