"""Functions of Pallas kernels for Triton, as parts of XLA programs: masked reads and writes, atomic updates.

The steps of a grid run one after the other, so that an update is atomic anyway.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from functorch_like import numpy as fnp
from functorch_like.experimental.pallas import masks
from functorch_like.experimental.pallas.arithmetic import dot as dot
from functorch_like.experimental.pallas.sizes import max_contiguous as max_contiguous

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.ref.reference import Ref
    from functorch_like.ref.slices import RefIndex
    from functorch_like.ref.views import RefView
    from functorch_like.typing import ArrayLike

__all__ = (
    "CompilerParams", "approx_tanh", "atomic_add", "atomic_and", "atomic_cas", "atomic_max", "atomic_min", "atomic_or",
    "atomic_xchg", "atomic_xor", "debug_barrier", "dot", "load", "max_contiguous", "store",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class CompilerParams:
    """Options of Triton's compiler. They have no effect: XLA compiles kernels."""

    num_warps: int | None = None
    num_stages: int | None = None


def load(
    ref: Ref | RefView,
    *,
    mask: ArrayLike | None = None,
    other: ArrayLike | None = None,
    cache_modifier: str | None = None,
    eviction_policy: str | None = None,
    volatile: bool = False,
) -> Array:
    """Read a Ref or a view where a mask holds.

    Args:
        ref: a Ref, or a view as `ref.at[pl.ds(i, 4)]`; the slice may reach out of bounds where the mask is false.
        mask: booleans that broadcast to the elements; None for all of them.
        other: value of the elements where the mask is false; undefined without it.
        cache_modifier: taken, and without effect.
        eviction_policy: taken, and without effect.
        volatile: taken, and without effect.

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
    return masks.load(ref, mask=mask, other=other)


def store(
    ref: Ref | RefView, val: ArrayLike, *, mask: ArrayLike | None = None, eviction_policy: str | None = None
) -> None:
    """Write a Ref or a view where a mask holds.

    Args:
        ref: as for `load`.
        val: broadcasts to the elements; of the dtype of the Ref, or a number that fits it.
        mask: booleans that broadcast to the elements; None for all of them.
        eviction_policy: taken, and without effect.

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
    masks.store(ref, val, mask=mask)


def approx_tanh(x: Array) -> Array:
    """Return tanh(x), exact to rounding.

    Args:
        x: array of floats.

    Example:
        >>> import functorch_like.numpy as fnp
        >>> from functorch_like.experimental.pallas import triton as plgpu
        >>> plgpu.approx_tanh(fnp.zeros(1)).tolist()
        [0.0]
    """
    return fnp.tanh(x)


def debug_barrier() -> None:
    """Do nothing: a step is one thread.

    Example:
        >>> from functorch_like.experimental.pallas import triton as plgpu
        >>> plgpu.debug_barrier()
    """


def atomic_add(x_ref_or_view: Ref | RefView, idx: RefIndex, val: ArrayLike, *, mask: ArrayLike | None = None) -> Array:
    """Add to elements of a Ref. A position that occurs several times gets all its addends.

    Args:
        x_ref_or_view: a Ref or view.
        idx: an index of it.
        val: broadcasts to the indexed elements.
        mask: booleans; where one is false, the element stays.

    Returns:
        The elements before.

    Raises:
        DtypeError: for anything but a Ref.

    Example:
        >>> import functorch_like as ft, functorch_like.numpy as fnp
        >>> from functorch_like.experimental.pallas import triton as plgpu
        >>> ref = ft.new_ref(fnp.zeros(2))
        >>> before = plgpu.atomic_add(ref, fnp.asarray([1, 1]), 2.0)
        >>> ref
        Ref([0., 4.], dtype=float32)
    """
    return masks.atomic_update(x_ref_or_view, idx, val, mask, "add")


def atomic_max(x_ref_or_view: Ref | RefView, idx: RefIndex, val: ArrayLike, *, mask: ArrayLike | None = None) -> Array:
    """Replace elements of a Ref by the larger of them and a value.

    Args:
        x_ref_or_view: a Ref or view.
        idx: an index of it.
        val: broadcasts to the indexed elements.
        mask: booleans; where one is false, the element stays.

    Returns:
        The elements before.

    Raises:
        DtypeError: for anything but a Ref.

    Example:
        >>> import functorch_like as ft, functorch_like.numpy as fnp
        >>> from functorch_like.experimental.pallas import triton as plgpu
        >>> ref = ft.new_ref(fnp.asarray([1, 5]))
        >>> before = plgpu.atomic_max(ref, ..., 3)
        >>> ref
        Ref([3, 5], dtype=int32)
    """
    return masks.atomic_update(x_ref_or_view, idx, val, mask, "max")


