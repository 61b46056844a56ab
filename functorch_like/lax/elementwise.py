"""Elementwise functions: one for each row."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError
from functorch_like.lax.operands import binary, error, ints, unary, value
from functorch_like.primitives.elementwise import names as E
from functorch_like.primitives.elementwise.zeta import zeta
from functorch_like.primitives.structural import data_movement as S

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Binary, Unary


def _one(name: str, row: Any, summary: str, at: str = "0.5", gives: str = "") -> Unary:
    made = unary(name, row, summary, f"lax.{name}({at}).shape = ()", gives)
    made.__module__ = __name__
    return made


def _two(name: str, row: Any, summary: str, example: str, gives: str = "") -> Binary:
    made = binary(name, row, summary, f"lax.{name}{example}", gives)
    made.__module__ = __name__
    return made


_BOOL = ", boolean"
_REAL = ", real"

# -------------------------------------------------------------------------------------------------------- arithmetic
neg = _one("neg", E.neg, "-x.")
sign = _one("sign", E.sign, "-1, 0 or 1; of complex numbers x/|x|.")
abs = _one("abs", E.abs, "Absolute value; of complex numbers the modulus.", gives=_REAL)
square = _one("square", E.square, "x times x.")
reciprocal = _one("reciprocal", lambda x: E.div(S.full_like(x, 1), x), "1 / x.")
add = _two("add", E.add, "Sum.", "(1.5, 2).item() = 3.5")
sub = _two("sub", E.sub, "Difference.", "(1.5, 2).item() = -0.5")
mul = _two("mul", E.mul, "Product.", "(1.5, 2).item() = 3.0")
div = _two("div", E.div, "Quotient; of integers rounded towards zero.", "(-7, 2).item() = -3")
rem = _two("rem", E.rem, "Remainder of `div`, with the sign of x.", "(-7, 2).item() = -1")
max = _two("max", E.max, "The larger; NaN where one is NaN.", "(1.5, 2).item() = 2.0")
min = _two("min", E.min, "The smaller; NaN where one is NaN.", "(1.5, 2).item() = 1.5")
nextafter = _two("nextafter", E.nextafter, "The number next to x on the way to y.", "(1.0, 2.0).item() > 1 = True")

# ---------------------------------------------------------------------------------------------- powers, exponentials
exp = _one("exp", E.exp, "e to the power of x.")
exp2 = _one("exp2", E.exp2, "2 to the power of x.")
expm1 = _one("expm1", E.expm1, "exp(x) - 1, exact near 0.")
log = _one("log", E.log, "Natural logarithm.")
log1p = _one("log1p", E.log1p, "log(1 + x), exact near 0.")
logistic = _one("logistic", E.logistic, "1 / (1 + exp(-x)).")
sqrt = _one("sqrt", E.sqrt, "Square root.")
rsqrt = _one("rsqrt", E.rsqrt, "1 / sqrt(x).")
cbrt = _one("cbrt", E.cbrt, "Cube root.")
_pow = _two("pow", E.pow, "x to the power of y, of one dtype.", "(2.0, 0.5).shape = ()")


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
        y = S.convert_element_type(value(y), new_dtype=aval_of(x).dtype, weak_type=aval_of(y).weak_type)
    return _pow(x, y)


def integer_pow(x: ArrayLike, y: int) -> Array:
    """x to a power that is an int, by multiplications.

    Args:
        x: array or number.
        y: Python int; negative for floats only.

    Raises:
        ArgumentError: for a negative power of integers.

    >>> lax.integer_pow(2.0, -1).item()
    0.5
    """
    (power,) = ints(y, "y")
    return E.integer_pow(value(x), y=power)


# ------------------------------------------------------------------------------------------ trigonometry, special
sin = _one("sin", E.sin, "Sine.")
cos = _one("cos", E.cos, "Cosine.")
tan = _one("tan", E.tan, "Tangent.")
asin = _one("asin", E.asin, "Inverse sine.")
acos = _one("acos", E.acos, "Inverse cosine.")
atan = _one("atan", E.atan, "Inverse tangent.")
sinh = _one("sinh", E.sinh, "Hyperbolic sine.")
cosh = _one("cosh", E.cosh, "Hyperbolic cosine.")
tanh = _one("tanh", E.tanh, "Hyperbolic tangent.")
asinh = _one("asinh", E.asinh, "Inverse hyperbolic sine.")
acosh = _one("acosh", E.acosh, "Inverse hyperbolic cosine.", at="1.5")
atanh = _one("atanh", E.atanh, "Inverse hyperbolic tangent.")
atan2 = _two("atan2", E.atan2, "The angle of the point (y, x): here x is the ordinate.", "(1.0, 0.0).shape = ()")
erf = _one("erf", E.erf, "The error function, 2/sqrt(pi) times the integral of exp(-t**2) from 0 to x.")
erfc = _one("erfc", E.erfc, "1 - erf(x), exact for large x.")
erf_inv = _one("erf_inv", E.erf_inv, "The inverse of erf.")
lgamma = _one("lgamma", E.lgamma, "log of the absolute value of the gamma function.")
digamma = _one("digamma", E.digamma, "The derivative of lgamma.")


def _any_order(m: Any, x: Any) -> Any:
    """(-1)**(m + 1) m! zeta(m + 1, x), DLMF 25.11.12; digamma for m = 0. In float64: the logarithm of m! is large."""
    dtype, weak = aval_of(x).dtype, aval_of(m).weak_type and aval_of(x).weak_type
    if dtype != dtypes.float64:
        wide = (S.convert_element_type(v, new_dtype=dtypes.float64) for v in (m, x))
        return S.convert_element_type(_any_order(*wide), new_dtype=dtype, weak_type=weak)
    more, half = E.add(m, S.full_like(m, 1)), E.mul(m, S.full_like(m, 0.5))
    size = E.mul(E.exp(E.lgamma(more)), zeta(more, x))
    signed = E.select_n(E.eq(half, E.floor(half)), size, E.neg(size))
    return E.select_n(E.eq(m, S.full_like(m, 0)), signed, E.digamma(x))


_polygamma = _two("polygamma", _any_order, "The m-th derivative of digamma.", "(2.0, 0.5).shape = ()")


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """The m-th derivative of digamma.

    Args:
        m: Python int, at least 0; or an array of whole numbers, of the shape and dtype of x.
        x: array of floats.

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
        raise error(ArgumentError, f"lax.polygamma was given m={m}", "derivatives are counted from 0, digamma itself")
    return E.polygamma(value(x), m=m)


