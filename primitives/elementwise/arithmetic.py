"""Arithmetic: sub mul div rem, sign abs square integer_pow, max min, and how ties share a tangent."""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import SampleInput, UndefinedPrimal, aval_of
from functorch_like.errors import ArgumentError
from functorch_like.primitives.base import integer_division
from functorch_like.primitives.base.bilinear import both_unknown
from functorch_like.primitives.base.elementwise_makers import (
    KIND,
    add,
    binary,
    elementwise_primitive,
    neg,
    nondifferentiable,
    same,
    samples_of,
    unary,
)
from functorch_like.primitives.base.lowering import Lowering
from functorch_like.primitives.base.shapes import full_like, zeros
from functorch_like.primitives.elementwise import exponential_double_cpu, extremes_cpu, vectorized_cpu
from functorch_like.primitives.elementwise.complex_parts import complex, conj, imag, real
from functorch_like.primitives.formulas import complex as complex_formulas
from functorch_like.primitives.formulas.complex import by_parts


# --------------------------------------------------------------------------------------------------------- linear in x
def _sub_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    first, second = tangents
    return sub(*primals), first if second is None else neg(second) if first is None else sub(first, second)


def _sub_transpose(ct: Any, args: Any) -> list[Any]:
    return [
        ct if isinstance(args[0], UndefinedPrimal) else None,
        neg(ct) if isinstance(args[1], UndefinedPrimal) else None,
    ]


def _mul_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (x, y), (first, second) = primals, tangents
    z = mul(x, y)
    if second is None:
        return z, mul(first, y)
    if first is None:
        return z, mul(x, second)
    if x is y and first is second:  # a square has one linear primitive, not three
        return z, mul(first, add(x, x))
    return z, add(mul(first, y), mul(x, second))


def _mul_transpose(ct: Any, args: Any) -> list[Any]:
    x, y = args
    if both_unknown("mul", x, y):
        return [None, None]
    return [None, mul(x, ct)] if isinstance(y, UndefinedPrimal) else [mul(ct, y), None]


sub = elementwise_primitive(
    "sub",
    np.subtract,
    "subtract",
    count=2,
    takes="fciu",
    jvp=_sub_jvp,
    transpose=_sub_transpose,
    linear="jointly",
    fusible=True,
    exact=True,
)
mul = elementwise_primitive(
    "mul",
    np.multiply,
    "multiply",
    count=2,
    takes="fciu",
    jvp=_mul_jvp,
    transpose=_mul_transpose,
    linear="separately",
    fusible=True,
    exact=True,
)


# ------------------------------------------------------------------------------------------------------------ division
def _div_ref(x: np.ndarray, y: np.ndarray) -> Any:
    if KIND[x.dtype] not in "iu":
        return np.divide(x, y)
    # Rounds towards zero; x/0 has all bits set; the one quotient that overflows wraps around.
    by = np.where(y == 0, 1, y).astype(x.dtype)
    q = np.floor_divide(x, by)
    r = x - q * by
    q = q + ((r != 0) & ((x < 0) != (by < 0))).astype(x.dtype)
    return np.where(y == 0, ~np.zeros((), x.dtype), q).astype(x.dtype)


def _rem_ref(x: np.ndarray, y: np.ndarray) -> Any:
    if KIND[x.dtype] not in "iu":
        return np.fmod(x, y)
    return np.where(y == 0, x, np.fmod(x, np.where(y == 0, 1, y).astype(x.dtype)))


def _div_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (_, y), (first, second) = primals, tangents
    z = div(*primals)
    if second is None:
        return z, None if first is None else div(first, y)
    if first is None:
        return z, mul(second, neg(div(z, y)))
    return z, div(sub(first, mul(second, z)), y)  # one division, where XLA would not simplify several


def _div_lower(e: Any, x: Any, y: Any) -> Any:
    """Divide float16 in float32: XLA rewrites (a / b) / c as a / (b * c), and in float16 even 256 * 256 overflows."""
    (out,) = e.outs
    if KIND[out.dtype] in "iu":
        return integer_division.quotient(e, x, y)
    if out.dtype != dtypes.float16:
        return e.op("stablehlo.divide", [x, y], e.outs)
    wide = out.update(dtype=dtypes.float32)
    return e.convert(e.op("stablehlo.divide", [e.convert(x, wide), e.convert(y, wide)], [wide]), out)


