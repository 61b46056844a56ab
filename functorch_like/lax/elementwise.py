"""Elementwise functions: one for each primitive."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError
from functorch_like.lax.operands import binary, error, one_int, unary, value
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.elementwise.zeta import zeta

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Binary, Unary


def _one(name: str, primitive: Any, summary: str, at: str = "0.5", gives: str = "") -> Unary:
    made = unary(name, primitive, summary, f"lax.{name}({at}).shape = ()", gives)
    made.__module__ = __name__
    return made


def _two(name: str, primitive: Any, summary: str, example: str, gives: str = "") -> Binary:
    made = binary(name, primitive, summary, f"lax.{name}{example}", gives)
    made.__module__ = __name__
    return made


def _extreme(primitive: Any) -> Any:
    """Return max or min that also takes complex numbers, ordered by their real parts, then by the imaginary ones."""

    def body(x: Any, y: Any) -> Any:
        if not dtypes.is_complex(aval_of(x).dtype):
            return primitive(x, y)
        (a, b), (c, d) = ((elementwise.real(z), elementwise.imag(z)) for z in (x, y))
        before = elementwise.gt if primitive is elementwise.max else elementwise.lt
        first = elementwise.or_(before(a, c), elementwise.and_(elementwise.eq(a, c), before(b, d)))
        larger = elementwise.select_n(first, y, x)
        kept = elementwise.select_n(elementwise.ne(y, y), larger, y)
        return elementwise.select_n(elementwise.ne(x, x), kept, x)

    return body


_ORDER = "NaN where either is NaN. Complex numbers are compared by real parts, then by imaginary ones."
_BOOL = ", boolean"
_REAL = ", real"

# -------------------------------------------------------------------------------------------------------- arithmetic
neg = _one("neg", elementwise.neg, "-x.")
sign = _one("sign", elementwise.sign, "Sign: -1, 0 or 1; x / |x| for complex numbers.")
abs = _one("abs", elementwise.abs, "Absolute value; the modulus for complex numbers.", gives=_REAL)
square = _one("square", elementwise.square, "x times x.")
reciprocal = _one("reciprocal", lambda x: elementwise.div(structural.full_like(x, 1), x), "1 / x.")
add = _two("add", elementwise.add, "Sum.", "(1.5, 2).item() = 3.5")
sub = _two("sub", elementwise.sub, "Difference.", "(1.5, 2).item() = -0.5")
mul = _two("mul", elementwise.mul, "Product.", "(1.5, 2).item() = 3.0")
div = _two("div", elementwise.div, "Quotient; rounded towards zero for integers.", "(-7, 2).item() = -3")
rem = _two("rem", elementwise.rem, "Remainder of `div`, with the sign of x.", "(-7, 2).item() = -1")
max = _two("max", _extreme(elementwise.max), f"Elementwise maximum; {_ORDER}", "(1.5, 2).item() = 2.0")
min = _two("min", _extreme(elementwise.min), f"Elementwise minimum; {_ORDER}", "(1.5, 2).item() = 1.5")
nextafter = _two(
    "nextafter",
    elementwise.nextafter,
    "The next representable number after x in the direction of y.",
    "(1.0, 2.0).item() > 1 = True",
)

# ---------------------------------------------------------------------------------------------- powers, exponentials
exp = _one("exp", elementwise.exp, "e to the power of x.")
exp2 = _one("exp2", elementwise.exp2, "2 to the power of x.")
expm1 = _one("expm1", elementwise.expm1, "exp(x) - 1, accurate near 0.")
log = _one("log", elementwise.log, "Natural logarithm.")
log1p = _one("log1p", elementwise.log1p, "log(1 + x), accurate near 0.")
logistic = _one("logistic", elementwise.logistic, "1 / (1 + exp(-x)).")
sqrt = _one("sqrt", elementwise.sqrt, "Square root.")
rsqrt = _one("rsqrt", elementwise.rsqrt, "1 / sqrt(x).")
cbrt = _one("cbrt", elementwise.cbrt, "Cube root.")
_pow = _two("pow", elementwise.pow, "x to the power of y; both have one dtype.", "(2.0, 0.5).shape = ()")


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """x to the power of y.

    Args:
        x: array or number.
        y: array of the same shape and dtype, or of integers; a Python int is an `integer_pow`.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        ShapeError: where the shapes differ.
        DtypeError: where the dtypes do not fit.

    >>> lax.pow(2.0, 3).item()
    8.0
    """
    if type(y) is int and dtypes.is_inexact(aval_of(x).dtype):
        return integer_pow(x, y)
    if type(x) is not int and dtypes.is_inexact(aval_of(x).dtype) and dtypes.is_integer(aval_of(y).dtype):
        y = structural.convert_element_type(value(y), new_dtype=aval_of(x).dtype, weak_type=aval_of(y).weak_type)
    return _pow(x, y)


def integer_pow(x: ArrayLike, y: int) -> Array:
    """x to a power that is an int, by multiplications.

    Args:
        x: array or number.
        y: Python int; negative for floats only.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        ArgumentError: for a negative power of integers.

    >>> lax.integer_pow(2.0, -1).item()
    0.5
    """
    power = one_int(y, "y")
    return elementwise.integer_pow(value(x), y=power)


# ------------------------------------------------------------------------------------------ trigonometry, special
sin = _one("sin", elementwise.sin, "Sine.")
cos = _one("cos", elementwise.cos, "Cosine.")
tan = _one("tan", elementwise.tan, "Tangent.")
asin = _one("asin", elementwise.asin, "Inverse sine.")
acos = _one("acos", elementwise.acos, "Inverse cosine.")
atan = _one("atan", elementwise.atan, "Inverse tangent.")
sinh = _one("sinh", elementwise.sinh, "Hyperbolic sine.")
cosh = _one("cosh", elementwise.cosh, "Hyperbolic cosine.")
tanh = _one("tanh", elementwise.tanh, "Hyperbolic tangent.")
asinh = _one("asinh", elementwise.asinh, "Inverse hyperbolic sine.")
acosh = _one("acosh", elementwise.acosh, "Inverse hyperbolic cosine.", at="1.5")
atanh = _one("atanh", elementwise.atanh, "Inverse hyperbolic tangent.")
atan2 = _two(
    "atan2",
    elementwise.atan2,
    "The angle of a point from the positive first axis: the operand x is its ordinate, y its abscissa.",
    "(1.0, 0.0).shape = ()",
)
erf = _one("erf", elementwise.erf, "The error function, 2/sqrt(pi) times the integral of exp(-t**2) from 0 to x.")
erfc = _one("erfc", elementwise.erfc, "1 - erf(x), accurate for large x.")
erf_inv = _one("erf_inv", elementwise.erf_inv, "The inverse of erf.")
lgamma = _one("lgamma", elementwise.lgamma, "log of the absolute value of the gamma function.")
digamma = _one("digamma", elementwise.digamma, "The derivative of lgamma.")


def _any_order(m: Any, x: Any) -> Any:
    """(-1)**(m + 1) m! zeta(m + 1, x), DLMF 25.11.12; digamma for m = 0. In float64: the logarithm of m! is large."""
    dtype, weak = aval_of(x).dtype, aval_of(m).weak_type and aval_of(x).weak_type
    if dtype != dtypes.float64:
        wide = (structural.convert_element_type(v, new_dtype=dtypes.float64) for v in (m, x))
        return structural.convert_element_type(_any_order(*wide), new_dtype=dtype, weak_type=weak)
    more, half = elementwise.add(m, structural.full_like(m, 1)), elementwise.mul(m, structural.full_like(m, 0.5))
    size = elementwise.mul(elementwise.exp(elementwise.lgamma(more)), zeta(more, x))
    signed = elementwise.select_n(elementwise.eq(half, elementwise.floor(half)), size, elementwise.neg(size))
    return elementwise.select_n(elementwise.eq(m, structural.full_like(m, 0)), signed, elementwise.digamma(x))


_polygamma = _two("polygamma", _any_order, "The m-th derivative of digamma.", "(2.0, 0.5).shape = ()")


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """The m-th derivative of digamma.

    Args:
        m: Python int, at least 0; or an array of whole numbers, of the shape and dtype of x.
        x: array of floats.

    Returns:
        Floats, of the operands' shape.

    Raises:
        ShapeError: where the shapes differ.
        DtypeError: where the dtypes do.
        ArgumentError: for an int below 0.

    >>> bool(np.isclose(lax.polygamma(1, 1.0), np.pi**2 / 6))
    True
    >>> bool(np.isclose(lax.polygamma(1.0, 1.0), np.pi**2 / 6))
    True
    """
    if type(m) is not int:
        return _polygamma(m, x)
    if m < 0:
        raise error(
            ArgumentError,
            f"lax.polygamma takes a non-negative m, got {m}",
            "use 0 for digamma itself, 1 for its derivative",
        )
    return elementwise.polygamma(value(x), m=m)


# ------------------------------------------------------------------------------------------------------ rounding, parts
class RoundingMethod(enum.IntEnum):
    """Treatment of halves by `round`."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x: ArrayLike, rounding_method: int = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """The nearest whole number.

    Args:
        x: array of floats.
        rounding_method: the rounding of halves: away from zero, or to the even neighbour.

    Returns:
        An array of the shape and dtype of x.

    >>> lax.round(2.5).item(), lax.round(2.5, lax.RoundingMethod.TO_NEAREST_EVEN).item()
    (3.0, 2.0)
    """
    return elementwise.round(value(x), rounding_method=int(rounding_method))


floor = _one("floor", elementwise.floor, "The greatest whole number not above x.")
ceil = _one("ceil", elementwise.ceil, "The least whole number not below x.")
is_finite = _one("is_finite", elementwise.is_finite, "True where an element is neither infinite nor NaN.", gives=_BOOL)
real = _one("real", elementwise.real, "The real part.", at="1 + 2j", gives=_REAL)
imag = _one("imag", elementwise.imag, "The imaginary part.", at="1 + 2j", gives=_REAL)
complex = _two("complex", elementwise.complex, "x + iy of two real arrays.", "(1.0, 2.0).item() = (1+2j)", ", complex")


def conj(x: ArrayLike) -> Array:
    """Complex conjugate; real numbers become complex.

    Args:
        x: array of real or complex numbers.

    Returns:
        Complex numbers, of the operand's shape.

    >>> lax.conj(1 + 2j).item()
    (1-2j)
    """
    x = value(x)
    return elementwise.conj(x) if dtypes.is_complex(aval_of(x).dtype) else complex(x, structural.full_like(x, 0))


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Floats rounded to fewer bits, in the same dtype.

    Args:
        operand: array of floats.
        exponent_bits: int: bits of the exponent that are kept.
        mantissa_bits: int: bits of the mantissa that are kept.

    Returns:
        An array of the operand's shape and dtype.

    >>> lax.reduce_precision(1.001, exponent_bits=8, mantissa_bits=7).item()
    1.0
    """
    return elementwise.reduce_precision(
        value(operand),
        exponent_bits=one_int(exponent_bits, "exponent_bits"),
        mantissa_bits=one_int(mantissa_bits, "mantissa_bits"),
    )


