"""Comparisons, logical and bitwise functions, and tests of closeness."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import DtypeError
from functorch_like.numpy import promotion
from functorch_like.numpy.creation import asarray, listed
from functorch_like.primitives import elementwise
from functorch_like.primitives.reductions import reductions
from functorch_like.transforms.eager_jit import eager_jit, with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Binary, Unary

_DOC = """{summary}

    Args:
        x1: array or number{takes}.
        x2: array or number{takes}; the two broadcast.

    Returns:
        {gives} array of the shape the two broadcast to.

    Raises:
        ShapeError: where the shapes do not broadcast.
        DtypeError: where the dtypes have no common dtype{extra}.

    >>> bool(fnp.{name}({at}) == np.{name}({at}))
    True
    """


def _binary(
    name: str, body: Any, summary: str, at: str, takes: str = "", gives: str = "A boolean", extra: str = ""
) -> Binary:
    made = promotion.binary(
        name, body, _DOC.format(summary=summary, name=name, at=at, takes=takes, gives=gives, extra=extra)
    )
    made.__module__ = __name__
    return made


# --------------------------------------------------------------------------------------------------------- comparisons
def _compare(name: str, primitive: Callable[[Any, Any], Any], summary: str, ordered: bool = False) -> Binary:
    doc = _DOC.format(summary=summary, name=name, at="1, 2", takes="", gives="A boolean", extra="")
    made = promotion.binary(name, _comparison(primitive, ordered), doc, promotion.comparable)
    made.__module__ = __name__
    return made


def _comparison(primitive: Callable[[Any, Any], Any], ordered: bool = False) -> Callable[[Any, Any], Any]:
    def body(x: Any, y: Any) -> Any:
        a, b = aval_of(x), aval_of(y)
        if a is not b or type(x) in promotion.NUMBERS:
            x, y = promotion.promote_and_broadcast2(*promotion.comparable(x, y), notify=False)
            a = aval_of(x)
        if ordered and a.dtype.kind == "c":  # as in NumPy: by the real parts, then the imaginary ones
            return _lexical(primitive, x, y)
        return primitive(x, y)

    return body


def _lexical(primitive: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    same = elementwise.eq(elementwise.real(x), elementwise.real(y))
    return elementwise.select_n(
        same, primitive(elementwise.real(x), elementwise.real(y)), primitive(elementwise.imag(x), elementwise.imag(y))
    )


equal = _compare("equal", elementwise.eq, "x1 == x2, element by element.")
not_equal = _compare("not_equal", elementwise.ne, "x1 != x2, element by element.")
less = _compare("less", elementwise.lt, "x1 < x2, element by element.", ordered=True)
less_equal = _compare("less_equal", elementwise.le, "x1 <= x2, element by element.", ordered=True)
greater = _compare("greater", elementwise.gt, "x1 > x2, element by element.", ordered=True)
greater_equal = _compare("greater_equal", elementwise.ge, "x1 >= x2, element by element.", ordered=True)


# ------------------------------------------------------------------------------------------------------------- logic
def truth(x: Any) -> Any:
    """Return True where elements are true: not zero."""
    aval = aval_of(x)
    if aval.dtype == dtypes.bool_:
        return promotion.convert(x, dtypes.bool_) if type(x) in promotion.NUMBERS else x
    x = promotion.convert(x, aval.dtype, aval.weak_type)
    return elementwise.ne(x, promotion.like(x, 0))


def _logical(primitive: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, y: primitive(*promotion.broadcast_arrays(truth(x), truth(y)))


logical_and = _binary("logical_and", _logical(elementwise.and_), "True where both are true (not zero).", "1, 0")
logical_or = _binary("logical_or", _logical(elementwise.or_), "True where one or both are true (not zero).", "1, 0")
logical_xor = _binary("logical_xor", _logical(elementwise.xor), "True where just one is true (not zero).", "1, 0")


def _unary(name: str, body: Any, doc: str) -> Unary:
    made = promotion.unary(name, body, doc)
    made.__module__ = __name__
    return made


logical_not = _unary(
    "logical_not",
    lambda x: elementwise.not_(truth(x)),
    """Return True where elements are false (zero).

    Args:
        x: array or number.

    Returns:
        A boolean array of its shape.

    >>> bool(fnp.logical_not(0))
    True
    """,
)


# -------------------------------------------------------------------------------------------------------------- bits
def _bits(name: str, x: Any) -> None:
    kind = aval_of(x).dtype
    if not (dtypes.is_integer(kind) or kind == dtypes.bool_):
        fix = "convert with astype"
        if name.startswith("bitwise_"):
            fix += "; comparisons that are combined stand in parentheses: (x > 0) & (x < 1)"
        raise promotion.error(DtypeError, f"fnp.{name} takes integers and booleans, got {aval_of(x)!r}", fix)


def _bitwise(name: str, primitive: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def body(x: Any, y: Any) -> Any:
        x, y = promotion.promote_and_broadcast2(x, y)
        _bits(name, x)
        return primitive(x, y)

    return body


def _shift(name: str, primitive: Callable[[Any], Callable[[Any, Any], Any]]) -> Callable[[Any, Any], Any]:
    def body(x: Any, y: Any) -> Any:
        x, y = promotion.promote_and_broadcast2(x, y)
        _bits(name, x)
        if aval_of(x).dtype == dtypes.bool_:
            x, y = (promotion.convert(v, dtypes.narrow_int()) for v in (x, y))
        return primitive(x)(x, y)

    return body


def _right(x: Any) -> Callable[[Any, Any], Any]:
    return (
        elementwise.shift_right_logical if dtypes.is_unsigned(aval_of(x).dtype) else elementwise.shift_right_arithmetic
    )


_INTS = ", of integers or booleans"
_ints = {"takes": _INTS, "gives": "An integer or boolean", "extra": ", or are not integers"}
bitwise_and = _binary("bitwise_and", _bitwise("bitwise_and", elementwise.and_), "Bitwise and.", "6, 3", **_ints)
bitwise_or = _binary("bitwise_or", _bitwise("bitwise_or", elementwise.or_), "Bitwise or.", "6, 3", **_ints)
bitwise_xor = _binary("bitwise_xor", _bitwise("bitwise_xor", elementwise.xor), "Bitwise exclusive or.", "6, 3", **_ints)
left_shift = _binary(
    "left_shift", _shift("left_shift", lambda x: elementwise.shift_left), "x1 * 2**x2, by a shift.", "6, 3", **_ints
)
right_shift = _binary("right_shift", _shift("right_shift", _right), "floor(x1 / 2**x2), by a shift.", "-6, 1", **_ints)
bitwise_left_shift, bitwise_right_shift = left_shift, right_shift


def _invert(x: Any) -> Any:
    _bits("invert", x)
    return elementwise.not_(
        promotion.convert(x, aval_of(x).dtype, aval_of(x).weak_type) if type(x) in promotion.NUMBERS else x
    )


invert = _unary(
    "invert",
    _invert,
    """Bitwise not; for booleans, logical not.

    Args:
        x: array or number, of integers or booleans.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        DtypeError: for other dtypes.

    >>> int(fnp.invert(5))
    -6
    """,
)
bitwise_not = bitwise_invert = invert


# ---------------------------------------------------------------------------------------------------------- closeness
@with_kernel(2, values=("rtol", "atol"))
def isclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Return True where |a - b| <= atol + rtol * |b|.

    Args:
        a: array or number.
        b: array or number.
        rtol: relative tolerance.
        atol: absolute tolerance.
        equal_nan: whether NaN is close to NaN.

    Returns:
        A boolean array of the shape the two broadcast to.

    >>> bool(fnp.isclose(1.0, 1.000001))
    True
    """
    return _isclose(*promotion.numbers(*promotion.comparable(a, b), rtol, atol), equal_nan=bool(equal_nan))