div = elementwise_primitive(
    "div", _div_ref, Lowering("div", _div_lower, vectorized_cpu.WHOLE_DIV), count=2, takes="fciu",
    jvp=_div_jvp, domain=(0.5, 3.0),
    transpose=lambda ct, args: [None if isinstance(args[1], UndefinedPrimal) else div(ct, args[1]), None],
    linear=0, fusible=True,
)  # fmt: skip


def _remainder(e: Any, x: Any, y: Any) -> Any:
    if KIND[e.outs[0].dtype] in "iu":
        return integer_division.remainder(e, x, y)
    return e.op("stablehlo.remainder", [x, y], e.outs)


_REM = Lowering(
    "rem",
    _remainder,
    vectorized_cpu.guarded("rem", _remainder, vectorized_cpu.rem, vectorized_cpu.few),
    vectorized_cpu.guarded("rem", _remainder, exponential_double_cpu.rem, exponential_double_cpu.few, dtype="float64"),
    vectorized_cpu.WHOLE_REM,
)
rem = binary(
    "rem", _rem_ref, _REM, lambda g, x, y, z: g, lambda g, x, y, z: mul(g, div(sub(z, x), y)), takes="fiu",
    domain=(0.5, 4.0),
    fusible=True,
)  # fmt: skip


# -------------------------------------------------------------------------------------------------------- sign and abs
def _sign_ref(x: np.ndarray) -> Any:
    # ml_dtypes gives -0 for -0, and NumPy 0.
    return np.sign(x) if KIND[x.dtype] != "f" else np.where(x == 0, 0, np.sign(x)).astype(x.dtype)


def _sign_lower(e: Any, x: Any) -> Any:
    (out,) = e.outs
    kind = KIND[out.dtype]
    if kind == "u":  # StableHLO has it for signed numbers only
        return e.op("stablehlo.minimum", [x, e.full(1, out)], [out])
    if kind == "c":
        return _complex_sign(e, x)
    y = e.op("stablehlo.sign", [x], [out])
    if kind == "i":
        return y
    zero = e.full(0, out)  # of -0.0 too
    return e.op("stablehlo.select", [compare(e, "EQ", x, zero, out), zero, y], [out])


_complex_sign = by_parts(complex_formulas.sign, "")


def _abs_lower(e: Any, x: Any) -> Any:
    (aval,) = e.ins
    kind = KIND[aval.dtype]
    if kind == "c":
        return complex_formulas.size(*complex_formulas.halves(e, x, aval)).v
    return x if kind == "u" else e.op("stablehlo.abs", [x], e.outs)


def _sign_tangent(g: Any, x: Any, y: Any) -> Any:
    if KIND[aval_of(x).dtype] != "c":
        return None
    # x/|x| turns but keeps its length: the part of g along x does nothing.
    # At 0 it is 0, as the sign itself: 0 / 1 and not 0 / 0.
    size = abs(x)
    turn = div(imag(mul(g, conj(y))), add(size, sub(full_like(size, 1), sign(size))))
    return mul(y, complex(zeros(aval_of(turn)), turn))


def _abs_tangent(g: Any, x: Any, y: Any) -> Any:
    return real(mul(g, conj(sign(x)))) if KIND[aval_of(x).dtype] == "c" else mul(g, sign(x))


sign = unary("sign", _sign_ref, _sign_lower, _sign_tangent, takes="fciu", fusible=True)
abs = unary(
    "abs", np.abs, _abs_lower, _abs_tangent, takes="fciu", gives=dtypes.real_part,
    fusible=True, exact=True,
)  # fmt: skip


# -------------------------------------------------------------------------------------------------------------- powers
square = unary(
    "square", np.square, lambda e, x: e.op("stablehlo.multiply", [x, x], e.outs), lambda g, x, y: mul(g, add(x, x)),
    takes="fciu",
    fusible=True,
)  # fmt: skip


def _power_shape(x: Any, *, y: int) -> Any:
    if y < 0 and KIND[x.dtype] in "iu":
        raise ArgumentError(f"integer_pow of {x!r} with the negative power {y}", fix="convert to a float first")
    return _POWER_SAME(x)


