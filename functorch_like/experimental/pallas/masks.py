"""Reads and writes under masks, and atomic updates: of the lanes out of bounds, none is read or written.

A slice that reaches over an end of its array is cut out at the nearest place inside. Its elements are then rotated,
so that each lane has the element that it names; lanes without one have some other element, and writes leave them out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import DtypeError
from functorch_like.experimental.pallas.memory import unwritten
from functorch_like.lax.slicing import dynamic_slice_in_dim
from functorch_like.primitives import structural
from functorch_like.primitives.updates import dynamic_slice
from functorch_like.ref import slices
from functorch_like.ref.reference import Ref
from functorch_like.ref.slices import Slice, Window
from functorch_like.ref.views import RefView, fits

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.ref.slices import RefIndex
    from functorch_like.typing import ArrayLike


def load(ref: Ref | RefView, *, mask: ArrayLike | None = None, other: ArrayLike | None = None) -> Array:
    """Read a Ref or a view where a mask holds.

    Args:
        ref: a Ref, or a view as `ref.at[pl.ds(i, 4)]`; the slice may reach out of bounds where the mask is false.
        mask: booleans that broadcast to the elements; None for all of them.
        other: value of the elements where the mask is false; undefined without it.

    Returns:
        An array of the shape and dtype of the view.

    Raises:
        DtypeError: for anything but a Ref.

    Example:
        >>> import functorch_like as ft, functorch_like.numpy as fnp
        >>> from functorch_like.experimental import pallas as pl
        >>> from functorch_like.experimental.pallas import triton as plgpu
        >>> ref = ft.new_ref(fnp.arange(5))
        >>> plgpu.load(ref.at[pl.ds(3, 4)], mask=fnp.arange(4) < 2, other=-1).tolist()
        [3, 4, -1, -1]
    """
    parent, index = _taken_apart(ref, "load")
    if mask is None:
        return parent[index]
    reach = _Reach(parent.read(), index)
    value = reach.elements()
    if other is None:
        return value
    return fnp.where(mask, value, fnp.asarray(other, value.dtype))


def store(ref: Ref | RefView, val: ArrayLike, *, mask: ArrayLike | None = None) -> None:
    """Write a Ref or a view where a mask holds.

    Args:
        ref: as for `load`.
        val: broadcasts to the elements; of the dtype of the Ref, or a number that fits it.
        mask: booleans that broadcast to the elements; None for all of them.

    Raises:
        DtypeError: for anything but a Ref, and values of another dtype.

    Example:
        >>> import functorch_like as ft, functorch_like.numpy as fnp
        >>> from functorch_like.experimental import pallas as pl
        >>> from functorch_like.experimental.pallas import triton as plgpu
        >>> ref = ft.new_ref(fnp.arange(5))
        >>> plgpu.store(ref.at[pl.ds(3, 4)], 9, mask=fnp.arange(4) < 1)
        >>> ref
        Ref([0, 1, 2, 9, 4], dtype=int32)
    """
    parent, index = _taken_apart(ref, "store")
    if mask is None:
        parent[index] = val
        return
    held = parent.read()
    aval = aval_of(val)
    if not fits(held.aval, aval):
        raise DtypeError(f"store of {aval!r} into a Ref of {held.aval!r}", fix=f"x.astype({held.dtype.name!r})")
    parent[...] = _Reach(held, index).written(fnp.asarray(val, held.dtype), mask)


def _taken_apart(ref: Any, name: str) -> tuple[Ref | RefView, Any]:
    """Return a Ref and the index of a view of it."""
    if isinstance(ref, RefView) and ref.index is not None:
        parent: Any = ref.parent
        return parent, ref.index
    if not isinstance(ref, (Ref, RefView)):
        raise DtypeError(f"{name} takes a Ref or ref.at[...], got {ref!r:.60}", fix="in kernels: x_ref.at[pl.ds(i, n)]")
    return ref, ...


class _Reach:
    """Elements of an array at an index that may reach out of bounds.

    Args:
        value: the array.
        index: an index of arrays that may have Slices.
    """

    def __init__(self, value: Any, index: Any) -> None:
        self.shape, self.index = aval_of(value).shape, index
        entries = list(index) if isinstance(index, tuple) else [index]
        if not any(type(e) is Slice for e in entries):
            self.value, self.window, self.shifts = value, None, []
            return
        value = structural.pad(value, unwritten(aval_of(value).dtype), padding_config=_room(entries, self.shape))
        self.value = value
        self.window = slices.split(index, aval_of(value).shape)
        assert self.window is not None
        self.shifts: list[tuple[int, Any]] = []  # axes that are cut out at another place, and how far from it
        starts = list(self.window.starts)
        for axis, start in enumerate(starts):
            if not isinstance(start, int):
                inside = fnp.clip(start, 0, aval_of(value).shape[axis] - self.window.sizes[axis])
                self.shifts.append((axis, start - inside))
                starts[axis] = inside
        self.window = Window(starts, self.window.sizes, self.window.rest, self.window.checked)

    def elements(self) -> Any:
        """Return the elements; those out of bounds are any."""
        if self.window is None:
            return self.value[self.index]
        return self._rotated(slices.cut(self.value, self.window), 1)[self.window.rest]

    def written(self, x: Any, mask: Any) -> Any:
        """Return the array with elements replaced where a mask holds."""
        if self.window is None:
            return self._scattered(x, mask)
        before = self._rotated(slices.cut(self.value, self.window), 1)
        elements = before[self.window.rest]
        after = before.at[self.window.rest].set(fnp.where(mask, x, elements))
        for axis, shift in self.shifts:
            lanes = fnp.arange(self.window.sizes[axis], dtype=np.int32) + shift
            valid = (lanes >= 0) & (lanes < self.window.sizes[axis])
            after = fnp.where(fnp.expand_dims(valid, [k for k in range(after.ndim) if k != axis]), after, before)
        after = self._rotated(after, -1)
        if self.window.starts:
            starts = [fnp.asarray(s, np.int32) for s in self.window.starts]
            after = dynamic_slice.dynamic_update_slice(self.value, after, *starts)
        return after[tuple(slice(0, n) for n in self.shape)]

    def _scattered(self, x: Any, mask: Any) -> Any:
        """Write at positions; those whose mask is false are moved out of bounds, where nothing is written."""
        entries = list(self.index) if isinstance(self.index, tuple) else [self.index]
        arrays = [k for k, e in enumerate(entries) if getattr(e, "ndim", 0)]
        if arrays and Ellipsis not in entries and None not in [e for e in entries if not hasattr(e, "ndim")]:
            k = arrays[0]
            entries[k] = fnp.where(mask, entries[k], self.shape[k])
            if all(getattr(e, "ndim", 0) or isinstance(e, int) for e in entries):
                return self.value.at[tuple(entries)].set(x)
        return self.value.at[self.index].set(fnp.where(mask, x, self.value[self.index]))

    def _rotated(self, part: Any, sign: int) -> Any:
        """Return the window with each lane's element in its place; with sign -1, the reverse."""
        for axis, shift in self.shifts:
            n = part.shape[axis]
            part = dynamic_slice_in_dim(fnp.concatenate([part, part], axis), (sign * shift) % n, n, axis)
        return part


