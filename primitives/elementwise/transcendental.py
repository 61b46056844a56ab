"""Elementwise primitives of real and complex analysis: rounding, exponentials, trigonometry, roots and powers.

One primitive, one line: name, meaning in NumPy, StableHLO operation, rule of the tangent `(g, x, y)` or, with two
operands, one for each `(g, x, y, z)`; g is the operand's tangent, the last letter the result. What multiplies g is
computed first, so that a linearised function has one linear primitive for each nonlinear one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.errors import ArgumentError
from functorch_like.primitives.base.elementwise_makers import KIND, add, binary, neg, nondifferentiable, same, unary
from functorch_like.primitives.base.lowering import Lowering
from functorch_like.primitives.base.shapes import full_like
from functorch_like.primitives.elementwise import (
    exponential_double_cpu,
    roots_double_cpu,
    trigonometric_cpu,
    trigonometric_double_cpu,
    vectorized_cpu,
)
from functorch_like.primitives.elementwise.arithmetic import div, mul, square, sub
from functorch_like.primitives.formulas import complex as complex_formulas
from functorch_like.primitives.formulas import real
from functorch_like.primitives.formulas.complex import by_parts
from functorch_like.primitives.formulas.term import Term, in_single, operation

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


floor = nondifferentiable("floor", np.floor, "floor", takes="f", fusible=True)
ceil = nondifferentiable("ceil", np.ceil, "ceil", takes="f", fusible=True)
round = nondifferentiable(
    "round",
    _round_ref,
    _round_lower,
    takes="f",
    shape=_round_shape,
    params=({"rounding_method": 0}, {"rounding_method": 1}),
    fusible=True,
)


def _nextafter_ref(x: np.ndarray, y: np.ndarray) -> Any:
    return np.where(x == y, y, np.nextafter(x, y)).astype(x.dtype)  # in half precision NumPy gives x for 0 and -0


# The step is so small that the tangent is that of x.
nextafter = binary("nextafter", _nextafter_ref, real.nextafter, lambda g, x, y, z: g, None, takes="f", fusible=True)


# ---------------------------------------------------------------------------------------- exponentials and logarithms
def _one_minus_square_lower(e: Any, x: Any) -> Any:
    one = e.full(1, e.outs[0])
    factors = [e.op(f"stablehlo.{op}", [one, x], e.outs) for op in ("subtract", "add")]
    return e.op("stablehlo.multiply", factors, e.outs)


#: 1 - x**2 without cancellation near 1: part of several slopes.
one_minus_square = unary(
    "one_minus_square", lambda x: (1 - x) * (1 + x), _one_minus_square_lower, lambda g, x, y: mul(g, neg(add(x, x)))
)


def _logistic_ref(x: np.ndarray) -> Any:
    if KIND[x.dtype] == "c":
        grown = np.exp(-x)
        return np.where(np.isinf(grown), 0, 1 / (1 + grown)).astype(x.dtype)  # NumPy finds NaN for 1 / (inf + i inf)
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small / (1 + small), 1 / (1 + small)).astype(x.dtype)


def _exp2_lower(e: Any, x: Any) -> Any:
    return e.op("stablehlo.power", [e.full(2, e.outs[0]), x], e.outs)


def _exp2_ref(x: Any) -> Any:
    if KIND[x.dtype] != "c":
        return np.exp2(x)
    z: Any = np.empty_like(x)  # NumPy has none, and the product of an infinite part with log(2) + 0i is NaN
    z.real, z.imag = x.real * math.log(2), x.imag * math.log(2)
    return np.exp(z)


def _double(formula: Any, op: str) -> Any:
    """Return a lowering to a formula in double precision, else to an operation."""

    def lower(e: Any, x: Any) -> Any:
        (out,) = e.outs
        return formula(Term(e, x, out)).v if out.dtype == dtypes.float64 else e.op(op, [x], [out])

    return lower


exp = unary(
    "exp",
    np.exp,
    Lowering("exp", by_parts(complex_formulas.exp, "stablehlo.exponential"), exponential_double_cpu.EXP),
    lambda g, x, y: mul(g, y),
)
exp2 = unary(
    "exp2",
    _exp2_ref,
    Lowering("exp2", by_parts(complex_formulas.exp2, _exp2_lower), vectorized_cpu.EXP2, exponential_double_cpu.EXP2),
    lambda g, x, y: mul(g, mul(full_like(x, math.log(2)), y)),
)


def _expm1_ref(x: np.ndarray) -> Any:
    out = np.expm1(x)  # of complex infinities np.exp gives more than np.expm1
    return out if KIND[x.dtype] != "c" else np.where(np.isfinite(x), out, np.exp(x) - 1).astype(x.dtype)


expm1 = unary(
    "expm1",
    _expm1_ref,
    Lowering("expm1", by_parts(complex_formulas.expm1, in_single(real.expm1)), exponential_double_cpu.EXPM1),
    lambda g, x, y: mul(g, exp(x)),
)
log = unary(
    "log",
    np.log,
    Lowering("log", by_parts(complex_formulas.log, "stablehlo.log"), exponential_double_cpu.LOG),
    lambda g, x, y: div(g, x),
    domain=(0.2, 3.0),
)


def _log1p_ref(x: Any) -> Any:
    if KIND[x.dtype] != "c":
        return np.log1p(x)
    close = np.log1p(2 * x.real + (x.real * x.real + x.imag * x.imag)) / 2  # NumPy takes the logarithm of 1 + x
    out: Any = np.asarray(np.log1p(x))
    out.real = np.where(np.maximum(np.abs(x.real), np.abs(x.imag)) < 0.5, close, out.real)
    return out


_log1p_lower = by_parts(complex_formulas.log1p, _double(Term.log1p, "stablehlo.log_plus_one"))
log1p = unary(
    "log1p", _log1p_ref, Lowering("log1p", _log1p_lower, exponential_double_cpu.LOG1P),
    lambda g, x, y: div(g, add(x, full_like(x, 1))), domain=(-0.8, 3.0),
)  # fmt: skip
logistic = unary(
    "logistic", _logistic_ref, by_parts(complex_formulas.logistic, in_single(real.logistic)),
    lambda g, x, y: mul(g, mul(y, sub(full_like(y, 1), y))),
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------- trigonometric
def _trigonometric(name: str, op: str, single: Any, double: Any) -> Lowering:
    standard = by_parts(getattr(complex_formulas, name), f"stablehlo.{op}")
    of = lambda form, **more: vectorized_cpu.guarded(name, standard, form, trigonometric_cpu.moderate, **more)
    least = vectorized_cpu.LARGE if name == "tan" else vectorized_cpu.BY_VECTORS  # of float32
    return Lowering(name, standard, of(single, least=least), of(double, dtype="float64"))


_SIN = _trigonometric("sin", "sine", trigonometric_cpu.sin, trigonometric_double_cpu.sine)
_COS = _trigonometric("cos", "cosine", trigonometric_cpu.cos, trigonometric_double_cpu.cosine)
_TAN = _trigonometric("tan", "tan", trigonometric_cpu.tan, trigonometric_double_cpu.tangent)
sin = unary("sin", np.sin, _SIN, lambda g, x, y: mul(g, cos(x)), fusible=True)
cos = unary("cos", np.cos, _COS, lambda g, x, y: mul(g, neg(sin(x))), fusible=True)
tan = unary(
    "tan",
    np.tan,
    _TAN,
    lambda g, x, y: mul(g, add(full_like(y, 1), square(y))),
    domain=(-1.2, 1.2),
    fusible=True,
)
asin = unary(
    "asin",
    np.arcsin,
    Lowering(
        "asin", by_parts(complex_formulas.asin, "chlo.asin"), trigonometric_cpu.ASIN, trigonometric_double_cpu.ASIN
    ),
    lambda g, x, y: mul(g, rsqrt(one_minus_square(x))),
    domain=(-0.9, 0.9),
    fusible=True,
)
acos = unary(
    "acos",
    np.arccos,
    Lowering(
        "acos", by_parts(complex_formulas.acos, "chlo.acos"), trigonometric_cpu.ACOS, trigonometric_double_cpu.ACOS
    ),
    lambda g, x, y: mul(g, neg(rsqrt(one_minus_square(x)))),
    domain=(-0.9, 0.9),
    fusible=True,
)
atan = unary(
    "atan",
    np.arctan,
    Lowering(
        "atan", by_parts(complex_formulas.atan, "chlo.atan"), trigonometric_cpu.ATAN, trigonometric_double_cpu.ATAN
    ),
    lambda g, x, y: div(g, add(full_like(x, 1), square(x))),
    fusible=True,
)  # fmt: skip
sinh = unary("sinh", np.sinh, by_parts(complex_formulas.sinh, in_single(real.sinh)), lambda g, x, y: mul(g, cosh(x)))
cosh = unary("cosh", np.cosh, by_parts(complex_formulas.cosh, in_single(real.cosh)), lambda g, x, y: mul(g, sinh(x)))
tanh = unary(
    "tanh",
    np.tanh,
    Lowering(
        "tanh", by_parts(complex_formulas.tanh, _double(real.tanh, "stablehlo.tanh")), exponential_double_cpu.TANH
    ),
    lambda g, x, y: tanh_slope(g, y),
)


def _tanh_slope_lower(e: Any, g: Any, y: Any) -> Any:
    one = e.full(1, e.outs[0])
    less, more = (e.op(f"stablehlo.{op}", [one, y], e.outs) for op in ("subtract", "add"))
    return e.op("stablehlo.multiply", [e.op("stablehlo.multiply", [g, less], e.outs), more], e.outs)


#: The tangent of y = tanh(x): g * (1 - y**2). It is a primitive of its own because XLA:CPU fuses the product in this
#: order into its consumers. XLA:CPU would recompute g * one_minus_square(y) in each consumer, by one more kernel. And
#: the residual is y, which other operations keep, too.
tanh_slope = binary(
    "tanh_slope", lambda g, y: g * (1 - y) * (1 + y), _tanh_slope_lower,
    lambda h, g, y, z: tanh_slope(h, y), lambda h, g, y, z: mul(h, mul(g, neg(add(y, y)))), takes="fc",
    transpose=lambda ct, args: [tanh_slope(ct, args[1]), None],
    linear=0,
)  # fmt: skip
asinh = unary(
    "asinh",
    np.arcsinh,
    Lowering("asinh", by_parts(complex_formulas.asinh, "chlo.asinh"), exponential_double_cpu.ASINH),
    lambda g, x, y: mul(g, rsqrt(add(full_like(x, 1), square(x)))),
)
acosh = unary(
    "acosh",
    np.arccosh,
    Lowering("acosh", by_parts(complex_formulas.acosh, "chlo.acosh"), exponential_double_cpu.ACOSH),
    lambda g, x, y: mul(g, _acosh_slope(x)),
    domain=(1.2, 4.0),
)
atanh = unary(
    "atanh",
    np.arctanh,
    Lowering(
        "atanh", by_parts(complex_formulas.atanh, _double(real.atanh, "chlo.atanh")), exponential_double_cpu.ATANH
    ),
    lambda g, x, y: div(g, one_minus_square(x)),
    domain=(-0.9, 0.9),
)


def _acosh_slope(x: Any) -> Any:
    one = full_like(x, 1)
    return mul(rsqrt(sub(x, one)), rsqrt(add(x, one)))  # two roots: of a complex product the root may be the other one


def _turn(part: Any, x: Any, y: Any) -> Any:
    return div(part, add(square(x), square(y)))


atan2 = binary(
    "atan2", np.arctan2,
    Lowering("atan2", operation("stablehlo.atan2"), trigonometric_cpu.ATAN2, trigonometric_double_cpu.ATAN2),
    lambda g, y, x, z: mul(g, _turn(x, x, y)), lambda g, y, x, z: mul(g, _turn(neg(y), x, y)),
    takes="f", domain=(0.3, 2.0),
    fusible=True,
)  # fmt: skip

# --------------------------------------------------------------------------------------------------- roots and powers
sqrt = unary(
    "sqrt",
    np.sqrt,
    by_parts(complex_formulas.sqrt, "stablehlo.sqrt"),
    lambda g, x, y: div(g, add(y, y)),
    domain=(0.2, 3.0),
)


def _rsqrt_ref(x: np.ndarray) -> Any:
    root = np.sqrt(x)
    return np.where(np.isinf(root), 0, 1 / root).astype(x.dtype)  # NumPy finds NaN for 1 / (inf + i inf)


rsqrt = unary(
    "rsqrt", _rsqrt_ref, Lowering("rsqrt", by_parts(complex_formulas.rsqrt, "stablehlo.rsqrt"), vectorized_cpu.RSQRT),
    lambda g, x, y: mul(g, div(mul(full_like(y, -0.5), y), x)), domain=(0.2, 3.0),
)  # fmt: skip
cbrt = unary(
    "cbrt", np.cbrt,
    Lowering(
        "cbrt", operation("stablehlo.cbrt"), vectorized_cpu.CBRT, roots_double_cpu.CBRT,
        vectorized_cpu.CBRT_WITHOUT_SUBNORMALS,
    ),
    lambda g, x, y: div(g, mul(full_like(y, 3), square(y))), takes="f", domain=(0.2, 3.0),
    fusible=True,
)  # fmt: skip
