"""Elementwise functions of two arrays: arithmetic, powers, division, extremes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import ArrayImpl, Tracer, argument_aval, aval_of
from functorch_like.errors import ArgumentError, DtypeError
from functorch_like.numpy import promotion
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.elementwise.powers import HALVES
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Binary

_DOC = """{summary}

    Args:
        x1: array or number.
        x2: array or number; the two broadcast and are promoted to a common dtype.

    Returns:
        An array of the shape the two broadcast to.

    Raises:
        ShapeError: where the shapes do not broadcast.
        DtypeError: where the dtypes have no common dtype, or the operation does not support it.
        NumberError: where a Python int does not fit the integer dtype of the other operand.

    >>> bool(np.allclose(fnp.{name}({at}), np.{name}({at}), rtol=1e-5))
    True
    """


def _binary(
    name: str, body: Callable[[Any, Any], Any], summary: str, at: str = "3.5, -2.0", adapt: Any = None
) -> Binary:
    made = promotion.binary(name, body, _DOC.format(summary=summary, name=name, at=at), adapt)
    made.__module__ = __name__
    return made


#: Functions whose results are in floating point: Python's ints need not fit the integers beside them.
_real = functools.partial(_binary, adapt=promotion.floats_beyond)


def _promoted(
    primitive: Callable[[Any, Any], Any], bools: Callable[[Any, Any], Any] | None = None
) -> Callable[[Any, Any], Any]:
    """Make the body of a primitive of two operands; booleans may have a primitive of their own."""

    def body(x: Any, y: Any) -> Any:
        a = argument_aval(x)
        if type(x) in promotion.NUMBERS or type(y) in promotion.NUMBERS or a is not argument_aval(y):
            x, y = promotion.promote_and_broadcast2(x, y)
            a = aval_of(x)
        return bools(x, y) if a.dtype.kind == "b" and bools is not None else primitive(x, y)

    return body


def _inexact(primitive: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def body(x: Any, y: Any) -> Any:
        a = argument_aval(x)
        if a is argument_aval(y) and a.dtype.kind in "fc" and type(x) not in promotion.NUMBERS:
            return primitive(x, y)
        return primitive(*promotion.align_inexact2(x, y))

    return body


def _no_bool_subtract(x: Any, y: Any) -> Any:
    raise promotion.error(
        DtypeError, "booleans cannot be subtracted", "use fnp.logical_xor (x ^ y), or convert with astype"
    )


add = _binary("add", _promoted(elementwise.add, elementwise.or_), "Sum; for booleans, logical or.")
subtract = _binary("subtract", _promoted(elementwise.sub, _no_bool_subtract), "Difference.")
multiply = _binary("multiply", _promoted(elementwise.mul, elementwise.and_), "Product; for booleans, logical and.")
divide = _real("divide", _inexact(elementwise.div), "Quotient, in floating point for integers too.")
true_divide = divide


# ------------------------------------------------------------------------------------------ floor division, remainders
def _real_only(name: str, x: Any) -> None:
    if aval_of(x).dtype.kind == "c":
        raise promotion.error(DtypeError, f"fnp.{name} takes real numbers, got {aval_of(x)!r}", "convert with astype")


def _real_pair(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Return real operands, promoted; booleans as integers."""
    x, y = promotion.promote_and_broadcast2(x, y)
    _real_only(name, x)
    if aval_of(x).dtype == dtypes.bool_:
        return promotion.convert(x, dtypes.narrow_int()), promotion.convert(y, dtypes.narrow_int())
    return x, y


def _floor_divide(x: Any, y: Any) -> Any:
    x, y = _real_pair("floor_divide", x, y)
    dtype = aval_of(x).dtype
    if dtypes.is_unsigned(dtype):
        return _no_zero(y, elementwise.div(x, y))
    if dtypes.is_integer(dtype):
        q, r = elementwise.div(x, y), elementwise.rem(x, y)
        zero = promotion.like(x, 0)
        down = elementwise.and_(
            elementwise.ne(r, zero), elementwise.ne(elementwise.lt(r, zero), elementwise.lt(y, zero))
        )
        return _no_zero(y, elementwise.select_n(down, q, elementwise.sub(q, promotion.like(q, 1))))
    # As in Python: the quotient fits the remainder, so that x == q * y + r up to rounding.
    x, y = (
        structural.stop_gradient(x),
        structural.stop_gradient(y),
    )  # a step function; the operations below have derivatives, some infinite
    r, zero = elementwise.rem(x, y), promotion.like(x, 0)
    q = elementwise.div(elementwise.sub(x, r), y)
    down = elementwise.and_(elementwise.ne(r, zero), elementwise.ne(elementwise.lt(r, zero), elementwise.lt(y, zero)))
    q = elementwise.select_n(down, q, elementwise.sub(q, promotion.like(q, 1)))
    low = elementwise.floor(q)
    q = elementwise.select_n(
        elementwise.gt(elementwise.sub(q, low), promotion.like(q, 0.5)),
        low,
        elementwise.add(low, promotion.like(low, 1)),
    )
    quotient = elementwise.div(x, y)
    q = elementwise.select_n(elementwise.eq(q, zero), q, elementwise.mul(quotient, zero))  # zero keeps its sign
    # If an operand is infinite or y is 0, return the value of the array API standard; Python's is NaN or -1.
    plain = elementwise.or_(
        elementwise.eq(y, zero), elementwise.not_(elementwise.and_(elementwise.is_finite(x), elementwise.is_finite(y)))
    )
    return elementwise.select_n(plain, q, elementwise.floor(quotient))


