"""Reductions, running sums and positions of extremes that ignore NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import DtypeError
from functorch_like.numpy import complex_order, promotion, reductions, statistics
from functorch_like.numpy.axes import axes_of, hashable
from functorch_like.numpy.cumulative import _cumprod, _cumsum
from functorch_like.numpy.logic import truth
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.reductions.extremes_without_nan import reduce_fmax, reduce_fmin
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Axis, DTypeLike

    class Fold(Protocol):
        """nansum and nanprod."""

        __name__: str

        def __call__(
            self,
            a: ArrayLike,
            axis: Axis = None,
            dtype: DTypeLike | None = None,
            out: None = None,
            keepdims: bool = False,
            initial: ArrayLike | None = None,
            where: ArrayLike | None = None,
        ) -> Array:
            """Compute the result; the function's own docstring describes it."""
            ...

    class Extreme(Protocol):
        """nanmax and nanmin."""

        __name__: str

        def __call__(
            self,
            a: ArrayLike,
            axis: Axis = None,
            out: None = None,
            keepdims: bool = False,
            initial: ArrayLike | None = None,
            where: ArrayLike | None = None,
        ) -> Array:
            """Compute the result; the function's own docstring describes it."""
            ...

    class Running(Protocol):
        """nancumsum and nancumprod."""

        __name__: str

        def __call__(
            self, a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
        ) -> Array:
            """Compute the result; the function's own docstring describes it."""
            ...

    class Position(Protocol):
        """nanargmax and nanargmin."""

        __name__: str

        def __call__(self, a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool = False) -> Array:
            """Compute the result; the function's own docstring describes it."""
            ...


_DOC = """{summary} of the elements that are not NaN{empty}.

    Args:
        a: array.
        axis: int, tuple of ints, or None for all.
        {dtype}out: not supported: arrays are immutable.
        keepdims: keep the reduced axes, with size 1.
        initial: {initial}.
        where: boolean array: the elements to take.

    Returns:
        An array without the reduced axes.

    >>> float(fnp.nan{name}(fnp.asarray([1.0, fnp.nan, 3.0])))
    {value}
    """


def _taken(x: Any, where: Any) -> Any:
    """Return a mask of the elements to take; None for all."""
    if where is not None:
        reductions.check_mask(where)
    if not dtypes.is_inexact(aval_of(x).dtype):
        return where
    number = elementwise.eq(x, x)
    return number if where is None else elementwise.and_(*promotion.broadcast_arrays(number, truth(where)))