@eager_jit(static=("equal_nan",), ints=True, checked=True)
def _isclose(a: Any, b: Any, rtol: Any, atol: Any, equal_nan: bool) -> Any:
    a, b = promotion.promote_and_broadcast(a, b, notify=False)
    if not dtypes.is_inexact(aval_of(a).dtype):
        if aval_of(a).dtype == dtypes.bool_:
            a, b = (promotion.convert(v, dtypes.int32) for v in (a, b))
        a, b = (promotion.convert(v, dtypes.float64) for v in (a, b))
    size = elementwise.abs(b)
    real = aval_of(size)
    tolerance = lambda t: promotion.broadcast(promotion.convert(t, real.dtype), real.shape)
    near = elementwise.le(
        elementwise.abs(elementwise.sub(a, b)), elementwise.add(tolerance(atol), elementwise.mul(tolerance(rtol), size))
    )
    out = elementwise.or_(elementwise.and_(near, elementwise.is_finite(size)), elementwise.eq(a, b))
    return elementwise.or_(out, elementwise.and_(elementwise.ne(a, a), elementwise.ne(b, b))) if equal_nan else out


@with_kernel(2, values=("rtol", "atol"))
def allclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Return True if all elements are close, as by `isclose`.

    Args:
        a: array or number.
        b: array or number; the two broadcast.
        rtol: relative tolerance.
        atol: absolute tolerance.
        equal_nan: take NaN as equal to NaN.

    Returns:
        A boolean array of rank 0.

    >>> bool(fnp.allclose(fnp.ones(3), fnp.ones(3) + 1e-7))
    True
    """
    return every(isclose(a, b, rtol, atol, equal_nan))


@eager_jit
def every(x: Any) -> Any:
    """Return True if all elements of a boolean array are true."""
    return reductions.reduce_and(x, axes=tuple(range(aval_of(x).ndim)))


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Return True if two arrays have the same shape and elements.

    Args:
        a1: array-like.
        a2: array-like.
        equal_nan: take NaN as equal to NaN.

    Returns:
        A boolean array of rank 0.

    >>> bool(fnp.array_equal(fnp.arange(3), fnp.arange(3))), bool(fnp.array_equal(fnp.arange(3), fnp.arange(4)))
    (True, False)
    """
    a1, a2 = listed(a1), listed(a2)
    if aval_of(a1).shape != aval_of(a2).shape:
        return asarray(False)
    same = equal(a1, a2)
    if equal_nan and dtypes.is_inexact(aval_of(a1).dtype) and dtypes.is_inexact(aval_of(a2).dtype):
        same = logical_or(same, logical_and(not_equal(a1, a1), not_equal(a2, a2)))
    return every(same)


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Return True if two arrays are equal after broadcasting.

    Args:
        a1: array-like.
        a2: array-like.

    Returns:
        A boolean array of rank 0.

    >>> bool(fnp.array_equiv(fnp.ones(3), fnp.ones((2, 3))))
    True
    """
    a1, a2 = listed(a1), listed(a2)
    try:
        promotion.broadcast_shapes(aval_of(a1).shape, aval_of(a2).shape)
    except ValueError:
        return asarray(False)
    return every(equal(a1, a2))