def _no_zero(y: Any, out: Any) -> Any:
    """Return `out`, with 0 where y is 0, as in NumPy's integer division."""
    return elementwise.select_n(elementwise.eq(y, promotion.like(y, 0)), out, promotion.like(out, 0))


def _python_rem(x: Any, y: Any) -> Any:
    r, zero = elementwise.rem(x, y), promotion.like(x, 0)
    other = elementwise.and_(elementwise.ne(r, zero), elementwise.ne(elementwise.lt(r, zero), elementwise.lt(y, zero)))
    return elementwise.select_n(other, r, elementwise.add(r, y))


def _remainder(x: Any, y: Any) -> Any:
    x, y = _real_pair("remainder", x, y)
    r = _python_rem(x, y)
    if dtypes.is_integer(aval_of(x).dtype):
        return _no_zero(y, r)
    # A zero gets the sign of y, and keeps the derivatives of r: `nextafter` of equal numbers is the second of them.
    return elementwise.select_n(
        elementwise.eq(r, promotion.like(r, 0)), r, elementwise.nextafter(r, _with_sign(promotion.like(r, 0), y))
    )


def _fmod(x: Any, y: Any) -> Any:
    x, y = _real_pair("fmod", x, y)
    r = elementwise.rem(x, y)
    return _no_zero(y, r) if dtypes.is_integer(aval_of(x).dtype) else r


def _with_sign(x: Any, y: Any) -> Any:
    bits = np.dtype(f"int{8 * aval_of(x).dtype.itemsize}")
    minus = elementwise.bitcast_convert_type(y, new_dtype=bits)
    size = elementwise.abs(x)
    return elementwise.select_n(elementwise.lt(minus, promotion.like(minus, 0)), size, elementwise.neg(size))


floor_divide = _binary(
    "floor_divide", _floor_divide, "The greatest whole number not above x1 / x2; 0 for integers divided by 0."
)
remainder = _binary("remainder", _remainder, "x1 - x2 * floor(x1 / x2): has the sign of x2, as Python's %.")
fmod = _binary("fmod", _fmod, "The remainder of division rounded towards zero: has the sign of x1.")
mod = remainder
arctan2 = _real(
    "arctan2",
    lambda y, x: elementwise.atan2(*promotion.align_inexact(y, x)),
    "The angle of the point (x2, x1), in radians.",
)
atan2 = arctan2
copysign = _real("copysign", lambda x, y: _with_sign(*promotion.align_inexact(x, y)), "x1 with the sign of x2.")
nextafter = _real(
    "nextafter",
    lambda x, y: elementwise.nextafter(*promotion.align_inexact(x, y)),
    "The next representable number after x1 towards x2.",
    "1.0, 2.0",
)


def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """Divide, rounding down, and return the remainder, too.

    Args:
        x1: array or number.
        x2: array or number; the two broadcast.

    Returns:
        A pair of arrays: `floor_divide(x1, x2)` and `remainder(x1, x2)`.

    >>> [int(a) for a in fnp.divmod(7, -2)]
    [-4, -1]
    """
    return floor_divide(x1, x2), remainder(x1, x2)


# -------------------------------------------------------------------------------------------------------- extremes
def _complex_order() -> Any:
    from functorch_like.numpy import complex_order  # rarely used

    return complex_order


def _ordered(primitive: Any, bools: Any, greatest: bool) -> Any:
    inner = _promoted(primitive, bools)

    def body(x: Any, y: Any) -> Any:
        if aval_of(x).dtype.kind == "c" or aval_of(y).dtype.kind == "c":
            return _complex_order().extreme(*promotion.promote_and_broadcast2(x, y), greatest)
        return inner(x, y)

    return body