def _folded(name: str, fold: Any, summary: str, value: str) -> Fold:
    """Make nansum or nanprod, whose result for no elements is a number."""

    @eager_jit(static=("axis", "dtype", "keepdims"))
    def body(x: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        x = reductions.plain(x)
        return fold.inline(x, axis, dtype, keepdims, initial, _taken(x, where))

    def function(
        a: ArrayLike,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        promotion.no_out(out, f"fnp.{name}")
        return body(*promotion.numbers(a), hashable(axis), reductions._dtype(dtype), bool(keepdims), initial, where)

    dtype_line = "dtype: dtype to convert to first.\n        "
    doc = _DOC.format(
        summary=summary, name=name[3:], value=value, empty="", dtype=dtype_line, initial="the value to start from"
    )
    return promotion.named(function, name, doc, __name__)


nansum = _folded("nansum", reductions._sum, "Sum", "4.0")
nanprod = _folded("nanprod", reductions._prod, "Product", "3.0")


def _extreme(name: str, fold: Any, primitive: Any, summary: str, value: str) -> Extreme:
    """Make nanmax or nanmin, which need at least one element."""

    @eager_jit(static=("axis", "keepdims"))
    def body(x: Any, axis: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        x = reductions.plain(x)
        if not dtypes.is_inexact(aval_of(x).dtype):
            return fold.inline(x, axis, None, keepdims, initial, where)
        aval = aval_of(x)
        if initial is None and where is None and aval.size and dtypes.is_float(aval.dtype):
            axes = axes_of(axis, aval.ndim, f"fnp.{name}")
            out = primitive(promotion.convert(x, aval.dtype), axes=axes)
            return reductions.keep(out, aval.shape, axes) if keepdims else out
        taken = _taken(x, where)
        out = fold.inline(x, axis, None, keepdims, initial, taken)
        if initial is not None:
            return out
        nothing = complex(np.nan, np.nan) if aval_of(out).dtype.kind == "c" else np.nan
        return elementwise.select_n(
            reductions._any.inline(taken, axis, keepdims), structural.full_like(out, nothing), out
        )

    def function(
        a: ArrayLike,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        promotion.no_out(out, f"fnp.{name}")
        promotion.check_int(initial, aval_of(a).dtype)
        return body(*promotion.numbers(a), hashable(axis), bool(keepdims), initial, where)

    doc = _DOC.format(
        summary=summary, name=name[3:], value=value, empty="; NaN where there are none and no `initial`", dtype="",
        initial="one more element",
    )  # fmt: skip
    return promotion.named(function, name, doc, __name__)


nanmax = _extreme("nanmax", reductions._max, reduce_fmax, "Greatest", "3.0")
nanmin = _extreme("nanmin", reductions._min, reduce_fmin, "Least", "1.0")


# ------------------------------------------------------------------------------------------------------------- moments
def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """Mean over axes of the elements that are not NaN; NaN where there are none. Arguments as for `mean`.

    Args:
        a: array.
        axis: int, tuple of ints, or None for all axes.
        dtype: dtype to convert to first.
        out: not supported: arrays are immutable.
        keepdims: keep the reduced axes, with size 1.
        where: boolean array, broadcast to `a`: the elements to take.

    Returns:
        An array without the reduced axes, in floating point.

    >>> float(fnp.nanmean(fnp.asarray([1.0, fnp.nan, 3.0])))
    2.0
    """
    promotion.no_out(out, "fnp.nanmean")
    return _nanmean(*promotion.numbers(a), hashable(axis), reductions._dtype(dtype), bool(keepdims), where)


@eager_jit(static=("axis", "dtype", "keepdims"))
def _nanmean(x: Any, axis: Any, dtype: Any, keepdims: bool, where: Any) -> Any:
    x = reductions.plain(x)
    return statistics._mean.inline(x, axis, dtype, keepdims, _taken(x, where))


def nanvar(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array:
    """Variance over axes of the elements that are not NaN; NaN where there are none. Arguments as for `var`.

    Args:
        a: array.
        axis: int, tuple of ints, or None for all axes.
        dtype: dtype to convert to first.
        out: not supported: arrays are immutable.
        ddof: number that is subtracted from the count in the denominator.
        keepdims: keep the reduced axes, with size 1.
        where: boolean array, broadcast to `a`: the elements to take.
        mean: mean of `a` over these axes with the axes kept, if it is known.
        correction: the array API's name for `ddof`.

    Returns:
        An array without the reduced axes, of real floats.

    >>> float(fnp.nanvar(fnp.asarray([1.0, fnp.nan, 3.0])))
    1.0
    """
    promotion.no_out(out, "fnp.nanvar")
    less = statistics.one_name(ddof, correction, "fnp.nanvar")
    return _nanvar(*promotion.numbers(a), hashable(axis), reductions._dtype(dtype), bool(keepdims), less, where, mean)


def nanstd(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array:
    """Standard deviation over axes of the elements that are not NaN: the square root of `nanvar`.

    Args:
        a: array.
        axis: int, tuple of ints, or None for all axes.
        dtype: dtype to convert to first.
        out: not supported: arrays are immutable.
        ddof: number that is subtracted from the count in the denominator.
        keepdims: keep the reduced axes, with size 1.
        where: boolean array, broadcast to `a`: the elements to take.
        mean: mean of `a` over these axes with the axes kept, if it is known.
        correction: the array API's name for `ddof`.

    Returns:
        An array without the reduced axes, of real floats.

    >>> float(fnp.nanstd(fnp.asarray([1.0, fnp.nan, 3.0])))
    1.0
    """
    promotion.no_out(out, "fnp.nanstd")
    less = statistics.one_name(ddof, correction, "fnp.nanstd")
    return _nanstd(*promotion.numbers(a), hashable(axis), reductions._dtype(dtype), bool(keepdims), less, where, mean)


@eager_jit(static=("axis", "dtype", "keepdims", "ddof"))
def _nanvar(x: Any, axis: Any, dtype: Any, keepdims: bool, ddof: float, where: Any, mean: Any) -> Any:
    x = reductions.plain(x)
    taken = _taken(x, where)
    out = statistics._var.inline(x, axis, dtype, keepdims, ddof, taken, mean)
    if not dtypes.is_inexact(aval_of(out).dtype):
        if taken is not where:
            why = f"the variance of {aval_of(x)!r} in {aval_of(out).dtype} has no NaN for sets without elements"
            raise promotion.error(DtypeError, why, "leave out dtype, or give a floating-point dtype")
        return out
    count = statistics._counted(x, axis, keepdims, taken, out)
    return elementwise.select_n(
        elementwise.gt(count, structural.full_like(count, ddof)), structural.full_like(out, np.nan), out
    )


@eager_jit(static=("axis", "dtype", "keepdims", "ddof"))
def _nanstd(x: Any, axis: Any, dtype: Any, keepdims: bool, ddof: float, where: Any, mean: Any) -> Any:
    return statistics.deviation(_nanvar, x, axis, dtype, keepdims, ddof, where, mean)


# --------------------------------------------------------------------------------------------- running sums, positions
_ALONG = """{summary} along an axis, with NaN as {neutral}.

    Args:
        a: array.
        axis: the axis; None for the flattened array.
        dtype: dtype to convert to first.
        out: not supported: arrays are immutable.

    Returns:
        An array of the shape of `a`; of one dimension if axis is None.

    >>> fnp.{name}(fnp.asarray([2.0, fnp.nan, 3.0])).tolist()
    {value}
    """


def _running(name: str, primitive: Any, neutral: int, summary: str, value: str) -> Running:
    @eager_jit(static=("axis", "dtype"))
    def body(x: Any, axis: Any, dtype: Any) -> Any:
        x = reductions.plain(x)
        return primitive.inline(reductions._masked(x, _taken(x, None), np.asarray(neutral)), axis, dtype)

    def function(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
        promotion.no_out(out, f"fnp.{name}")
        return body(*promotion.numbers(a), axis, reductions._dtype(dtype))

    doc = _ALONG.format(summary=summary, neutral=neutral, name=name, value=value)
    return promotion.named(function, name, doc, __name__)


nancumsum = _running("nancumsum", _cumsum, 0, "Running sum", "[2.0, 2.0, 5.0]")
nancumprod = _running("nancumprod", _cumprod, 1, "Running product", "[2.0, 2.0, 6.0]")

_ARG = """The index of the first {which} element that is not NaN; -1 where there is none.

    Args:
        a: array of real numbers.
        axis: the axis; None for the flattened array.
        out: not supported: arrays are immutable.
        keepdims: keep the reduced axes, with size 1.

    Returns:
        int32 positions, without the axis.

    Raises:
        ShapeError: where there is nothing to choose from.

    >>> int(fnp.{name}(fnp.asarray([fnp.nan, 3.0, 1.0])))
    {value}
    """


def _arg(name: str, choose: Any, extreme: Callable[[Any], Any], which: str, value: int) -> Position:
    @eager_jit(static=("axis", "keepdims"))
    def body(x: Any, axis: Any, keepdims: bool) -> Any:
        x = reductions.plain(x)
        if not dtypes.is_inexact(aval_of(x).dtype):
            return choose.inline(x, axis, keepdims)
        taken = _taken(x, None)
        out = choose.inline(reductions._masked(x, taken, extreme(aval_of(x).dtype)), axis, keepdims)
        # An element may equal the value in place of NaN, and come after it.
        first = reductions._argmax.inline(taken, axis, keepdims)
        missed = elementwise.lt(out, first)
        there = reductions._any.inline(taken, axis, keepdims)
        return elementwise.select_n(there, structural.full_like(out, -1), elementwise.select_n(missed, out, first))

    def function(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool = False) -> Array:
        promotion.no_out(out, f"fnp.{name}")
        return body(*promotion.numbers(a), axis, bool(keepdims))

    return promotion.named(function, name, _ARG.format(which=which, name=name, value=value), __name__)


nanargmax = _arg("nanargmax", reductions._argmax, complex_order.lowest, "greatest", 1)
nanargmin = _arg("nanargmin", reductions._argmin, complex_order.highest, "least", 2)
