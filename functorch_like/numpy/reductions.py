"""Reductions over axes: sums, products, extremes and their positions, and logical tests."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import ArrayImpl, Tracer, aval_of
from functorch_like.errors import DtypeError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import axes_of, axis_of, hashable
from functorch_like.numpy.logic import truth
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.reductions import reductions
from functorch_like.transforms.eager_jit import eager_jit, with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Axis, DTypeLike

_STATIC = ("axis", "dtype", "keepdims")


def plain(x: Any) -> Any:
    """Return an operand of primitives: numbers become NumPy scalars."""
    return promotion.convert(x, aval_of(x).dtype, aval_of(x).weak_type) if type(x) in promotion.NUMBERS else x


def keep(out: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """Restore the reduced axes of a result, with size 1."""
    return structural.reshape(out, shape=tuple(1 if d in axes else n for d, n in enumerate(shape)))


def check_mask(where: Any) -> None:
    """Raise for a mask of numbers, as NumPy does."""
    dtype = aval_of(where).dtype
    if dtype != dtypes.bool_:
        raise promotion.error(DtypeError, f"where= is {dtype.name}, not a boolean array", "compare it: where=mask != 0")


def _masked(x: Any, where: Any, neutral: Any) -> Any:
    """Replace the elements that a mask leaves out."""
    if where is None:
        return x
    check_mask(where)
    x, mask = promotion.broadcast_arrays(x, truth(where))
    return elementwise.select_n(
        mask, promotion.broadcast(promotion.convert(neutral, aval_of(x).dtype), aval_of(x).shape), x
    )


def _widened(x: Any, dtype: Any) -> Any:
    """Convert booleans and small integers to the default integer for sums, as in NumPy; the result is strong."""
    own = aval_of(x).dtype
    if dtype is not None:
        return promotion.convert(x, dtype)
    if own == dtypes.bool_:
        return promotion.convert(x, dtypes.default_int())
    if dtypes.is_integer(own) and own.itemsize < dtypes.default_int().itemsize:
        unsigned = np.dtype(f"uint{8 * dtypes.default_int().itemsize}")
        return promotion.convert(x, unsigned if dtypes.is_unsigned(own) else dtypes.default_int())
    return promotion.convert(x, own)


def _fold(
    numbers: Any, join: Callable[[Any, Any], Any], neutral: Callable[[Any], Any], widen: bool, name: str, bools: Any
) -> Any:
    def body(x: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any = None, where: Any = None) -> Any:
        x = plain(x)
        if widen:
            x = _widened(x, dtype)
        elif aval_of(x).dtype.kind == "c":
            return _complex_extreme(x, axis, keepdims, initial, where, name)
        else:
            x = promotion.convert(x, aval_of(x).dtype)
        x = _masked(x, where, neutral(aval_of(x).dtype))
        aval = aval_of(x)
        axes = axes_of(axis, aval.ndim, f"fnp.{name}")
        if not widen and initial is None and 0 in [aval.shape[a] for a in axes]:
            raise promotion.error(ShapeError, f"fnp.{name} of {aval!r} over empty axes {axes}", "pass initial=")
        primitive, combine = bools if aval.dtype == dtypes.bool_ else (numbers, join)
        out = primitive(x, axes=axes)
        if initial is not None:
            out = combine(out, promotion.broadcast(promotion.convert(initial, aval.dtype), aval_of(out).shape))
        return keep(out, aval.shape, axes) if keepdims else out

    body.__name__ = name
    return eager_jit(static=_STATIC, ints=True, checked=True)(body)


def _complex_extreme(x: Any, axis: Any, keepdims: bool, initial: Any, where: Any, name: str) -> Any:
    from functorch_like.numpy import complex_order  # rarely used

    greatest = name == "max"
    aval = aval_of(x)
    x = _masked(x, where, (complex_order.lowest if greatest else complex_order.highest)(aval.dtype))
    axes = axes_of(axis, aval_of(x).ndim, f"fnp.{name}")
    if initial is None and 0 in [aval_of(x).shape[a] for a in axes]:
        raise promotion.error(ShapeError, f"fnp.{name} of {aval!r} over empty axes {axes}", "pass initial=")
    out = complex_order.reduced(x, axes, greatest, name)
    if initial is not None:
        more = promotion.broadcast(promotion.convert(initial, aval.dtype), aval_of(out).shape)
        out = complex_order.extreme(out, more, greatest)
    return keep(out, aval_of(x).shape, axes) if keepdims else out


_sum = _fold(
    structural.reduce_sum,
    elementwise.add,
    lambda dtype: np.zeros((), dtype),
    True,
    "sum",
    (reductions.reduce_or, elementwise.or_),
)
_prod = _fold(
    reductions.reduce_prod,
    elementwise.mul,
    lambda dtype: np.ones((), dtype),
    True,
    "prod",
    (reductions.reduce_and, elementwise.and_),
)
_max = _fold(
    reductions.reduce_max, elementwise.max, reductions.lowest, False, "max", (reductions.reduce_max, elementwise.or_)
)
_min = _fold(
    reductions.reduce_min, elementwise.min, reductions.highest, False, "min", (reductions.reduce_min, elementwise.and_)
)


def _run(fold: Any, a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
    """Call the body for tracers, the compiled function for other operands."""
    axis = tuple(axis) if isinstance(axis, list) else axis
    dtype = None if dtype is None else dtypes.as_dtype(dtype)
    run = fold
    if type(a) is not ArrayImpl:
        if isinstance(a, Tracer):
            run = fold.inline
        else:
            (a,) = promotion.numbers(a)
    if initial is None and where is None:
        return run(a, axis, dtype, bool(keepdims))
    if fold in (_max, _min):
        promotion.check_int(initial, aval_of(a).dtype)
    where, initial = promotion.numbers(where)[0], promotion.numbers(initial)[0]
    return run(a, axis, dtype, bool(keepdims), initial, where)


def _unless_boolean(dtype: Any) -> Any:
    return None if dtype == dtypes.bool_ else dtype


def _dtype(dtype: Any) -> Any:
    return None if dtype is None else dtypes.as_dtype(dtype)


@with_kernel(1, values=("initial", "where"))
def sum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """Sum over axes.

    Args:
        a: array; booleans and small integers are summed in the default integer dtype.
        axis: int, tuple of ints, or None for all.
        dtype: dtype to convert to first.
        out: not supported: arrays are immutable.
        keepdims: keep the reduced axes, with size 1.
        initial: the value to start from.
        where: boolean array: the elements to take.
        promote_integers: convert small integers to the default integer dtype, as booleans always are.

    Returns:
        An array without the reduced axes. Booleans and narrow integers become the default int.

    Raises:
        ShapeError: where there is no such axis.

    >>> fnp.sum(fnp.ones((2, 3)), axis=0).tolist()
    [2.0, 2.0, 2.0]
    """
    promotion.no_out(out, "fnp.sum")
    dtype = dtype if promote_integers or dtype is not None else _unless_boolean(aval_of(a).dtype)
    return _run(_sum, a, axis, dtype, keepdims, initial, where)


@with_kernel(1, values=("initial", "where"))
def prod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """Product over axes; arguments as for `sum`.

    Args:
        a: array.
        axis: int, tuple of ints, or None for all axes.
        dtype: dtype to convert to first.
        out: not supported: arrays are immutable.
        keepdims: keep the reduced axes, with size 1.
        initial: value to start from, returned where nothing is taken.
        where: boolean array, broadcast to `a`: the elements to take.
        promote_integers: multiply small integers in the default integer dtype, as booleans always are.

    Returns:
        An array without the reduced axes. Booleans and narrow integers become the default int.

    >>> float(fnp.prod(fnp.asarray([2.0, 3.0])))
    6.0
    """
    promotion.no_out(out, "fnp.prod")
    dtype = dtype if promote_integers or dtype is not None else _unless_boolean(aval_of(a).dtype)
    return _run(_prod, a, axis, dtype, keepdims, initial, where)


@with_kernel(1, values=("initial", "where"))
def max(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Greatest element over axes; NaN if an element is NaN. Elements that tie share the derivative evenly.

    Complex numbers are ordered by their real parts, then by the imaginary ones; of those that tie the first counts.

    Args:
        a: array.
        axis: int, tuple of ints, or None for all.
        out: not supported: arrays are immutable.
        keepdims: keep the reduced axes, with size 1.
        initial: the least value of the result; required for empty axes.
        where: boolean array: the elements to take; pass `initial`, too, if there may be none.

    Returns:
        An array without the reduced axes, of the dtype of `a`.

    Raises:
        ShapeError: where there is no such axis, or nothing to reduce.

    >>> fnp.max(fnp.asarray([[1, 5], [7, 3]]), axis=1).tolist()
    [5, 7]
    """
    promotion.no_out(out, "fnp.max")
    return _run(_max, a, axis, None, keepdims, initial, where)


