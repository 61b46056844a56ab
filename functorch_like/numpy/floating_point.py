"""Parts of floating-point numbers (exponents, fractions, spacing), the unit step, and the Bessel function i0."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import DtypeError
from functorch_like.numpy import promotion
from functorch_like.numpy.binary import _with_sign
from functorch_like.numpy.unary import signbit
from functorch_like.primitives import elementwise
from functorch_like.primitives.elementwise.bessel import bessel_i0e
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike

_DOC = """{summary}

    Args:
        {args}

    Returns:
        Floats, of the shape that the operands broadcast to.

    Raises:
        DtypeError: for complex numbers{extra}.

    >>> {example}
    {value}
    """


def _real(x: Any, name: str) -> Any:
    if aval_of(x).dtype.kind == "c":
        raise promotion.error(
            DtypeError, f"fnp.{name} takes real numbers, got {aval_of(x)!r}", "take fnp.real or fnp.abs"
        )
    return promotion.to_inexact(x)


class _Layout(NamedTuple):
    """Position of the exponent in the bits of a dtype."""

    bits: np.dtype[Any]
    mantissa: int
    bias: int
    most: int  # the exponent field of infinities and NaN


def _layout(dtype: np.dtype[Any]) -> _Layout:
    info = dtypes.finfo(dtype)
    bits = np.dtype(f"int{8 * dtype.itemsize}")
    return _Layout(bits, int(info.nmant), int(info.maxexp) - 1, 2 * int(info.maxexp) - 1)


def _wide(x: Any) -> Any:
    """Convert floats of at most 16 bits to 32 bits, in which the computations here are exact."""
    aval = aval_of(x)
    return promotion.convert(x, dtypes.float32, aval.weak_type) if aval.dtype.itemsize < 4 else x


def _field(x: Any) -> Any:
    """Return the exponent field, as integers of the width of x."""
    at = _layout(aval_of(x).dtype)
    pattern = elementwise.bitcast_convert_type(x, new_dtype=at.bits)
    shifted = elementwise.shift_right_arithmetic(pattern, promotion.like(pattern, at.mantissa))
    return elementwise.and_(shifted, promotion.like(shifted, at.most))


def _exponent(x: Any) -> tuple[Any, Any]:
    """Return k with |x| = m * 2**k and 0.5 <= m < 1; and whether x is zero, infinite or NaN, where k is undefined.

    Subnormal numbers are scaled to normal ones first; XLA's CPU code flushes them to zero.
    """
    at = _layout(aval_of(x).dtype)
    up = at.mantissa + 1
    field, raised = _field(x), _field(elementwise.mul(x, promotion.like(x, 2.0**up)))
    zero = promotion.like(field, 0)
    k = elementwise.sub(
        elementwise.select_n(elementwise.eq(field, zero), field, elementwise.sub(raised, promotion.like(field, up))),
        promotion.like(field, at.bias - 1),
    )
    return k, elementwise.or_(elementwise.eq(raised, zero), elementwise.eq(field, promotion.like(field, at.most)))


def _power_of_two(k: Any, like: Any) -> Any:
    """Return 2**k in the dtype of another value, for exponents of normal numbers."""
    at = _layout(aval_of(like).dtype)
    pattern = elementwise.shift_left(elementwise.add(k, promotion.like(k, at.bias)), promotion.like(k, at.mantissa))
    return elementwise.bitcast_convert_type(pattern, new_dtype=aval_of(like).dtype)


def _scaled(x: Any, k: Any) -> Any:
    """Return x * 2**k, rounded once: by exact steps, and a last one into the subnormal numbers."""
    at = _layout(aval_of(x).dtype)
    bound = lambda v, low, high: elementwise.min(elementwise.max(v, promotion.like(v, low)), promotion.like(v, high))
    reach = 3 * at.bias - 3
    # TRAP: XLA multiplies constant powers with one another, and 2**200 is infinite; these depend on x.
    k = elementwise.select_n(elementwise.ne(x, x), bound(k, -reach, reach), promotion.like(k, 0))
    # Down to the least normal number first; for x = 0 any number of steps is right.
    floor = elementwise.sub(promotion.like(k, 1 - at.bias), elementwise.sub(_exponent(x)[0], promotion.like(k, 1)))
    whole = elementwise.select_n(
        elementwise.lt(k, promotion.like(k, 0)), k, elementwise.min(elementwise.max(k, floor), promotion.like(k, 0))
    )
    rest = bound(elementwise.sub(k, whole), 1 - at.bias, 0)
    third = bound(elementwise.div(whole, promotion.like(whole, 3)), 1 - at.bias, at.bias)
    last = bound(elementwise.sub(whole, elementwise.add(third, third)), 1 - at.bias, at.bias)
    for step in (third, third, last, rest):
        x = elementwise.mul(x, _power_of_two(step, x))
    return x


def _frexp(x: Any) -> tuple[Any, Any]:
    aval = aval_of(_real(x, "frexp"))
    x = _wide(_real(x, "frexp"))
    at = _layout(aval_of(x).dtype)
    up = at.mantissa + 1
    field = _field(x)
    like = lambda number: promotion.like(field, number)
    small = elementwise.eq(field, like(0))  # subnormal numbers are scaled to normal ones
    y = elementwise.select_n(small, x, elementwise.mul(x, promotion.like(x, 2.0**up)))
    raised = _field(y)
    none = elementwise.or_(elementwise.eq(raised, like(0)), elementwise.eq(raised, like(at.most)))
    k = elementwise.select_n(none, elementwise.sub(raised, like(at.bias - 1)), like(0))
    half = elementwise.shift_right_arithmetic(k, like(1))  # 2**-k may be no normal number
    for step in (elementwise.neg(half), elementwise.sub(half, k)):
        y = elementwise.mul(y, _power_of_two(step, y))
    whole = elementwise.select_n(elementwise.and_(small, elementwise.not_(none)), k, elementwise.sub(k, like(up)))
    return promotion.convert(y, aval.dtype, aval.weak_type), promotion.convert(whole, dtypes.int32)


_frexp_kernel = eager_jit(ints=True, checked=True)(_frexp)


def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """Mantissa m and exponent k with x = m * 2**k and 0.5 <= |m| < 1; zeros, infinities and NaN with exponent 0.

    Args:
        x: array or number.

    Returns:
        The mantissa, in the dtype of x, and the exponent, an int32 array.

    Raises:
        DtypeError: for complex numbers.

    >>> m, k = fnp.frexp(fnp.asarray([12.0]))
    >>> m.tolist(), k.tolist()
    ([0.75], [4])
    """
    return tuple(_frexp_kernel(*promotion.numbers(x)))


def _ldexp(x: Any, k: Any) -> Any:
    if not (dtypes.is_integer(aval_of(k).dtype) or aval_of(k).dtype == dtypes.bool_):
        raise promotion.error(
            DtypeError, f"fnp.ldexp takes integers as exponents, got {aval_of(k)!r}", "convert with astype('int32')"
        )
    x = _real(x, "ldexp")
    aval = aval_of(x)
    x, k = promotion.broadcast_arrays(_wide(x), promotion.convert(k, aval_of(k).dtype))
    bits = _layout(aval_of(x).dtype).bits
    if aval_of(k).dtype.itemsize > bits.itemsize or dtypes.is_unsigned(aval_of(k).dtype):
        top = np.iinfo(np.int16).max
        k = k if np.iinfo(aval_of(k).dtype).max <= top else elementwise.min(k, promotion.like(k, top))
        low = None if dtypes.is_unsigned(aval_of(k).dtype) else promotion.like(k, np.iinfo(np.int16).min)
        k = k if low is None else elementwise.max(k, low)
    return promotion.convert(_scaled(x, promotion.convert(k, bits)), aval.dtype, aval.weak_type)


ldexp = promotion.binary(
    "ldexp",
    _ldexp,
    _DOC.format(
        summary="x1 * 2**x2, rounded once.",
        args="x1: array or number.\n        x2: integers; the two broadcast.",
        extra=", and exponents that are not integers",
        example="float(fnp.ldexp(0.75, 4))",
        value="12.0",
    ),
)


def _modf(x: Any) -> tuple[Any, Any]:
    x = _real(x, "modf")
    whole = elementwise.select_n(elementwise.lt(x, promotion.like(x, 0)), elementwise.floor(x), elementwise.ceil(x))
    size = elementwise.select_n(
        elementwise.eq(elementwise.abs(x), promotion.like(x, math.inf)), elementwise.sub(x, whole), promotion.like(x, 0)
    )
    turned = elementwise.select_n(
        elementwise.eq(elementwise.abs(x), promotion.like(x, math.inf)),
        elementwise.sub(elementwise.neg(x), elementwise.neg(whole)),
        promotion.like(x, 0),
    )
    below: Any = signbit
    return elementwise.select_n(
        below.body(x), size, elementwise.neg(turned)
    ), whole  # zeros have the sign of x, and derivative 1


_modf_kernel = eager_jit(ints=True, checked=True)(_modf)


def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """The fraction and the whole part of numbers, both with the sign of x.

    Args:
        x: array or number.
        out: not supported: arrays are immutable.

    Returns:
        A pair of arrays of the shape of x: the fractional and the integral parts, in floating point.

    Raises:
        DtypeError: for complex numbers.

    >>> [float(part) for part in fnp.modf(-2.5)]
    [-0.5, -2.0]
    """
    promotion.no_out(out, "fnp.modf")
    return tuple(_modf_kernel(*promotion.numbers(x)))


def _spacing(x: Any) -> Any:
    """Compute distances by the bits: floating-point arithmetic on CPUs flushes subnormal distances to zero."""
    x = _real(x, "spacing")
    at, field = _layout(aval_of(x).dtype), _field(x)
    one, width = promotion.like(field, 1), promotion.like(field, at.mantissa)
    normal = elementwise.shift_left(elementwise.max(elementwise.sub(field, width), one), width)
    subnormal = elementwise.shift_left(
        one, elementwise.min(elementwise.max(elementwise.sub(field, one), promotion.like(field, 0)), width)
    )
    pattern = elementwise.select_n(elementwise.gt(field, width), subnormal, normal)
    gap = _with_sign(elementwise.bitcast_convert_type(pattern, new_dtype=aval_of(x).dtype), x)
    pattern = elementwise.bitcast_convert_type(x, new_dtype=aval_of(field).dtype)
    zero = elementwise.eq(
        elementwise.shift_left(pattern, one), promotion.like(pattern, 0)
    )  # comparisons flush subnormal numbers to zero, too
    gap = elementwise.select_n(zero, gap, elementwise.abs(gap))
    return elementwise.select_n(elementwise.eq(field, promotion.like(field, at.most)), gap, promotion.like(x, math.nan))


def _heaviside(x: Any, at_zero: Any) -> Any:
    x, at_zero = promotion.align_inexact(x, at_zero)
    if aval_of(x).dtype.kind == "c":
        raise promotion.error(DtypeError, "fnp.heaviside takes real numbers", "take fnp.real")
    step = elementwise.select_n(elementwise.gt(x, promotion.like(x, 0)), promotion.like(x, 0), promotion.like(x, 1))
    return elementwise.select_n(
        elementwise.ne(x, x), elementwise.select_n(elementwise.eq(x, promotion.like(x, 0)), step, at_zero), x
    )


def _i0(x: Any) -> Any:
    x = elementwise.abs(_real(x, "i0"))
    return elementwise.mul(bessel_i0e(x), elementwise.exp(x))


_ONE = "x: array or number; integers and booleans become the default float."
spacing = promotion.unary(
    "spacing",
    _spacing,
    _DOC.format(
        summary="The distance to the next number away from zero, with the sign of x; NaN for infinities.",
        args=_ONE, extra="", example="float(fnp.spacing(fnp.float32(1)))", value="1.1920928955078125e-07",
    ),
)  # fmt: skip
fabs = promotion.unary(
    "fabs",
    lambda x: elementwise.abs(_real(x, "fabs")),
    _DOC.format(
        summary="Absolute value, in floating point for integers too.",
        args=_ONE, extra="", example="float(fnp.fabs(-2))", value="2.0",
    ),
)  # fmt: skip
heaviside = promotion.binary(
    "heaviside",
    _heaviside,
    _DOC.format(
        summary="The unit step: 0 where x1 < 0, x2 where x1 == 0, and 1 where x1 > 0.",
        args="x1: array or number.\n        x2: array or number; the two broadcast.",
        extra="", example="fnp.heaviside(fnp.asarray([-2.0, 0.0, 3.0]), 0.5).tolist()", value="[0.0, 0.5, 1.0]",
    ),
    promotion.floats_beyond,
)  # fmt: skip
i0 = promotion.unary(
    "i0",
    _i0,
    _DOC.format(
        summary="The modified Bessel function of the first kind and order 0 (DLMF 10.25).",
        args=_ONE, extra="", example="round(float(fnp.i0(1.0)), 4)", value="1.2661",
    ),
)  # fmt: skip
