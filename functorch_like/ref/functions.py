"""Functions of references: making them, ending them, and indexing by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import argument_aval
from functorch_like.errors import ArgumentError, DtypeError
from functorch_like.primitives import structural
from functorch_like.ref.cells import as_held, error, refuse_paths
from functorch_like.ref.reference import Ref
from functorch_like.ref.views import RefView

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.ref.slices import RefIndex
    from functorch_like.typing import ArrayLike, SupportsDType


def new_ref(init_val: ArrayLike, *, memory_space: None = None, kind: str | None = None, pin: bool = False) -> Ref:
    """Make a mutable reference that holds an array.

    A Ref made inside of a function lives there: return `ref[...]`. One made outside of a jitted function may be passed
    to it, or closed over; each call then reads its value and writes it. See docs/refs.md.

    Args:
        init_val: the first value: an array or number; later writes do not change it. A Python number has the default
            dtype of its kind.
        memory_space: JAX's name of the kind of memory; None only.
        kind: JAX's option of rematerialization; None only.
        pin: JAX's name for memory that stays in place; False only.

    Returns:
        A Ref of the value's shape and dtype.

    Raises:
        DtypeError: for anything but an array, such as a Ref.
        ArgumentError: for other options.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> ref = ft.new_ref(fnp.zeros(2))
    >>> ref[1] = 3.0
    >>> ref
    Ref([0., 3.], dtype=float32)
    """
    if memory_space is not None or kind is not None or pin:
        raise error(ArgumentError, "new_ref has no memory_space, kind or pin here", "leave them out")
    aval = argument_aval(init_val)
    made = Ref(as_held(init_val, aval.dtype))
    refuse_paths(made)
    return made


def empty_ref(ty: SupportsDType, memory_space: None = None, pin: bool = False) -> Ref:
    """Make a Ref of a shape and dtype; it holds zeros.

    Args:
        ty: an object with a shape and a dtype: a `ft.ShapeDtypeStruct`, an array.
        memory_space: None only.
        pin: False only.

    Returns:
        The Ref.

    Raises:
        ArgumentError: for objects without shape and dtype, and for other options.

    >>> import functorch_like as ft
    >>> ft.ref.empty_ref(ft.ShapeDtypeStruct((2,), "int32"))
    Ref([0, 0], dtype=int32)
    """
    shape: Any = getattr(ty, "shape", None)
    if shape is None or not hasattr(ty, "dtype"):
        raise error(ArgumentError, f"empty_ref takes a shape and a dtype, got {ty!r:.60}", "ft.ShapeDtypeStruct")
    dtype = dtypes.narrowed(np.dtype(ty.dtype))
    zeros = structural.zeros(ShapedArray(tuple(shape), dtype))
    return new_ref(zeros, memory_space=memory_space, pin=pin)


def freeze(ref: Ref) -> Array:
    """End a Ref, and return its last value.

    Args:
        ref: a Ref that was made in the function that freezes it. It cannot be used again.

    Returns:
        An array of its shape and dtype.

    Raises:
        ArgumentError: for a Ref that was made elsewhere, or was ended before.

    >>> import functorch_like as ft
    >>> ref = ft.new_ref(2.0)
    >>> ref[...] *= 3
    >>> ft.freeze(ref).item()
    6.0
    """
    return checked(ref, "freeze").end("frozen")


def free_ref(ref: Ref) -> None:
    """End a Ref, and release its memory.

    Args:
        ref: as for `freeze`.

    Raises:
        ArgumentError: as `freeze`.

    >>> import functorch_like as ft
    >>> ft.ref.free_ref(ft.new_ref(2.0))
    """
    checked(ref, "free_ref").end("freed")


def get(ref: Ref, idx: RefIndex | None = None) -> Array:
    """Read: `ref[idx]`.

    Args:
        ref: a Ref.
        idx: an index as of arrays; None for all of it.

    Returns:
        The array `ref[idx]`.

    Raises:
        DtypeError: for anything but a Ref.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> ft.ref.get(ft.new_ref(fnp.arange(5)), slice(1, 3)).tolist()
    [1, 2]
    """
    return _viewed(ref, "get")[_index(idx)]


def set(ref: Ref, idx: RefIndex | None, value: ArrayLike) -> None:
    """Write: `ref[idx] = value`.

    Args:
        ref: a Ref.
        idx: an index as of arrays; None for all of it.
        value: of the dtype of the Ref, or a number that fits it; broadcasts to the indexed elements.

    Raises:
        DtypeError: for another dtype.
        ShapeError: where the value does not broadcast.

    >>> import functorch_like as ft
    >>> ref = ft.new_ref(1)
    >>> ft.ref.set(ref, ..., 4)
    >>> ref
    Ref(4, dtype=int32)
    """
    _viewed(ref, "set")[_index(idx)] = value


def swap(ref: Ref, idx: RefIndex | None, value: ArrayLike) -> Array:
    """Write, and return the previous values.

    Args:
        ref: a Ref.
        idx: an index as of arrays; None for all of it.
        value: as for `set`.

    Returns:
        The array `ref[idx]` before the write.

    Raises:
        DtypeError: as for `set`.
        ShapeError: as for `set`.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> ref = ft.new_ref(fnp.arange(3))
    >>> ft.ref.swap(ref, 2, 9).item(), ref
    (2, Ref([0, 1, 9], dtype=int32))
    """
    before = _viewed(ref, "swap")[_index(idx)]
    ref[_index(idx)] = value
    return before


def addupdate(ref: Ref, idx: RefIndex | None, x: ArrayLike) -> None:
    """Add to the indexed elements. Where a position occurs several times, all its addends are added.

    Args:
        ref: a Ref.
        idx: an index as of arrays; None for all of it.
        x: as the value of `set`.

    Raises:
        DtypeError: as for `set`.
        ShapeError: as for `set`.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> ref = ft.new_ref(fnp.zeros(2))
    >>> ft.ref.addupdate(ref, fnp.asarray([1, 1]), 2.0)
    >>> ref
    Ref([0., 4.], dtype=float32)
    """
    _viewed(ref, "addupdate").addupdate(x, _index(idx))


def checked(ref: Any, name: str) -> Ref:
    """Return the argument of a function if it is a Ref.

    Raises:
        DtypeError: for anything else.
    """
    if not isinstance(ref, Ref):
        raise error(DtypeError, f"{name} takes a Ref, got {ref!r:.60} of type {type(ref).__name__}", "ft.new_ref(x)")
    return ref


def _viewed(ref: Any, name: str) -> Ref | RefView:
    """Return the argument of a function if it is a Ref or a view of one; raise DtypeError for anything else."""
    return ref if isinstance(ref, RefView) else checked(ref, name)


def _index(idx: Any) -> Any:
    return ... if idx is None else idx