@with_kernel(1, values=("initial", "where"))
def min(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Least element over axes; arguments as for `max`.

    Args:
        a: array.
        axis: int, tuple of ints, or None for all axes.
        out: not supported: arrays are immutable.
        keepdims: keep the reduced axes, with size 1.
        initial: value to start from, returned where nothing is taken.
        where: boolean array, broadcast to `a`: the elements to take.

    Returns:
        An array without the reduced axes, of the dtype of `a`.

    >>> int(fnp.min(fnp.asarray([3, 1, 2])))
    1
    """
    promotion.no_out(out, "fnp.min")
    return _run(_min, a, axis, None, keepdims, initial, where)


amax, amin = max, min


# ----------------------------------------------------------------------------------------------------------- truth
def _truth(primitive: Any, neutral: bool, name: str) -> Any:
    def body(x: Any, axis: Any, keepdims: bool, where: Any = None) -> Any:
        x = _masked(truth(x), where, np.asarray(neutral))
        shape = aval_of(x).shape
        axes = axes_of(axis, len(shape), f"fnp.{name}")
        out = primitive(x, axes=axes)
        return keep(out, shape, axes) if keepdims else out

    body.__name__ = name
    return eager_jit(static=("axis", "keepdims"))(body)


_all, _any = _truth(reductions.reduce_and, True, "all"), _truth(reductions.reduce_or, False, "any")


@with_kernel(1, values=("where",))
def all(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Array:
    """Return True if all elements over axes are true (not zero); True for empty axes.

    Args:
        a: array; numbers are true where they are not 0.
        axis: int, tuple of ints, or None for all axes.
        out: not supported: arrays are immutable.
        keepdims: keep the reduced axes, with size 1.
        where: boolean array, broadcast to `a`: the elements to take.

    Returns:
        A boolean array.

    >>> bool(fnp.all(fnp.asarray([1, 0])))
    False
    """
    promotion.no_out(out, "fnp.all")
    return _all(*promotion.numbers(a), hashable(axis), bool(keepdims), where)


@with_kernel(1, values=("where",))
def any(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Array:
    """Return True if an element over axes is true (not zero); False for empty axes.

    Args:
        a: array; numbers are true where they are not 0.
        axis: int, tuple of ints, or None for all axes.
        out: not supported: arrays are immutable.
        keepdims: keep the reduced axes, with size 1.
        where: boolean array, broadcast to `a`: the elements to take.

    Returns:
        A boolean array.

    >>> bool(fnp.any(fnp.asarray([1, 0])))
    True
    """
    promotion.no_out(out, "fnp.any")
    return _any(*promotion.numbers(a), hashable(axis), bool(keepdims), where)


def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """Count the elements over axes that are not zero.

    Args:
        a: array.
        axis: int, tuple of ints, or None for all axes.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        An array of integers.

    >>> int(fnp.count_nonzero(fnp.asarray([1, 0, 2])))
    2
    """
    return _count(*promotion.numbers(a), hashable(axis), bool(keepdims))


@eager_jit(static=("axis", "keepdims"))
def _count(a: Any, axis: Any, keepdims: bool) -> Any:
    return _sum.inline(truth(a), axis, None, keepdims)


# ----------------------------------------------------------------------------------------------- positions of extremes
def _arg(primitive: Any, name: str) -> Any:
    def body(x: Any, axis: Any, keepdims: bool) -> Any:
        x = plain(x)
        shape = aval_of(x).shape
        if axis is None:
            x = structural.reshape(x, shape=(aval_of(x).size,))
        d = 0 if axis is None else axis_of(axis, len(shape), f"fnp.{name}")
        if aval_of(x).dtype.kind == "c":
            from functorch_like.numpy import complex_order  # rarely used

            out = complex_order.index(x, d, name == "argmax")
        else:
            out = primitive(x, axes=(d,), index_dtype=dtypes.default_int())
        if not keepdims:
            return out
        return keep(out, shape, tuple(range(len(shape))) if axis is None else (d,))

    body.__name__ = name
    return eager_jit(static=("axis", "keepdims"))(body)


_argmax, _argmin = _arg(reductions.argmax, "argmax"), _arg(reductions.argmin, "argmin")


@with_kernel(1)
def argmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The index of the first greatest element; NaN counts as greatest.

    Args:
        a: array; complex numbers are ordered by their real parts, then by the imaginary ones.
        axis: the axis; None for the flattened array.
        out: not supported: arrays are immutable.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        int32 positions, without the axis.

    Raises:
        ShapeError: where there is nothing to choose from.

    >>> int(fnp.argmax(fnp.asarray([1, 5, 5])))
    1
    """
    promotion.no_out(out, "fnp.argmax")
    return _argmax(*promotion.numbers(a), axis, bool(keepdims))


@with_kernel(1)
def argmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The index of the first least element; arguments as for `argmax`.

    Args:
        a: array.
        axis: int; None for the flattened array.
        out: not supported: arrays are immutable.
        keepdims: keep the reduced axis, with size 1.

    Returns:
        An array of integers.

    >>> int(fnp.argmin(fnp.asarray([3, 1, 2])))
    1
    """
    promotion.no_out(out, "fnp.argmin")
    return _argmin(*promotion.numbers(a), axis, bool(keepdims))


def minmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
    where: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """Least and greatest element over axes; arguments as for `max`.

    Args:
        a: array.
        axis: int, tuple of ints, or None for all axes.
        out: not supported: arrays are immutable.
        keepdims: keep the reduced axes, with size 1.
        initial: the greatest value of the first result and the least of the second, or one for both.
        where: boolean array: the elements to take; pass `initial`, too, if there may be none.

    Returns:
        A pair of arrays, each as from `min` and `max`.

    Raises:
        ShapeError: where there is no such axis, or nothing to reduce.

    >>> [x.tolist() for x in fnp.minmax(fnp.asarray([[1, 5], [7, 3]]), axis=1)]
    [[1, 3], [5, 7]]
    """
    promotion.no_out(out, "fnp.minmax")
    most, least = initial if isinstance(initial, tuple) else (initial, initial)
    return min(a, axis, None, keepdims, most, where), max(a, axis, None, keepdims, least, where)


def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """Greatest minus least element over axes.

    Args:
        a: array.
        axis: int, tuple of ints, or None for all axes.
        out: not supported: arrays are immutable.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        An array without the reduced axes, of the dtype of `a`.

    >>> int(fnp.ptp(fnp.asarray([3, 1, 2])))
    2
    """
    promotion.no_out(out, "fnp.ptp")
    return _ptp(*promotion.numbers(a), hashable(axis), bool(keepdims))


@eager_jit(static=("axis", "keepdims"))
def _ptp(a: Any, axis: Any, keepdims: bool) -> Any:
    return elementwise.sub(_max.inline(a, axis, None, keepdims), _min.inline(a, axis, None, keepdims))


def count(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    """Return the number of elements that a reduction combines."""
    return math.prod(shape[a] for a in axes)
