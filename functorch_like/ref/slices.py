"""Slices of fixed size whose start may be traced, as indices of Refs: `ref[dslice(i, 4)]`.

An index with traced starts or positions is split in two. A window, which holds all that it selects, is read and
written by one dynamic slice; the rest of the index is static, and applies to the window.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from functorch_like import dtypes
from functorch_like.core import ArrayImpl, Tracer, aval_of
from functorch_like.errors import ArgumentError, BoundsError
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.updates import dynamic_slice
from functorch_like.ref.cells import error

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import Index


@dataclasses.dataclass(frozen=True)
class Slice:
    """A slice of `size` elements from `start` on, `stride` apart.

    Args:
        start: a Python int, or an integer scalar, which may be traced.
        size: the number of elements.
        stride: distance between two of them.

    Raises:
        ArgumentError: for a size that is traced or negative, and for strides below 1.

    Example:
        >>> import functorch_like as ft, functorch_like.numpy as fnp
        >>> from functorch_like.experimental import pallas as pl
        >>> ft.new_ref(fnp.arange(9))[pl.Slice(1, 3, 2)].tolist()
        [1, 3, 5]
    """

    start: Any
    size: int
    stride: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.size, Tracer) or self.size < 0 or isinstance(self.stride, Tracer) or self.stride < 1:
            raise error(
                ArgumentError,
                f"a slice of {self.size!r} elements with stride {self.stride!r}",
                "give a size that is known while tracing, and a stride of at least 1; mask the elements to leave out",
            )

    @property
    def span(self) -> int:
        """Distance from the first element to behind the last one."""
        return (self.size - 1) * self.stride + 1 if self.size else 0

    @property
    def is_dynamic_start(self) -> bool:
        """True if the start is an array or traced."""
        return isinstance(self.start, (Tracer, ArrayImpl))


def dslice(start: int | Array | None, size: int | None = None, stride: int | None = None) -> slice | Slice:
    """Make a slice from a start and a size.

    Args:
        start: the start, which may be traced; or the size, if that is left out: then the slice begins at 0.
        size: the number of elements.
        stride: distance between two of them; 1 by default.

    Returns:
        The `Slice`; for a start of None, the slice of all elements.

    Raises:
        ArgumentError: as for `Slice`.

    Example:
        >>> from functorch_like.experimental import pallas as pl
        >>> pl.ds(2, 4), pl.ds(3)
        (Slice(start=2, size=4, stride=1), Slice(start=0, size=3, stride=1))
    """
    if start is None:
        return slice(None)
    begin: Any = 0 if size is None else start
    count: Any = start if size is None else size
    return Slice(begin, count, 1 if stride is None else stride)


ds = dslice
if TYPE_CHECKING:
    #: An index of a Ref: that of an array, which may have Slices.
    RefIndex = Index | Slice | tuple[Any, ...]


class Window(NamedTuple):
    """The window of an array that an index selects from, and the index in the window.

    Attributes:
        starts: int32 scalars or ints, one for each axis.
        sizes: size along each axis.
        rest: a static index of the window, or one with arrays.
        checked: positions that were given as traced scalars, each with the size of its axis; a write out of these
            bounds changes nothing.
    """

    starts: list[Any]
    sizes: tuple[int, ...]
    rest: Any
    checked: list[tuple[Any, int]]


def read(value: Any, index: Any) -> Any:
    """Return `value[index]`, where the index may have Slices; one that reaches out of bounds is moved inside.

    Raises:
        BoundsError: for known positions and sizes out of bounds.
    """
    window = split(index, aval_of(value).shape)
    if window is None:
        return value[index]
    return cut(value, window)[window.rest]


def updated(value: Any, index: Any, x: Any, how: str) -> Any:
    """Return an array with `x` written into, or added to, indexed elements.

    Args:
        value: the array before.
        index: an index of arrays that may have Slices.
        x: broadcasts to indexed elements.
        how: "set", "add" or another method of `array.at[index]`.
    """
    window = split(index, aval_of(value).shape)
    if window is None:
        return getattr(value.at[index], how)(x)
    if not window.starts:
        return getattr(value.at[window.rest], how)(x)
    before = cut(value, window)
    after = getattr(before.at[window.rest], how)(x)
    for position, size in window.checked:
        low = elementwise.ge(position, _int32(0))
        inside = elementwise.and_(low, elementwise.lt(position, _int32(size)))
        inside = structural.broadcast_in_dim(inside, shape=aval_of(after).shape, broadcast_dimensions=())
        after = elementwise.select_n(inside, before, after)
    return dynamic_slice.dynamic_update_slice(value, after, *map(_int32, window.starts))


def cut(value: Any, window: Window) -> Any:
    """Return the window of an array."""
    if not window.starts:
        return value
    return dynamic_slice.dynamic_slice(value, *map(_int32, window.starts), slice_sizes=window.sizes)


def split(index: Any, shape: Sequence[int]) -> Window | None:
    """Split an index into a window and an index in it; None if it has no Slices and no traced scalars.

    Raises:
        BoundsError: for a Slice that is larger than its axis, or known to reach over its ends.
    """
    entries = list(index) if isinstance(index, tuple) else [index]
    if not any(type(e) is Slice or _is_position(e) for e in entries):
        return None
    taken = sum(e is not None and e is not Ellipsis for e in entries)
    dots = [k for k, e in enumerate(entries) if e is Ellipsis]
    if len(dots) > 1 or taken > len(shape) or any(_is_mask(e) for e in entries):
        if any(type(e) is Slice for e in entries):
            raise error(
                BoundsError,
                f"{index!r:.100} is no index of an array of shape {tuple(shape)}",
                "give at most one index for each axis, ... once, and no masks beside slices of fixed size",
            )
        return None  # the array's own index raises, or takes it
    at = dots[0] if dots else len(entries)
    entries[at : at + 1] = [slice(None)] * (len(shape) - taken)
    starts: list[Any] = []
    sizes: list[int] = []
    rest: list[Any] = []
    checked: list[tuple[Any, int]] = []
    moving = False
    for entry in entries:
        if entry is None:
            rest.append(entry)
            continue
        n = shape[len(sizes)]
        start, size = 0, n
        if type(entry) is Slice:
            start, size, entry = _slice(entry, n, len(sizes), shape)
        elif _is_position(entry) and n:
            start, size, entry = _wrapped(entry, n), 1, 0
            checked.append((start, n))
        moving |= isinstance(start, (Tracer, ArrayImpl))
        starts.append(start)
        sizes.append(size)
        rest.append(entry)
    return Window(starts if moving else [], tuple(sizes), tuple(rest), checked)


def _slice(entry: Slice, n: int, axis: int, shape: Sequence[int]) -> tuple[Any, int, slice]:
    """Return start and size of the window of a Slice, and the slice in it."""
    known = not entry.is_dynamic_start
    start = int(entry.start) if known else entry.start
    if entry.span > n or (known and entry.size and not 0 <= start <= n - entry.span):
        raise error(
            BoundsError,
            f"a slice of {entry.size} elements from {start if known else 'a traced position'} on, with stride "
            f"{entry.stride}, is out of bounds for axis {axis} of size {n}, shape {tuple(shape)}",
            "make it smaller; or make the block larger, and mask what is not part of the array",
        )
    if known:
        return 0, n, slice(start, start + entry.span, entry.stride)
    return start, entry.span, slice(None, None, entry.stride)


def _is_position(entry: Any) -> bool:
    return isinstance(entry, (Tracer, ArrayImpl)) and not entry.ndim and dtypes.is_integer(entry.aval.dtype)


def _is_mask(entry: Any) -> bool:
    return isinstance(entry, (bool, np.bool_)) or getattr(entry, "dtype", None) == dtypes.bool_


def _wrapped(position: Any, n: int) -> Any:
    """Return a position with negative ones counted from the end."""
    position = _int32(position)
    below = elementwise.lt(position, _int32(0))
    return elementwise.select_n(below, position, elementwise.add(position, _int32(n)))


def _int32(x: Any) -> Any:
    if isinstance(x, (Tracer, ArrayImpl)):
        if x.aval.dtype == dtypes.int32 and not x.aval.weak_type:
            return x
        return structural.convert_element_type(x, new_dtype=dtypes.int32, weak_type=False)
    return np.asarray(x, np.int32)
