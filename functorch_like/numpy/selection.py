"""Choosing between values element by element: where, clip, select, nan_to_num."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from functorch_like import dtypes
from functorch_like.core import Tracer, aval_of
from functorch_like.errors import ArgumentError, DtypeError
from functorch_like.numpy import promotion
from functorch_like.numpy.logic import truth
from functorch_like.primitives import elementwise, structural
from functorch_like.transforms.eager_jit import eager_jit, with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


@overload
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def where(
    condition: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> tuple[Array, ...]: ...
@with_kernel(3)
def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Any:
    """x where the condition is true, y elsewhere; with the condition alone, the indices where it is true.

    Args:
        condition: boolean array; numbers count as true where they are not 0.
        x: array or number.
        y: array or number; the three broadcast.
        size: for the condition alone: the number of indices, required if it is traced.
        fill_value: for the condition alone: the index that fills up to `size`, 0 by default.

    Returns:
        An array; or a tuple of integer arrays, one for each dimension.

    Raises:
        ArgumentError: where only one of x and y is given.

    >>> fnp.where(fnp.asarray([True, False]), 1.0, 2.0).tolist()
    [1.0, 2.0]
    """
    if x is None and y is None:
        from functorch_like.numpy.sorting_searching import nonzero  # it imports indexing, and this form is rare

        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise promotion.error(ArgumentError, "fnp.where got only one of x and y", "pass both, or neither")
    if isinstance(condition, Tracer) or isinstance(x, Tracer) or isinstance(y, Tracer):
        return _where(condition, x, y)
    condition = bool(condition) if isinstance(condition, int) else promotion.numbers(condition)[0]
    return _where_kernel(condition, *promotion.numbers(x, y))


def _where(condition: Any, x: Any, y: Any) -> Any:
    c = truth(condition)
    x, y = promotion.promote(x, y)
    shape = promotion.common_shape(aval_of(c).shape, aval_of(x).shape, aval_of(y).shape)
    x, y = promotion.broadcast(x, shape), promotion.broadcast(y, shape)
    return elementwise.select_n(c if aval_of(c).shape == () else promotion.broadcast(c, shape), y, x)


_where_kernel = eager_jit(ints=True, checked=True)(_where)


def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0) -> Array:
    """The choice of the first condition that is true, element by element.

    Args:
        condlist: boolean arrays.
        choicelist: arrays, one for each condition.
        default: the value where none is true.

    Returns:
        An array of the shape that all broadcast to, in the common dtype of choices and default.

    Raises:
        ArgumentError: where the lists differ in length or are empty.

    >>> x = fnp.arange(4)
    >>> fnp.select([x < 1, x < 3], [x, 10 * x], -1).tolist()
    [0, 10, 20, -1]
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise promotion.error(
            ArgumentError,
            f"fnp.select got {len(condlist)} conditions and {len(choicelist)} choices",
            "give one choice for each condition, and at least one",
        )
    dtype, _ = dtypes.promote(*(aval_of(c) for c in (*choicelist, default)))
    out: Any = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        out = where(condition, choice, out)
    return out if aval_of(out).dtype == dtype else structural.convert_element_type(out, new_dtype=dtype)


@with_kernel(3)
def clip(arr: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """Limit elements to the range from `min` to `max`.

    Args:
        arr: array of real numbers.
        min: array or number; None for no bound.
        max: array or number; None for no bound.

    Returns:
        minimum(maximum(arr, min), max), in the dtype the three are promoted to.

    Raises:
        DtypeError: for complex numbers.
        NumberError: where an integer dtype holds no number that is within a bound.

    >>> fnp.clip(fnp.arange(5), 1, 3).tolist()
    [1, 1, 2, 3, 3]
    """
    min = None if promotion.beyond(min, arr) < 0 else min
    max = None if promotion.beyond(max, arr) > 0 else max
    if isinstance(arr, Tracer) or isinstance(min, Tracer) or isinstance(max, Tracer):
        return _clip(arr, min, max)
    return _clip_kernel(*promotion.numbers(arr, min, max))


def _clip(x: Any, low: Any, high: Any) -> Any:
    for v in (x, low, high):
        if v is not None and aval_of(v).dtype.kind == "c":
            raise promotion.error(
                DtypeError, "fnp.clip takes real numbers", "clip fnp.real and fnp.imag, or scale by fnp.abs"
            )
    if low is not None:
        x = elementwise.max(*promotion.promote_and_broadcast(x, low))
    elif high is None and type(x) in promotion.NUMBERS:
        x = promotion.convert(x, aval_of(x).dtype, True)
    return x if high is None else elementwise.min(*promotion.promote_and_broadcast(x, high))


_clip_kernel = eager_jit(ints=True, checked=True)(_clip)


@with_kernel(1, values=("nan", "posinf", "neginf"))
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """Replace NaN and infinities by numbers.

    Args:
        x: array.
        copy: ignored, since arrays are immutable.
        nan: in place of NaN.
        posinf: in place of +inf; the greatest number of the dtype by default.
        neginf: in place of -inf; the least number of the dtype by default.

    Returns:
        An array of the shape and dtype of x.

    >>> fnp.nan_to_num(fnp.asarray([1.0, fnp.nan])).tolist()
    [1.0, 0.0]
    """
    return _nan_to_num(*promotion.numbers(x, nan), posinf, neginf)


@eager_jit(ints=True)
def _nan_to_num(x: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    x = promotion.convert(x, aval_of(x).dtype, aval_of(x).weak_type)
    dtype = aval_of(x).dtype
    if dtype.kind == "c":
        part = _nan_to_num.inline
        return elementwise.complex(
            part(elementwise.real(x), nan, posinf, neginf), part(elementwise.imag(x), nan, posinf, neginf)
        )
    if not dtypes.is_float(dtype):
        return x
    info, shape = dtypes.finfo(dtype), aval_of(x).shape
    fill = lambda v: promotion.broadcast(promotion.convert(v, dtype), shape)
    high = fill(np.asarray(info.max) if posinf is None else posinf)
    low = fill(np.asarray(info.min) if neginf is None else neginf)
    out = elementwise.select_n(elementwise.ne(x, x), x, fill(nan))
    out = elementwise.select_n(elementwise.eq(x, promotion.like(x, np.inf)), out, high)
    return elementwise.select_n(elementwise.eq(x, promotion.like(x, -np.inf)), out, low)