_POWER_SAME = same("integer_pow", "fciu")


def _power_lower(e: Any, x: Any, *, y: int) -> Any:
    left, factor, product = y if y >= 0 else -y, x, None
    while left:  # the binary digits of the power, lowest first
        if left & 1:
            product = factor if product is None else e.op("stablehlo.multiply", [product, factor], e.outs)
        left >>= 1
        if left:
            factor = e.op("stablehlo.multiply", [factor, factor], e.outs)
    if product is None:
        return e.full(1, e.outs[0])
    return e.op("stablehlo.divide", [e.full(1, e.outs[0]), product], e.outs) if y < 0 else product


def _power_tangent(g: Any, x: Any, z: Any, *, y: int) -> Any:
    if y in (0, 1):
        return g if y else None
    if y == 2:
        return mul(g, add(x, x))
    return mul(g, mul(full_like(x, y), integer_pow(x, y=y - 1)))


def _power_ref(x: np.ndarray, *, y: int) -> Any:
    if KIND[x.dtype] in "fc":
        size = np.power(x, y if y >= 0 else -y, dtype=x.dtype)
        return size if y >= 0 else 1 / size
    whole = [pow(int(v), y, 2 ** (8 * x.dtype.itemsize)) for v in x.ravel()]  # the remainder, by the bits
    return np.array(whole, np.uint64).reshape(x.shape).astype(x.dtype)


def _power_samples() -> list[SampleInput]:
    samples: list[SampleInput] = []
    for y, takes, domain in [
        (0, "f", None),
        (1, "f", None),
        (2, "fi", None),
        (3, "fci", None),
        (7, "f", None),
        (-3, "fc", (0.5, 1.5)),
    ]:
        every = samples_of(1, takes, domain or (-1.5, 1.5), ({"y": y},), True)
        samples += every if y == 3 else every[1:2] + every[3:]
    return samples


integer_pow = unary(
    "integer_pow",
    _power_ref,
    _power_lower,
    _power_tangent,
    takes="fciu",
    shape=_power_shape,
    samples=_power_samples,
    fusible=True,
)


# ------------------------------------------------------------------------------------------------------ larger, smaller
def compare(e: Any, direction: str, x: Any, y: Any, aval: Any) -> Any:
    """A comparison of two values of one aval."""
    kind = {"f": "FLOAT", "c": "FLOAT", "i": "SIGNED"}.get(KIND[aval.dtype], "UNSIGNED")
    return e.compare(direction, x, y, aval.update(dtype=dtypes.bool_, weak_type=False), kind)


def _share_lower(e: Any, x: Any, y: Any) -> Any:
    (out,) = e.outs
    tie = e.op("stablehlo.select", [compare(e, "EQ", x, y, out), e.full(0.5, out), e.full(0, out)], [out])
    return e.op("stablehlo.select", [compare(e, "GT", x, y, out), e.full(1, out), tie], [out])


#: The share of x in the tangent of `max(x, y)`: all where x is larger, half where both are equal.
share = nondifferentiable(
    "share", lambda x, y: np.where(x > y, 1, np.where(x == y, 0.5, 0)).astype(x.dtype), _share_lower, count=2, takes="f"
)


def _extreme(plain: Any, sign: int) -> Any:
    """NumPy's, which leaves the result for 0 and -0 open, with -0 below 0 as in IEEE 754-2019."""

    def ref(x: np.ndarray, y: np.ndarray) -> Any:
        out = plain(x, y)
        return out if KIND[x.dtype] != "f" else np.where((x == 0) & (y == 0), sign * (sign * x + sign * y), out)

    return lambda x, y: np.asarray(ref(x, y)).astype(x.dtype)


max = binary(
    "max", _extreme(np.maximum, 1), extremes_cpu.keeping_nan("maximum"), lambda g, x, y, z: mul(g, share(x, y)),
    lambda g, x, y, z: mul(g, share(y, x)), takes="fiub",
    fusible=True, exact=True,
)  # fmt: skip
min = binary(
    "min", _extreme(np.minimum, -1), extremes_cpu.keeping_nan("minimum"), lambda g, x, y, z: mul(g, share(y, x)),
    lambda g, x, y, z: mul(g, share(x, y)), takes="fiub",
    fusible=True, exact=True,
)  # fmt: skip
