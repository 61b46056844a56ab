"""Continuous distributions: random bits as uniform floats, mapped by inverse distribution functions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from functorch_like import dtypes
from functorch_like.backends import random as settings
from functorch_like.core import ArrayImpl, Tracer, aval_of
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import shape_of
from functorch_like.primitives import elementwise, structural
from functorch_like.random.arguments import check_key
from functorch_like.random.generators import raw_bits
from functorch_like.random.jax_numbers import or_jax
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike, Shape

    class Draw(Protocol):
        """A distribution that has no parameters."""

        __name__: str

        def __call__(self, key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
            """Draw numbers; the function's own docstring names the distribution."""
            ...

        def raw(self, key: Any, shape: tuple[int, ...], dtype: Any, /) -> Any:
            """Draw within a kernel."""
            ...


F32, F64 = dtypes.float32, dtypes.float64


def computed_in(dtype: Any) -> Any:
    """Return the dtype that samples of a dtype are computed in: float32 at least, unless they are to be JAX's."""
    return F64 if dtype == F64 else F32 if settings.are_native() else dtype


#: How many digits of a uniform number a sample depends on.
Digits = Literal["low", "high", "highest"]
#: Bits of a float's significand, the hidden one included, and the width of the word they are taken from.
_DIGITS = {dtypes.bfloat16: (8, 16), dtypes.float16: (11, 16), F32: (24, 32), F64: (53, 64)}