# --------------------------------------------------------------------------------------------------- bits, comparisons
bitwise_not = _one("bitwise_not", elementwise.not_, "Bitwise NOT; logical NOT for booleans.", at="5")
population_count = _one("population_count", elementwise.population_count, "The number of bits that are 1.", at="5")
clz = _one("clz", elementwise.clz, "The number of leading bits that are 0.", at="5")
bitwise_and = _two("bitwise_and", elementwise.and_, "Bitwise AND; logical AND for booleans.", "(6, 3).item() = 2")
bitwise_or = _two("bitwise_or", elementwise.or_, "Bitwise OR; logical OR for booleans.", "(6, 3).item() = 7")
bitwise_xor = _two("bitwise_xor", elementwise.xor, "Bitwise XOR; logical XOR for booleans.", "(6, 3).item() = 5")
shift_left = _two(
    "shift_left", elementwise.shift_left, "Shift to the left by y bits, filled with zeros.", "(3, 1).item() = 6"
)
shift_right_logical = _two(
    "shift_right_logical",
    elementwise.shift_right_logical,
    "Shift to the right by y bits, filled with zeros.",
    "(6, 1).item() = 3",
)
shift_right_arithmetic = _two(
    "shift_right_arithmetic",
    elementwise.shift_right_arithmetic,
    "Shift to the right by y bits, filled with the sign.",
    "(-6, 1).item() = -3",
)
eq = _two("eq", elementwise.eq, "x == y.", "(1, 2).item() = False", _BOOL)
ne = _two("ne", elementwise.ne, "x != y.", "(1, 2).item() = True", _BOOL)
lt = _two("lt", elementwise.lt, "x < y.", "(1, 2).item() = True", _BOOL)
le = _two("le", elementwise.le, "x <= y.", "(1, 2).item() = True", _BOOL)
gt = _two("gt", elementwise.gt, "x > y.", "(1, 2).item() = False", _BOOL)
ge = _two("ge", elementwise.ge, "x >= y.", "(1, 2).item() = False", _BOOL)
_TOTAL = " in the total order of IEEE 754, where -0 is below 0 and NaN above infinity."
eq_to = _two("eq_to", elementwise.eq_to, "x == y" + _TOTAL, "(0.0, -0.0).item() = False", _BOOL)
le_to = _two("le_to", elementwise.le_to, "x <= y" + _TOTAL, "(0.0, -0.0).item() = False", _BOOL)
lt_to = _two("lt_to", elementwise.lt_to, "x < y" + _TOTAL, "(-0.0, 0.0).item() = True", _BOOL)
mulhi = _two(
    "mulhi", elementwise.mulhi, "The upper half of the bits of a product of integers.", "(2**30, 8).item() = 2"
)
