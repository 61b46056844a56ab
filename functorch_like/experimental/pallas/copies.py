"""Copies between Refs: `make_async_copy` and its like. They are done at once, where they start."""

from __future__ import annotations

from functorch_like.core import aval_of
from functorch_like.errors import DtypeError, ShapeError
from functorch_like.experimental.pallas.semaphores import refuse_remote, semaphore_signal, semaphore_wait
from functorch_like.ref.reference import Ref
from functorch_like.ref.views import RefView


class AsyncCopyDescriptor:
    """A copy from one Ref to another one: `start()` copies, `wait()` takes it off its semaphore.

    Args:
        src_ref: a Ref or view.
        dst_ref: another one of its shape and dtype.
        sem: a semaphore, which counts elements.
    """

    def __init__(self, src_ref: Ref | RefView, dst_ref: Ref | RefView, sem: Ref | RefView) -> None:
        for ref in (src_ref, dst_ref, sem):
            if not isinstance(ref, (Ref, RefView)):
                raise DtypeError(
                    f"a copy takes Refs, got {ref!r:.60}", fix="pass x_ref, or x_ref.at[...], not its value"
                )
        self.src_ref, self.dst_ref, self.sem = src_ref, dst_ref, sem
        source, target = aval_of(src_ref.read()), aval_of(dst_ref.read())
        if source.shape != target.shape or source.dtype != target.dtype:
            raise ShapeError(
                f"a copy from {source!r} to {target!r}", fix="copy between Refs of one shape and dtype: ref.at[...]"
            )

    def start(self, priority: int = 0, *, add: bool = False) -> None:
        """Copy.

        Args:
            priority: taken, and without effect.
            add: add to the target instead.
        """
        copy(self.src_ref, self.dst_ref, add)
        semaphore_signal(self.sem, self.src_ref.size)

    def wait(self) -> None:
        """Take the copy off its semaphore."""
        semaphore_wait(self.sem, self.dst_ref.size)

    wait_send = wait_recv = wait


def copy(source: Ref | RefView, target: Ref | RefView, add: bool) -> None:
    """Copy a Ref to another one, or add it."""
    target.combine(..., source[...], "add" if add else "set")


def make_async_copy(src_ref: Ref | RefView, dst_ref: Ref | RefView, sem: Ref | RefView) -> AsyncCopyDescriptor:
    """Make a copy between Refs that starts when its `start()` is called.

    Args:
        src_ref: a Ref or view.
        dst_ref: a Ref or view of the same shape and dtype.
        sem: a semaphore.

    Raises:
        ShapeError: for different shapes or dtypes.
        DtypeError: for anything but Refs.

    Example:
        >>> import functorch_like as ft, functorch_like.numpy as fnp
        >>> from functorch_like.experimental import pallas as pl
        >>> from functorch_like.experimental.pallas import tpu as pltpu
        >>> source, target = ft.new_ref(fnp.arange(6)), ft.new_ref(fnp.zeros(2, "int32"))
        >>> def moved(sem):
        ...     copying = pltpu.make_async_copy(source.at[pl.ds(2, 2)], target, sem)
        ...     copying.start()
        ...     copying.wait()
        >>> pl.run_scoped(moved, pltpu.SemaphoreType.DMA)
        >>> target
        Ref([2, 3], dtype=int32)
    """
    return AsyncCopyDescriptor(src_ref, dst_ref, sem)


def async_copy(
    src_ref: Ref | RefView, dst_ref: Ref | RefView, sem: Ref | RefView, *, priority: int = 0, add: bool = False
) -> AsyncCopyDescriptor:
    """Start a copy between Refs.

    Args:
        src_ref: as for `make_async_copy`.
        dst_ref: as for `make_async_copy`.
        sem: a semaphore.
        priority: taken, and without effect.
        add: add to the target instead.

    Returns:
        The copy, whose `wait()` is to be called.

    Raises:
        ShapeError: for different shapes or dtypes.

    Example:
        >>> pltpu.async_copy(x_ref, y_ref, sem).wait()  # doctest: +SKIP
    """
    made = AsyncCopyDescriptor(src_ref, dst_ref, sem)
    made.start(priority, add=add)
    return made


def sync_copy(src_ref: Ref | RefView, dst_ref: Ref | RefView, *, add: bool = False) -> None:
    """Copy a Ref to another one.

    Args:
        src_ref: a Ref or view.
        dst_ref: a Ref or view of the same shape and dtype.
        add: add to the target instead.

    Raises:
        DtypeError: for different dtypes.
        ShapeError: for different shapes.

    Example:
        >>> import functorch_like as ft, functorch_like.numpy as fnp
        >>> from functorch_like.experimental.pallas import tpu as pltpu
        >>> target = ft.new_ref(fnp.zeros(2))
        >>> pltpu.sync_copy(ft.new_ref(fnp.ones(2)), target)
        >>> target
        Ref([1., 1.], dtype=float32)
    """
    copy(src_ref, dst_ref, add)


def make_async_remote_copy(*args: object, **kwargs: object) -> AsyncCopyDescriptor:
    """Refuse a copy to another device.

    Args:
        args: those of a copy.
        kwargs: the same by name.

    Raises:
        UnsupportedError: always.

    Example:
        >>> pltpu.make_async_remote_copy(src, dst, send, receive, 1)  # doctest: +SKIP
    """
    raise refuse_remote("make_async_remote_copy")