# ---------------------------------------------------------------------------------------------------- floats from bits
def _integers(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return random integers of as many bits as the significand, as floats: exact in float32 or float64."""
    digits, width = _DIGITS[dtype]
    word = raw_bits(key, shape, width)
    digits_of_word = elementwise.shift_right_logical(word, structural.full(shape, width - digits, aval_of(word).dtype))
    signed = structural.convert_element_type(digits_of_word, new_dtype=dtypes.int64 if width == 64 else dtypes.int32)
    return structural.convert_element_type(signed, new_dtype=F64 if width == 64 else F32)


@or_jax("continuous.unit")
def unit(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Draw uniform numbers in [0, 1): multiples of 2**-digits."""
    x = _integers(key, shape, dtype)
    x = elementwise.mul(x, structural.full_like(x, 2.0 ** -_DIGITS[dtype][0]))
    return promotion.convert(x, dtype)


@or_jax("continuous.unit")  # which may be 0
def inside(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Draw uniform numbers in (0, 1), without the ends: odd multiples of half a step, in float32 at least."""
    return odd_fraction(raw_bits(key, shape, 64 if dtype == F64 else 32))


def odd_fraction(word: Any) -> Any:
    """Convert words of 32 or 64 bits to floats in (0, 1), without the ends."""
    number, shape = aval_of(word).dtype, aval_of(word).shape
    wide = F64 if number.itemsize == 8 else F32
    digits, width = _DIGITS[wide]
    odd = elementwise.or_(
        elementwise.shift_right_logical(word, structural.full(shape, width - digits, number)),
        structural.full(shape, 1, number),
    )
    signed = structural.convert_element_type(odd, new_dtype=dtypes.int64 if width == 64 else dtypes.int32)
    x = structural.convert_element_type(signed, new_dtype=wide)
    return elementwise.mul(x, structural.full_like(x, 2.0**-digits))


def around(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Draw uniform numbers in (-1, 1), symmetric and never 0, in float32 at least."""
    wide = F64 if dtype == F64 else F32
    digits, width = _DIGITS[wide]
    signed = dtypes.int64 if width == 64 else dtypes.int32
    word = elementwise.bitcast_convert_type(raw_bits(key, shape, width), new_dtype=signed)
    odd = elementwise.or_(
        elementwise.shift_right_arithmetic(word, structural.full(shape, width - digits, signed)),
        structural.full(shape, 1, signed),
    )
    x = structural.convert_element_type(odd, new_dtype=wide)
    return elementwise.mul(x, structural.full_like(x, 2.0 ** (1 - digits)))


# ----------------------------------------------------------------------------------------------------------- arguments
def float_dtype(dtype: Any, what: str) -> Any:
    """Return a checked float dtype; for None, the default.

    Raises:
        DtypeError: for any other dtype.
    """
    result = dtypes.default_float() if dtype is None else dtypes.as_dtype(dtype)
    if result not in dtypes.FLOATS:
        raise promotion.error(
            DtypeError, f"{what} gives floats, not {result.name}", "use float32, float64, float16 or bfloat16"
        )
    return result


def parameter(x: Any, dtype: Any, shape: tuple[int, ...], what: str) -> Any:
    """Return a checked parameter of a distribution as an operand.

    Raises:
        ShapeError: where it does not broadcast to the shape.
        DtypeError: for complex numbers.
    """
    aval = aval_of(x)
    if dtypes.is_complex(aval.dtype):
        raise promotion.error(DtypeError, f"{what} is real, got {aval!r}", "take its real part")
    if aval.shape and promotion.broadcast_shapes(aval.shape, shape) != shape:
        raise promotion.error(
            ShapeError,
            f"{what}, {aval!r}, does not broadcast to the shape {shape}",
            "give a shape that it broadcasts to",
        )
    if isinstance(x, (ArrayImpl, Tracer, np.ndarray)):
        return x
    return np.float64(x) if dtype == F64 else float(x)


def spread(x: Any, dtype: Any, shape: tuple[int, ...]) -> Any:
    """Return a parameter in the dtype and shape of the result."""
    return promotion.broadcast(promotion.convert(x, dtype), shape)


# ------------------------------------------------------------------------------------------------------------- uniform
def uniform(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, minval: ArrayLike = 0.0, maxval: ArrayLike = 1.0
) -> Array:
    """Uniform numbers in [minval, maxval).

    Args:
        key: uint32[2].
        shape: shape of the result; int or sequence of ints.
        dtype: float32 by default; float64, float16, bfloat16.
        minval: number, or array that broadcasts to the shape.
        maxval: likewise; excluded.

    Returns:
        An array of the shape; in [0, 1) multiples of 2**-24 in float32, 2**-53 in float64.

    Raises:
        DtypeError: for anything but a key, or a dtype that is not a float.
        ShapeError: for an array of keys, or bounds that do not broadcast to the shape.

    >>> x = random.uniform(random.key(0), (1000,), minval=2, maxval=3)
    >>> bool((x >= 2).all() & (x < 3).all())
    True
    """
    key = check_key(key, "random.uniform")
    sizes, result_dtype = shape_of(shape, "random.uniform"), float_dtype(dtype, "random.uniform")
    if type(minval) in promotion.NUMBERS and type(maxval) in promotion.NUMBERS and minval == 0 and maxval == 1:
        return _unit(key, shape=sizes, dtype=result_dtype)
    low, high = (parameter(v, result_dtype, sizes, n) for v, n in ((minval, "minval"), (maxval, "maxval")))
    return _uniform(key, low, high, shape=sizes, dtype=result_dtype)


_unit = eager_jit(static=("shape", "dtype"))(unit)


@eager_jit(static=("shape", "dtype"), whole=True)
@or_jax("continuous.uniform")
def _uniform(key: Any, low: Any, high: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    low, high = spread(low, dtype, shape), spread(high, dtype, shape)
    x = elementwise.add(elementwise.mul(unit(key, shape, dtype), elementwise.sub(high, low)), low)
    # Rounding may reach maxval where the bounds are close; the result is then the last number before it.
    return elementwise.max(low, elementwise.min(x, elementwise.nextafter(high, low)))


# ----------------------------------------------------------------------------------------------------- by one formula
_DOC = """{summary}

    Args:
        key: uint32[2].
        shape: shape of the result; int or sequence of ints.
        dtype: float32 by default; float64, float16, bfloat16.

    Returns:
        An array of the shape.

    Raises:
        DtypeError: for anything but a key, or a dtype that is not a float.
        ShapeError: for an array of keys; map over them with vmap.

    >>> random.{name}(random.key(0), (2, 3)).shape
    (2, 3)
    """


def _formula(name: str, source: Any, formula: Any, summary: str) -> Draw:
    """Make a distribution that is a function of a uniform sample."""

    @or_jax(f"continuous.{name}")
    def raw(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        return formula(source(key, shape, dtype))

    @eager_jit(static=("shape", "dtype"))
    def draw(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        return promotion.convert(raw(key, shape, dtype), dtype)

    def function(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
        key = check_key(key, f"random.{name}")
        return draw(key, shape=shape_of(shape, f"random.{name}"), dtype=float_dtype(dtype, f"random.{name}"))

    made: Any = function
    made.raw = raw
    made.__name__ = made.__qualname__ = name
    made.__doc__ = _DOC.format(name=name, summary=summary)
    return made


def _laplace(x: Any) -> Any:
    return elementwise.mul(elementwise.sign(x), elementwise.neg(elementwise.log1p(elementwise.neg(elementwise.abs(x)))))


_real_normal = _formula(
    "normal", around, lambda x: elementwise.mul(structural.full_like(x, math.sqrt(2)), elementwise.erf_inv(x)),
    "Samples of the normal distribution with mean 0 and variance 1: sqrt(2) erf_inv(u), u uniform in (-1, 1).",
)  # fmt: skip
#: Function of a key, a shape and a dtype (float32 or float64), for the kernels of other distributions.
normals = _real_normal.raw


def normal(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Samples of the normal distribution with mean 0 and variance 1: sqrt(2) erf_inv(u), u uniform in (-1, 1).

    Args:
        key: uint32[2].
        shape: shape of the result; int or sequence of ints.
        dtype: float32 by default; float64, float16, bfloat16; complex64 and complex128, whose real and imaginary
            parts are independent and of variance 1/2.

    Returns:
        An array of the shape.

    Raises:
        DtypeError: for anything but a key, or a dtype that is not a float.
        ShapeError: for an array of keys; map over them with vmap.

    >>> random.normal(random.key(0), (2, 3)).shape
    (2, 3)
    """
    if dtype is None:
        return _real_normal(key, shape, dtype)
    key = check_key(key, "random.normal")
    if (result_dtype := dtypes.as_dtype(dtype)) not in dtypes.COMPLEX:
        return _real_normal(key, shape, dtype)
    return _complex_normal(key, shape=shape_of(shape, "random.normal"), dtype=result_dtype)


@eager_jit(static=("shape", "dtype"), whole=True)
@or_jax("continuous.complex_normal")
def _complex_normal(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    both = normals(key, (2, *shape), dtypes.real_part(dtype))
    both = elementwise.mul(both, structural.full_like(both, math.sqrt(0.5)))
    part = lambda i: structural.reshape(
        structural.slice(both, start_indices=(i, *[0] * len(shape)), limit_indices=(i + 1, *shape), strides=None),
        shape=shape,
    )
    return elementwise.complex(part(0), part(1))


exponential = _formula(
    "exponential",
    inside,
    lambda u: elementwise.neg(elementwise.log(u)),
    "Samples of the exponential distribution with mean 1: -log(u), u uniform in (0, 1).",
)
laplace = _formula("laplace", around, _laplace, "Samples of the Laplace distribution with mean 0 and scale 1.")
logistic = _formula(
    "logistic",
    inside,
    lambda u: elementwise.sub(elementwise.log(u), elementwise.log1p(elementwise.neg(u))),
    "Samples of the standard logistic distribution: log(u / (1 - u)), u uniform in (0, 1).",
)
cauchy = _formula(
    "cauchy",
    around,
    lambda x: elementwise.tan(elementwise.mul(structural.full_like(x, math.pi / 2), x)),
    "Samples of the standard Cauchy distribution: tan(pi u / 2), u uniform in (-1, 1).",
)


def gumbel(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, mode: Digits = "low") -> Array:
    """Samples of the standard Gumbel distribution: -log(-log(u)), u uniform in (0, 1).

    Args:
        key: uint32[2].
        shape: shape of the result; int or sequence of ints.
        dtype: float32 by default; float64, float16, bfloat16.
        mode: digits of u. "low": those of the dtype, so that in float32 no sample is above 17.4. "high" and "highest":
            53 bits, and samples up to 37.4, at the price of computing in float64.

    Returns:
        An array of the shape.

    Raises:
        DtypeError: for anything but a key, or a dtype that is not a float.
        ShapeError: for an array of keys; map over them with vmap.
        ArgumentError: for another mode.

    >>> random.gumbel(random.key(0), (2, 3)).shape
    (2, 3)
    """
    what = "random.gumbel"
    key = check_key(key, what)
    sizes, result_dtype = shape_of(shape, what), float_dtype(dtype, what)
    return _gumbel(key, shape=sizes, dtype=result_dtype, mode=checked_mode(mode, what))


def checked_mode(mode: Any, what: str) -> Digits:
    """Return a checked name of a number of digits.

    Raises:
        ArgumentError: for another one.
    """
    if mode not in ("low", "high", "highest"):
        raise promotion.error(ArgumentError, f"{what} got mode={mode!r}", "use 'low', 'high' or 'highest'")
    return mode


@eager_jit(static=("shape", "dtype", "mode"))
def _gumbel(key: Any, shape: tuple[int, ...], dtype: Any, mode: Digits) -> Any:
    return promotion.convert(gumbels(key, shape, dtype, mode), dtype)


@or_jax("continuous.gumbel")
def gumbels(key: Any, shape: tuple[int, ...], dtype: Any, mode: Digits) -> Any:
    """Draw Gumbel samples within a kernel; those of more digits are in float64."""
    u = inside(key, shape, dtype if mode == "low" else F64)
    return elementwise.neg(elementwise.log(elementwise.neg(elementwise.log(u))))


def truncated_normal(
    key: ArrayLike, lower: ArrayLike, upper: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Samples of the normal distribution with mean 0 and variance 1, truncated to lie between two bounds.

    Args:
        key: uint32[2].
        lower: number or array.
        upper: number or array, greater than lower.
        shape: shape of the result; by default that to which the bounds broadcast.
        dtype: float32 by default; float64, float16, bfloat16. Computed in float64: no precision is left
            where both bounds are beyond 8, or both below -8.

    Returns:
        An array of numbers in [lower, upper].

    Raises:
        DtypeError: for anything but a key, or a dtype that is not a float.
        ShapeError: for bounds that do not broadcast to the shape.

    >>> x = random.truncated_normal(random.key(0), -1.0, 2.0, (1000,))
    >>> bool((x >= -1).all() & (x <= 2).all())
    True
    """
    what = "random.truncated_normal"
    result_dtype = float_dtype(dtype, what)
    sizes = (
        promotion.broadcast_shapes(aval_of(lower).shape, aval_of(upper).shape)
        if shape is None
        else shape_of(shape, what)
    )
    low, high = (parameter(v, F64, sizes, n) for v, n in ((lower, "lower"), (upper, "upper")))
    return _truncated(check_key(key, what), low, high, shape=sizes, dtype=result_dtype)


@eager_jit(static=("shape", "dtype"))
@or_jax("continuous.truncated_normal")
def _truncated(key: Any, low: Any, high: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    low, high = spread(low, F64, shape), spread(high, F64, shape)
    root = structural.full(shape, math.sqrt(2), F64)
    a, b = elementwise.erf(elementwise.div(low, root)), elementwise.erf(elementwise.div(high, root))
    u = promotion.convert(inside(key, shape, dtype), F64)
    x = elementwise.mul(root, elementwise.erf_inv(elementwise.add(a, elementwise.mul(u, elementwise.sub(b, a)))))
    return promotion.convert(elementwise.clamp(low, x, high), dtype)