def atomic_min(x_ref_or_view: Ref | RefView, idx: RefIndex, val: ArrayLike, *, mask: ArrayLike | None = None) -> Array:
    """Replace elements of a Ref by the smaller of them and a value.

    Args:
        x_ref_or_view: a Ref or view.
        idx: an index of it.
        val: broadcasts to the indexed elements.
        mask: booleans; where one is false, the element stays.

    Returns:
        The elements before.

    Raises:
        DtypeError: for anything but a Ref.

    Example:
        >>> import functorch_like as ft, functorch_like.numpy as fnp
        >>> from functorch_like.experimental.pallas import triton as plgpu
        >>> ref = ft.new_ref(fnp.asarray([1, 5]))
        >>> before = plgpu.atomic_min(ref, ..., 3)
        >>> ref
        Ref([1, 3], dtype=int32)
    """
    return masks.atomic_update(x_ref_or_view, idx, val, mask, "min")


def atomic_xchg(x_ref_or_view: Ref | RefView, idx: RefIndex, val: ArrayLike, *, mask: ArrayLike | None = None) -> Array:
    """Replace elements of a Ref.

    Args:
        x_ref_or_view: a Ref or view.
        idx: an index of it.
        val: broadcasts to the indexed elements.
        mask: booleans; where one is false, the element stays.

    Returns:
        The elements before.

    Raises:
        DtypeError: for anything but a Ref.

    Example:
        >>> import functorch_like as ft, functorch_like.numpy as fnp
        >>> from functorch_like.experimental.pallas import triton as plgpu
        >>> ref = ft.new_ref(fnp.asarray([1, 5]))
        >>> plgpu.atomic_xchg(ref, 0, 3).item(), ref
        (1, Ref([3, 5], dtype=int32))
    """
    return masks.atomic_update(x_ref_or_view, idx, val, mask, "set")


def atomic_and(x_ref_or_view: Ref | RefView, idx: RefIndex, val: ArrayLike, *, mask: ArrayLike | None = None) -> Array:
    """Replace elements of a Ref by their bits that a value has, too. Positions must differ from each other.

    Args:
        x_ref_or_view: a Ref of integers, or a view.
        idx: an index of it.
        val: broadcasts to the indexed elements.
        mask: booleans; where one is false, the element stays.

    Returns:
        The elements before.

    Raises:
        DtypeError: for anything but a Ref.

    Example:
        >>> import functorch_like as ft, functorch_like.numpy as fnp
        >>> from functorch_like.experimental.pallas import triton as plgpu
        >>> ref = ft.new_ref(fnp.asarray([6, 5]))
        >>> before = plgpu.atomic_and(ref, ..., 3)
        >>> ref
        Ref([2, 1], dtype=int32)
    """
    return masks.atomic_update(x_ref_or_view, idx, val, mask, "and")


def atomic_or(x_ref_or_view: Ref | RefView, idx: RefIndex, val: ArrayLike, *, mask: ArrayLike | None = None) -> Array:
    """Set the bits of elements of a Ref that a value has. Positions must differ from each other.

    Args:
        x_ref_or_view: a Ref of integers, or a view.
        idx: an index of it.
        val: broadcasts to the indexed elements.
        mask: booleans; where one is false, the element stays.

    Returns:
        The elements before.

    Raises:
        DtypeError: for anything but a Ref.

    Example:
        >>> import functorch_like as ft, functorch_like.numpy as fnp
        >>> from functorch_like.experimental.pallas import triton as plgpu
        >>> ref = ft.new_ref(fnp.asarray([6, 5]))
        >>> before = plgpu.atomic_or(ref, ..., 1)
        >>> ref
        Ref([7, 5], dtype=int32)
    """
    return masks.atomic_update(x_ref_or_view, idx, val, mask, "or")


def atomic_xor(x_ref_or_view: Ref | RefView, idx: RefIndex, val: ArrayLike, *, mask: ArrayLike | None = None) -> Array:
    """Invert the bits of elements of a Ref that a value has. Positions must differ from each other.

    Args:
        x_ref_or_view: a Ref of integers, or a view.
        idx: an index of it.
        val: broadcasts to the indexed elements.
        mask: booleans; where one is false, the element stays.

    Returns:
        The elements before.

    Raises:
        DtypeError: for anything but a Ref.

    Example:
        >>> import functorch_like as ft, functorch_like.numpy as fnp
        >>> from functorch_like.experimental.pallas import triton as plgpu
        >>> ref = ft.new_ref(fnp.asarray([6, 5]))
        >>> before = plgpu.atomic_xor(ref, ..., 1)
        >>> ref
        Ref([7, 4], dtype=int32)
    """
    return masks.atomic_update(x_ref_or_view, idx, val, mask, "xor")


def atomic_cas(ref: Ref | RefView, cmp: ArrayLike, val: ArrayLike) -> Array:
    """Replace the element of a Ref if it equals a number.

    Args:
        ref: a Ref or view of one element.
        cmp: the number to compare with.
        val: the new value.

    Returns:
        The element before.

    Raises:
        DtypeError: for anything but a Ref.

    Example:
        >>> import functorch_like as ft
        >>> from functorch_like.experimental.pallas import triton as plgpu
        >>> ref = ft.new_ref(0)
        >>> plgpu.atomic_cas(ref, 0, 7).item(), ref
        (0, Ref(7, dtype=int32))
    """
    before = ref[...]
    return masks.atomic_update(ref, ..., fnp.where(before == cmp, val, before), None, "set")