def _ignoring_nan(body: Any, greatest: bool) -> Any:
    def quiet(x: Any, y: Any) -> Any:
        x, y = promotion.promote_and_broadcast2(x, y)
        if aval_of(x).dtype.kind == "c":
            return _complex_order().extreme(x, y, greatest, skip=True)
        if not dtypes.is_float(aval_of(x).dtype):
            return body(x, y)
        return elementwise.select_n(elementwise.ne(x, x), elementwise.select_n(elementwise.ne(y, y), body(x, y), x), y)

    return quiet


_max_body, _min_body = (
    _ordered(elementwise.max, elementwise.or_, True),
    _ordered(elementwise.min, elementwise.and_, False),
)
maximum = _binary("maximum", _max_body, "The greater of two; NaN if either is. Ties share the derivative evenly.")
minimum = _binary("minimum", _min_body, "The lesser of two; NaN if either is. Ties share the derivative evenly.")
fmax = _binary("fmax", _ignoring_nan(_max_body, True), "The greater of two; NaN only where both are.")
fmin = _binary("fmin", _ignoring_nan(_min_body, False), "The lesser of two; NaN only where both are.")


# ------------------------------------------------------------------------------------------------- powers and roots
def _hypot(x: Any, y: Any) -> Any:
    x, y = promotion.align_inexact(x, y)
    _real_only("hypot", x)
    x, y = elementwise.abs(x), elementwise.abs(y)
    big, small = elementwise.max(x, y), elementwise.min(x, y)
    zero, one = promotion.like(x, 0), promotion.like(x, 1)
    usable = elementwise.and_(elementwise.gt(big, zero), elementwise.is_finite(big))
    ratio = elementwise.div(small, elementwise.select_n(usable, one, big))
    length = elementwise.mul(
        elementwise.select_n(usable, one, big), elementwise.sqrt(elementwise.add(one, elementwise.square(ratio)))
    )
    endless = elementwise.or_(
        elementwise.eq(x, promotion.like(x, math.inf)), elementwise.eq(y, promotion.like(y, math.inf))
    )  # even if the other one is NaN
    return elementwise.select_n(
        endless, elementwise.select_n(usable, elementwise.add(x, y), length), promotion.like(x, math.inf)
    )


hypot = _real("hypot", _hypot, "sqrt(x1**2 + x2**2), without overflow.")


def _log_add(base: float) -> Callable[[Any, Any], Any]:
    """Return log(base**x + base**y) / log(base), with right derivatives at infinities and ties; takes log(base)."""

    def body(x: Any, y: Any) -> Any:
        x, y = promotion.align_inexact(x, y)
        if dtypes.is_complex(aval_of(x).dtype):
            return complex_log_add(x, y, base)
        high = elementwise.max(x, y)
        gap = elementwise.select_n(
            elementwise.eq(x, y), elementwise.sub(x, y), promotion.like(x, 0)
        )  # inf - inf would be NaN
        gap = elementwise.neg(elementwise.abs(gap))
        if base == 1:
            return elementwise.add(high, elementwise.log1p(elementwise.exp(gap)))
        scale = promotion.like(gap, base)
        return elementwise.add(
            high, elementwise.div(elementwise.log1p(elementwise.exp(elementwise.mul(gap, scale))), scale)
        )

    return body


def complex_log_add(x: Any, y: Any, base: float = 1.0) -> Any:
    """Return `_log_add` of complex numbers: the number of smaller real part is added to the other."""
    first = elementwise.ge(elementwise.real(x), elementwise.real(y))
    high, low = elementwise.select_n(first, y, x), elementwise.select_n(first, x, y)
    same = elementwise.and_(elementwise.eq(high, low), elementwise.not_(elementwise.is_finite(elementwise.real(high))))
    gap = elementwise.select_n(same, elementwise.sub(low, high), promotion.like(x, 0))  # inf - inf would be NaN
    scale = promotion.like(gap, base)
    out = elementwise.add(high, elementwise.div(elementwise.log1p(elementwise.exp(elementwise.mul(gap, scale))), scale))
    # The logarithm's principal value: its angle is at most half a turn.
    angle = elementwise.imag(out)
    turn = promotion.like(angle, 2 * math.pi / base)
    turns = elementwise.ceil(elementwise.sub(elementwise.div(angle, turn), promotion.like(angle, 0.5)))
    inside = elementwise.sub(angle, elementwise.mul(turns, turn))
    return elementwise.complex(
        elementwise.real(out), elementwise.select_n(elementwise.is_finite(inside), angle, inside)
    )


logaddexp = _real("logaddexp", _log_add(1.0), "log(exp(x1) + exp(x2)), without overflow.")
logaddexp2 = _real("logaddexp2", _log_add(math.log(2)), "log2(2**x1 + 2**x2), without overflow.")