# ------------------------------------------------------------------------------------------------------ rounding, parts
class RoundingMethod(enum.IntEnum):
    """What `round` does with halves."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x: ArrayLike, rounding_method: int = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """The nearest whole number.

    Args:
        x: array of floats.
        rounding_method: where halves go: away from zero, or to the even neighbour.

    >>> lax.round(2.5).item(), lax.round(2.5, lax.RoundingMethod.TO_NEAREST_EVEN).item()
    (3.0, 2.0)
    """
    return E.round(value(x), rounding_method=int(rounding_method))


floor = _one("floor", E.floor, "The greatest whole number that is not above x.")
ceil = _one("ceil", E.ceil, "The least whole number that is not below x.")
is_finite = _one("is_finite", E.is_finite, "Whether an element is neither infinite nor NaN.", gives=_BOOL)
real = _one("real", E.real, "The real part.", at="1 + 2j", gives=_REAL)
imag = _one("imag", E.imag, "The imaginary part.", at="1 + 2j", gives=_REAL)
complex = _two("complex", E.complex, "x + iy of two real arrays.", "(1.0, 2.0).item() = (1+2j)", ", complex")


def conj(x: ArrayLike) -> Array:
    """The complex conjugate; of real numbers the complex number.

    >>> lax.conj(1 + 2j).item()
    (1-2j)
    """
    x = value(x)
    return E.conj(x) if dtypes.is_complex(aval_of(x).dtype) else complex(x, S.full_like(x, 0))


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Floats rounded to fewer bits, in the same dtype.

    >>> lax.reduce_precision(1.001, exponent_bits=8, mantissa_bits=7).item()
    1.0
    """
    return E.reduce_precision(
        value(operand),
        exponent_bits=ints(exponent_bits, "exponent_bits")[0],
        mantissa_bits=ints(mantissa_bits, "mantissa_bits")[0],
    )


# --------------------------------------------------------------------------------------------------- bits, comparisons
bitwise_not = _one("bitwise_not", E.not_, "Every bit turned; of booleans logical not.", at="5")
population_count = _one("population_count", E.population_count, "The number of bits set.", at="5")
clz = _one("clz", E.clz, "The number of leading bits not set.", at="5")
bitwise_and = _two("bitwise_and", E.and_, "Bits that both have.", "(6, 3).item() = 2")
bitwise_or = _two("bitwise_or", E.or_, "Bits that one has.", "(6, 3).item() = 7")
bitwise_xor = _two("bitwise_xor", E.xor, "Bits that just one has.", "(6, 3).item() = 5")
shift_left = _two("shift_left", E.shift_left, "Bits moved up.", "(3, 1).item() = 6")
shift_right_logical = _two(
    "shift_right_logical", E.shift_right_logical, "Bits moved down, zeros in.", "(6, 1).item() = 3"
)
shift_right_arithmetic = _two(
    "shift_right_arithmetic", E.shift_right_arithmetic, "Bits moved down, the sign kept.", "(-6, 1).item() = -3"
)
eq = _two("eq", E.eq, "x == y.", "(1, 2).item() = False", _BOOL)
ne = _two("ne", E.ne, "x != y.", "(1, 2).item() = True", _BOOL)
lt = _two("lt", E.lt, "x < y.", "(1, 2).item() = True", _BOOL)
le = _two("le", E.le, "x <= y.", "(1, 2).item() = True", _BOOL)
gt = _two("gt", E.gt, "x > y.", "(1, 2).item() = False", _BOOL)
ge = _two("ge", E.ge, "x >= y.", "(1, 2).item() = False", _BOOL)
_TOTAL = " in the total order of IEEE 754, where -0 is below 0 and NaN above infinity."
eq_to = _two("eq_to", E.eq_to, "x == y" + _TOTAL, "(0.0, -0.0).item() = False", _BOOL)
le_to = _two("le_to", E.le_to, "x <= y" + _TOTAL, "(0.0, -0.0).item() = False", _BOOL)
lt_to = _two("lt_to", E.lt_to, "x < y" + _TOTAL, "(-0.0, 0.0).item() = True", _BOOL)
mulhi = _two("mulhi", E.mulhi, "The upper half of a product of integers.", "(2**30, 8).item() = 2")
