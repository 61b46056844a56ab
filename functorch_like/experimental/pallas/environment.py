"""The step of the grid that a kernel is traced for: `program_id` and `num_programs`."""

from __future__ import annotations

import contextlib
import dataclasses
import operator
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import ArrayImpl, Tracer, named_axis
from functorch_like.errors import ArgumentError, FtError
from functorch_like.primitives import structural
from functorch_like.ref.cells import as_held
from functorch_like.ref.reference import Ref

if TYPE_CHECKING:
    from functorch_like.core import Array


@dataclasses.dataclass
class Step:
    """One step of a grid.

    Attributes:
        kernel: name of the kernel, for errors.
        sizes: sizes of the grid's axes: ints, or traced scalars.
        ids: index along each axis, traced or not.
        names: names of the axes, where the grid has some.
        random: the state of the kernel's random numbers, words of a key.
        read: axes whose index the kernel has read.
    """

    kernel: str
    sizes: tuple[Any, ...]
    ids: tuple[Any, ...]
    names: tuple[Any, ...] | None = None
    random: Ref | None = None
    read: set[int] = dataclasses.field(default_factory=set)


class _Steps(threading.local):
    """The steps being traced in this thread, innermost last."""

    def __init__(self) -> None:
        self.stack: list[Step] = []


_steps = _Steps()


class _AxisSize(int):
    """Size of a named axis of the grid, which `lax.axis_index` reads the current index from.

    Attributes:
        position: index of the current step along the axis.
    """

    position: Any


@contextlib.contextmanager
def tracing(step: Step) -> Iterator[None]:
    """Make a step the current one in a `with` block, with the names of the grid's axes in scope."""
    _steps.stack.append(step)
    try:
        with contextlib.ExitStack() as stack:
            for name, size, index in zip(step.names or (), step.sizes, step.ids, strict=False):
                if name is not None and isinstance(size, int):
                    known = _AxisSize(size)
                    known.position = as_int32(index)
                    stack.enter_context(named_axis(name, known))
            yield
    finally:
        _steps.stack.pop()


def innermost() -> Step | None:
    """Return the current step; None outside of kernels."""
    return _steps.stack[-1] if _steps.stack else None


def grid_sizes(grid: Any, kernel: str) -> tuple[Any, ...]:
    """Return the sizes of a grid's axes, ints or traced int32 scalars; `kernel` is a name for errors.

    Raises:
        ArgumentError: for sizes that are not whole numbers.
    """
    return tuple(_size(n, kernel) for n in (grid if isinstance(grid, (tuple, list)) else (grid,)))


def _size(n: Any, kernel: str) -> Any:
    try:
        if isinstance(n, Tracer):
            if not n.aval.ndim and dtypes.is_integer(n.aval.dtype):
                return as_int32(n)
        elif operator.index(n) >= 0:
            return operator.index(n)
    except (TypeError, FtError):
        pass
    raise ArgumentError(
        f"the grid of kernel {kernel} has the size {n!r:.60}",
        fix="give ints; a traced size must be an integer scalar",
    )


def current(name: str) -> Step:
    """Return the current step; `name` is the function that needs it.

    Raises:
        ArgumentError: outside of kernels.
    """
    if not _steps.stack:
        raise ArgumentError(
            f"{name} was called outside of a kernel", fix="call it in the function given to pallas_call"
        )
    return _steps.stack[-1]


def _axis(step: Step, axis: Any, name: str) -> int:
    if step.names is not None and axis in step.names:
        return step.names.index(axis)
    k = operator.index(axis)
    if not 0 <= k < len(step.sizes):
        raise ArgumentError(
            f"{name}({axis}) in kernel {step.kernel}, whose grid {step.sizes!r:.60} has {len(step.sizes)} axes",
            fix="give the number of an axis of the grid, counted from 0",
        )
    return k


def program_id(axis: int | str) -> Array:
    """Return the index of the current step along an axis of the grid.

    Args:
        axis: number of the axis, or its name.

    Returns:
        An int32 scalar.

    Raises:
        ArgumentError: outside of kernels, and for axes that the grid does not have.

    Example:
        >>> import functorch_like as ft
        >>> from functorch_like.experimental import pallas as pl
        >>> def kernel(o_ref):
        ...     o_ref[pl.program_id(0)] = pl.program_id(0) * 10
        >>> pl.pallas_call(kernel, ft.ShapeDtypeStruct((3,), "int32"), grid=(3,))().tolist()
        [0, 10, 20]
    """
    step = current("program_id")
    k = _axis(step, axis, "program_id")
    step.read.add(k)
    return as_int32(step.ids[k])


def num_programs(axis: int | str) -> int | Array:
    """Return the size of the grid along an axis.

    Args:
        axis: number of the axis, or its name.

    Returns:
        An int; an int32 scalar for an axis whose size is traced.

    Raises:
        ArgumentError: as for `program_id`.

    Example:
        >>> import functorch_like as ft
        >>> from functorch_like.experimental import pallas as pl
        >>> def kernel(o_ref):
        ...     o_ref[...] = pl.num_programs(0)
        >>> pl.pallas_call(kernel, ft.ShapeDtypeStruct((), "int32"), grid=(3,))().item()
        3
    """
    step = current("num_programs")
    return step.sizes[_axis(step, axis, "num_programs")]


def as_int32(x: Any) -> Any:
    """Return an integer scalar as an int32 one, strongly typed."""
    if isinstance(x, (Tracer, ArrayImpl)):
        if x.aval.dtype == dtypes.int32 and not x.aval.weak_type:
            return x
        return structural.convert_element_type(x, new_dtype=dtypes.int32, weak_type=False)
    return as_held(np.asarray(x), np.dtype(np.int32))
