"""Elementwise functions of one array: exponentials, trigonometry, rounding, parts of complex numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import DtypeError
from functorch_like.numpy import promotion
from functorch_like.primitives import elementwise, structural

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Unary

_FLOAT_DOC = """{summary}

    Args:
        x: array or number; integers and booleans become the default float.

    Returns:
        An array of the shape of x.

    Raises:
        DtypeError: where x is not an array of numbers{extra}.

    >>> bool(np.allclose(fnp.{name}({at}), np.{name}({at}), rtol=1e-5))
    True
    """


def _inexact(primitive: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def body(x: Any) -> Any:
        if aval_of(x).dtype.kind not in "fc" or type(x) in promotion.NUMBERS:
            x = promotion.to_inexact(x)
        return primitive(x)

    return body


def _float(name: str, primitive: Callable[[Any], Any], summary: str, at: str = "0.5", extra: str = "") -> Unary:
    made = promotion.unary(name, _inexact(primitive), _FLOAT_DOC.format(summary=summary, name=name, at=at, extra=extra))
    made.__module__ = __name__
    return made


def _over(x: Any, number: float) -> Any:
    """Divide x by a real number: part by part, since a complex quotient of infinities would be NaN."""
    if aval_of(x).dtype.kind == "c":
        return elementwise.complex(_over(elementwise.real(x), number), _over(elementwise.imag(x), number))
    return elementwise.div(x, promotion.like(x, number))


_no_complex = ", or complex"

exp = _float("exp", elementwise.exp, "e to the power of each element.")
exp2 = _float("exp2", elementwise.exp2, "2 to the power of each element.")
expm1 = _float("expm1", elementwise.expm1, "exp(x) - 1, accurate for small x.")
log = _float("log", elementwise.log, "Natural logarithm; NaN below 0, -inf at 0.")
log1p = _float("log1p", elementwise.log1p, "log(1 + x), accurate for small x.")
log2 = _float("log2", lambda x: _over(elementwise.log(x), math.log(2)), "Logarithm to base 2.")
log10 = _float("log10", lambda x: _over(elementwise.log(x), math.log(10)), "Logarithm to base 10.")
sqrt = _float("sqrt", elementwise.sqrt, "Square root; NaN below 0.")
cbrt = _float("cbrt", elementwise.cbrt, "Cube root, of negative numbers too.", extra=_no_complex)
sin = _float("sin", elementwise.sin, "Sine of an angle in radians.")
cos = _float("cos", elementwise.cos, "Cosine of an angle in radians.")
tan = _float("tan", elementwise.tan, "Tangent of an angle in radians.")
arcsin = _float("arcsin", elementwise.asin, "Inverse sine, in radians; NaN outside [-1, 1].")
arccos = _float("arccos", elementwise.acos, "Inverse cosine, in radians; NaN outside [-1, 1].")
arctan = _float("arctan", elementwise.atan, "Inverse tangent, in radians.")
sinh = _float("sinh", elementwise.sinh, "Hyperbolic sine.")
cosh = _float("cosh", elementwise.cosh, "Hyperbolic cosine.")
tanh = _float("tanh", elementwise.tanh, "Hyperbolic tangent.")
arcsinh = _float("arcsinh", elementwise.asinh, "Inverse hyperbolic sine.")
arccosh = _float("arccosh", elementwise.acosh, "Inverse hyperbolic cosine; NaN below 1.", at="1.5")
arctanh = _float("arctanh", elementwise.atanh, "Inverse hyperbolic tangent; NaN outside [-1, 1].")
deg2rad = _float("deg2rad", lambda x: elementwise.mul(x, promotion.like(x, math.pi / 180)), "Degrees to radians.")
rad2deg = _float("rad2deg", lambda x: elementwise.mul(x, promotion.like(x, 180 / math.pi)), "Radians to degrees.")


def _sinc(x: Any) -> Any:
    # Near 0 by the series, so that derivatives are right there, too.
    angle = elementwise.mul(x, promotion.like(x, math.pi))
    small = elementwise.lt(elementwise.abs(angle), promotion.like(elementwise.abs(angle), 1e-2))
    safe = elementwise.select_n(small, angle, promotion.like(angle, 1))
    square = elementwise.square(elementwise.select_n(small, promotion.like(angle, 0), angle))
    series, coefficient = promotion.like(angle, 1 / 362880), (-1 / 5040, 1 / 120, -1 / 6, 1.0)
    for c in coefficient:
        series = elementwise.add(elementwise.mul(series, square), promotion.like(angle, c))
    return elementwise.select_n(small, elementwise.div(elementwise.sin(safe), safe), series)


sinc = _float("sinc", _sinc, "sin(pi x) / (pi x), 1 at 0.")
radians, degrees = deg2rad, rad2deg
acos, acosh, asin, asinh, atan, atanh = arccos, arccosh, arcsin, arcsinh, arctan, arctanh

# --------------------------------------------------------------------------------- functions that keep the dtype
_SAME_DOC = """{summary}

    Args:
        x: array or number.

    Returns:
        An array of the shape of x{gives}.

    Raises:
        DtypeError: where x is not an array of numbers{extra}.

    >>> bool(np.allclose(fnp.{name}({at}), np.{name}({at})))
    True
    """


def _same(
    name: str, body: Callable[[Any], Any], summary: str, at: str = "-1.5", gives: str = "", extra: str = ""
) -> Unary:
    def checked(x: Any) -> Any:
        return body(promotion.convert(x, aval_of(x).dtype, aval_of(x).weak_type) if type(x) in promotion.NUMBERS else x)

    made = promotion.unary(name, checked, _SAME_DOC.format(summary=summary, name=name, at=at, gives=gives, extra=extra))
    made.__module__ = __name__
    return made


def _kind(x: Any) -> str:
    dtype = aval_of(x).dtype
    return (
        "f"
        if dtypes.is_float(dtype)
        else "u"
        if dtypes.is_unsigned(dtype)
        else "i"
        if dtypes.is_integer(dtype)
        else dtype.kind
    )


def _no_bool(name: str, instead: str, x: Any) -> None:
    if _kind(x) == "b":
        raise promotion.error(
            DtypeError, f"fnp.{name} takes numbers, got {aval_of(x)!r}", f"use {instead}, or convert with astype"
        )


def _negative(x: Any) -> Any:
    _no_bool("negative", "fnp.logical_not (~x)", x)
    return elementwise.neg(x)


def _sign(x: Any) -> Any:
    _no_bool("sign", "the value itself", x)
    return elementwise.sign(x)


def _rounding(primitive: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def body(x: Any) -> Any:
        if _kind(x) == "c":
            raise promotion.error(
                DtypeError, f"rounding is for real numbers, got {aval_of(x)!r}", "round fnp.real and fnp.imag"
            )
        return x if _kind(x) in "iub" else primitive(x)

    return body


def _rint(x: Any) -> Any:
    if _kind(x) == "c":
        return elementwise.complex(_rint(elementwise.real(x)), _rint(elementwise.imag(x)))
    if _kind(x) in "iub":
        return promotion.convert(x, dtypes.default_float(), aval_of(x).weak_type)
    return elementwise.round(x, rounding_method=1)


negative = _same("negative", _negative, "-x.", extra=", or boolean")
positive = _same("positive", lambda x: x, "+x: x itself.")
absolute = _same(
    "absolute",
    lambda x: x if _kind(x) in "bu" else elementwise.abs(x),
    "Absolute value; for complex numbers, the modulus.",
    gives=", real",
)
sign = _same("sign", _sign, "-1, 0 or 1; for complex numbers, x/|x|.")


def _square(x: Any) -> Any:
    return elementwise.square(promotion.convert(x, dtypes.narrow_int()) if _kind(x) == "b" else x)


square = _same("square", _square, "x times x; booleans become the default integer dtype.")
floor = _same(
    "floor", _rounding(elementwise.floor), "The greatest whole number that is not above x.", extra=_no_complex
)
ceil = _same("ceil", _rounding(elementwise.ceil), "The least whole number that is not below x.", extra=_no_complex)
trunc = _same(
    "trunc",
    _rounding(
        lambda x: elementwise.select_n(
            elementwise.lt(x, promotion.like(x, 0)), elementwise.floor(x), elementwise.ceil(x)
        )
    ),
    "x without its fraction.",
    extra=_no_complex,
)
fix = trunc  # NumPy's older name
rint = _same(
    "rint",
    _rint,
    "The nearest whole number, with halves to even; integers become floats. Complex numbers are rounded by parts.",
)
real = _same(
    "real", lambda x: elementwise.real(x) if _kind(x) == "c" else x, "The real part.", at="1 - 2j", gives=", real"
)
conjugate = _same(
    "conjugate", lambda x: elementwise.conj(x) if _kind(x) == "c" else x, "The complex conjugate.", at="1 - 2j"
)
imag = _same(
    "imag",
    lambda x: elementwise.imag(x) if _kind(x) == "c" else promotion.like(x, 0),
    "The imaginary part, 0 for reals.",
    at="1 - 2j",
    gives=", real",
)


def _reciprocal(x: Any) -> Any:
    x = promotion.to_inexact(x)
    return elementwise.div(promotion.like(x, 1), x)


def _angle(z: Any) -> Any:
    if _kind(z) == "c":
        return elementwise.atan2(elementwise.imag(z), elementwise.real(z))
    if _kind(z) != "f":  # narrow integers, too
        z = promotion.convert(z, dtypes.default_float(), aval_of(z).weak_type)
    return elementwise.atan2(promotion.like(z, 0), z)


def _isnan(x: Any) -> Any:
    return elementwise.ne(x, x) if _kind(x) in "fc" else structural.full(aval_of(x).shape, False, dtypes.bool_)


def _isinf(x: Any) -> Any:
    if _kind(x) == "c":
        return elementwise.or_(_isinf(elementwise.real(x)), _isinf(elementwise.imag(x)))
    if _kind(x) != "f":
        return structural.full(aval_of(x).shape, False, dtypes.bool_)
    return elementwise.eq(elementwise.abs(x), promotion.like(x, math.inf))


def _isfinite(x: Any) -> Any:
    if _kind(x) == "c":
        return elementwise.and_(elementwise.is_finite(elementwise.real(x)), elementwise.is_finite(elementwise.imag(x)))
    return elementwise.is_finite(x) if _kind(x) == "f" else structural.full(aval_of(x).shape, True, dtypes.bool_)


def _signed_inf(x: Any, value: float) -> Any:
    if _kind(x) == "c":
        raise promotion.error(DtypeError, "the sign of an infinity is of real numbers", "take fnp.real or fnp.imag")
    return (
        elementwise.eq(x, promotion.like(x, value))
        if _kind(x) == "f"
        else structural.full(aval_of(x).shape, False, dtypes.bool_)
    )


def _signbit(x: Any) -> Any:
    if _kind(x) != "f":
        return (
            elementwise.lt(x, promotion.like(x, 0))
            if _kind(x) == "i"
            else structural.full(aval_of(x).shape, False, dtypes.bool_)
        )
    bits = np.dtype(f"int{8 * aval_of(x).dtype.itemsize}")
    pattern = elementwise.bitcast_convert_type(x, new_dtype=bits)
    return elementwise.lt(pattern, promotion.like(pattern, 0))


reciprocal = _same("reciprocal", _reciprocal, "1 / x, in floating point for integers too.")
_radians = _same("angle", _angle, "", at="1 - 2j")


def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The argument of a complex number.

    Args:
        z: array or number.
        deg: return degrees, rather than radians.

    Returns:
        Floats, of the shape of z.

    >>> float(fnp.angle(-1j, deg=True))
    -90.0
    """
    return rad2deg(_radians(z)) if deg else _radians(z)


isnan = _same("isnan", _isnan, "True where elements are NaN.", at="np.nan", gives=", boolean")
isinf = _same("isinf", _isinf, "True where elements are infinite.", at="-np.inf", gives=", boolean")
isfinite = _same("isfinite", _isfinite, "True where elements are neither infinite nor NaN.", gives=", boolean")
isposinf = _same(
    "isposinf", lambda x: _signed_inf(x, math.inf), "True where elements are +inf.", at="np.inf", gives=", boolean"
)
isneginf = _same(
    "isneginf", lambda x: _signed_inf(x, -math.inf), "True where elements are -inf.", at="np.inf", gives=", boolean"
)
signbit = _same("signbit", _signbit, "True where the sign is minus, of -0.0 and NaN too.", at="-0.0", gives=", boolean")
abs, conj = absolute, conjugate