def _room(entries: list[Any], shape: tuple[int, ...]) -> tuple[tuple[int, int, int], ...]:
    """Return the padding behind each axis that makes room for slices at known places, and for large ones."""
    given = [e for e in entries if e is not None]
    at = given.index(Ellipsis) if any(e is Ellipsis for e in given) else len(given)
    fill = [slice(None)] * (len(shape) - sum(e is not Ellipsis for e in given))
    given[at : at + 1] = fill
    ends = [
        0 if type(e) is not Slice else e.span if e.is_dynamic_start else max(int(e.start), 0) + e.span for e in given
    ]
    return tuple((0, max(end - n, 0), 0) for end, n in zip(ends, shape, strict=True))


def atomic_update(ref: Ref | RefView, idx: RefIndex, val: ArrayLike, mask: ArrayLike | None, how: str) -> Array:
    """Update elements, and return those before.

    Args:
        ref: a Ref or view.
        idx: an index of it.
        val: broadcasts to the elements.
        mask: where it is false, nothing changes; None for everywhere.
        how: "add", "max", "min", "set", "and", "or" or "xor".
    """
    if not isinstance(ref, (Ref, RefView)):
        raise DtypeError(f"an atomic update of {ref!r:.60}", fix="pass the Ref itself, and the index as idx")
    before = ref[idx]
    val = fnp.asarray(val, before.dtype)
    bitwise = {"and": fnp.bitwise_and, "or": fnp.bitwise_or, "xor": fnp.bitwise_xor}
    if how in bitwise:
        val, how = bitwise[how](before, val), "set"
    if mask is not None:
        neutral: Any = {"add": fnp.zeros_like(before), "set": before, "max": before, "min": before}[how]
        val = fnp.where(mask, val, neutral)
    ref.combine(idx, val, how)
    return before