def _pow(x: Any, y: Any, known: bool = False) -> Any:
    """Return the power; `known`: an exponent of rank 0 has a value, as in eager calls."""
    exponent = aval_of(y)
    known = (known or type(y) is ArrayImpl) and not exponent.shape
    x, y = promotion.promote_and_broadcast2(x, y)
    base = aval_of(x)
    if base.dtype.kind == "b":
        x, y = (promotion.convert(v, dtypes.narrow_int()) for v in (x, y))
    elif base.weak_type and not known and _is_strong_in_jax(base, exponent):
        x, y = (promotion.convert(v, base.dtype) for v in (x, y))
    return elementwise.pow(x, y)


def _is_strong_in_jax(base: ShapedArray, exponent: ShapedArray) -> bool:
    """Return True under JAX's names for powers of weak integers, and of weak floats to strong integers."""
    by_integers = dtypes.is_integer(exponent.dtype) and not exponent.weak_type
    return dtypes.STRONG_SCALARS.value and (by_integers or not dtypes.is_inexact(base.dtype))


def _eager_pow(x: Any, y: Any) -> Any:
    return _pow(x, y, known=True)


def _static_pow(x: Any, y: Any) -> Any:
    if type(y) is float:
        # Integers and booleans take the dtype of the exponent, which is weak.
        x = (
            promotion.to_inexact(x)
            if dtypes.is_inexact(aval_of(x).dtype)
            else promotion.convert(x, dtypes.default_float(), True)
        )
        if y == 0.5:
            return elementwise.sqrt(x)
        if y % 1:
            wide = aval_of(x).dtype in (dtypes.float32, dtypes.float64)  # a narrow result of a product is less exact
            return elementwise.half_integer_pow(x, y=y) if wide else elementwise.pow(x, promotion.like(x, y))
        y = int(y)
    if type(x) in promotion.NUMBERS or aval_of(x).dtype.kind == "b":
        aval = aval_of(x)
        x = promotion.convert(x, dtypes.narrow_int() if aval.dtype.kind == "b" else aval.dtype, aval.weak_type)
    if y < 0 and dtypes.is_integer(aval_of(x).dtype):
        raise promotion.error(
            ArgumentError,
            f"integers ({aval_of(x)!r}) to the negative power {y}",
            "convert to a float: x.astype('float32')",
        )
    return elementwise.integer_pow(x, y=y)


_static_pow_kernel = eager_jit(static=("y",))(_static_pow)
_pow_kernel = eager_jit(ints=True, checked=True)(_eager_pow)
_SPECIAL = (0.5, 1.0, 2.0, 3.0, -1.0, -2.0, *HALVES)


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 to the power of x2.

    A Python int as exponent is compiled in, as repeated multiplication; so are the floats 0.5, 1, 2, 3, -1 and -2, and
    -2.5, -1.5, -0.5, 1.5 and 2.5 as products with a root.

    Args:
        x1: array or number.
        x2: array or number; the two broadcast and are promoted to a common dtype.

    Returns:
        An array of the shape the two broadcast to. Negative floats to fractional powers are NaN.

    Raises:
        ArgumentError: for integers raised to a negative Python int.
        ShapeError: where the shapes do not broadcast.

    >>> fnp.power(fnp.asarray([1.0, 2.0, 3.0]), 2).tolist()
    [1.0, 4.0, 9.0]
    """
    if isinstance(x2, (np.integer, np.ndarray)) and dtypes.STRONG_SCALARS.value:
        x2 = int(x2) if not x2.ndim and x2.dtype.kind in "iu" else x2  # as an exponent it counts as a number
    if type(x2) is int or (type(x2) is float and x2 in _SPECIAL):
        if type(x1) is ArrayImpl:
            return _static_pow_kernel(x1, x2)
        return _static_pow(x1, x2) if isinstance(x1, Tracer) else _static_pow_kernel(*promotion.numbers(x1), x2)
    if isinstance(x1, Tracer) or isinstance(x2, Tracer):
        return _pow(x1, x2)
    return _pow_kernel(*promotion.numbers(x1, x2))


pow = power


def float_power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 to the power of x2 in floating point, for integers too.

    Args:
        x1: array or number.
        x2: array or number; the two broadcast.

    Returns:
        An array of floats, or of complex numbers.

    >>> float(fnp.float_power(2, -1))
    0.5
    """
    return _float_power(*promotion.numbers(*promotion.floats_beyond(x1, x2)))


@eager_jit(ints=True, checked=True)
def _float_power(x: Any, y: Any) -> Any:
    return elementwise.pow(*promotion.align_inexact(x, y))
