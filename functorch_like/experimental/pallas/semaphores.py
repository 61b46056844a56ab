"""Semaphores: counters in Refs. A program has one core here, and steps in order: a wait never has to wait."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from functorch_like.errors import DtypeError, UnsupportedError
from functorch_like.experimental.pallas.environment import as_int32
from functorch_like.ref.reference import Ref
from functorch_like.ref.views import RefView

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


class DeviceIdType(enum.Enum):
    """Kinds of numbers of devices."""

    MESH = "mesh"
    LOGICAL = "logical"


def _checked(sem: Any, name: str) -> Ref | RefView:
    if not isinstance(sem, (Ref, RefView)):
        raise DtypeError(
            f"{name} takes a semaphore, got {sem!r:.60}", fix="make it a scratch Ref: pltpu.SemaphoreType.REGULAR"
        )
    return sem


def refuse_remote(what: str) -> UnsupportedError:
    """Return the error for an operation with another device."""
    return UnsupportedError(
        f"{what} is for other devices than the kernel's, which kernels do not reach here",
        fix="use ft.shard_map, and ft.lax.ppermute and its like outside of the kernel",
    )


def semaphore_signal(
    sem: Ref | RefView,
    inc: ArrayLike = 1,
    *,
    device_id: object = None,
    device_id_type: DeviceIdType = DeviceIdType.MESH,
    core_index: ArrayLike | None = None,
) -> None:
    """Add to a semaphore.

    Args:
        sem: a semaphore, a Ref of one counter.
        inc: the number to add.
        device_id: None only: the semaphore of another device.
        device_id_type: taken, and without effect.
        core_index: taken, and without effect: there is one core.

    Raises:
        UnsupportedError: for a `device_id`.
        DtypeError: for anything but a Ref.

    Example:
        >>> from functorch_like.experimental import pallas as pl
        >>> from functorch_like.experimental.pallas import tpu as pltpu
        >>> def counted(sem):
        ...     pl.semaphore_signal(sem, 2)
        ...     pl.semaphore_wait(sem, 1)
        ...     return pl.semaphore_read(sem)
        >>> pl.run_scoped(counted, pltpu.SemaphoreType.REGULAR).item()
        1
    """
    if device_id is not None:
        raise refuse_remote(f"semaphore_signal(device_id={device_id!r:.40})")
    _checked(sem, "semaphore_signal").combine(..., as_int32(inc), "add")


def semaphore_wait(sem: Ref | RefView, value: ArrayLike = 1, *, decrement: bool = True) -> None:
    """Subtract from a semaphore. It does not wait: what signals it comes before in the program.

    Args:
        sem: a semaphore.
        value: the number to subtract.
        decrement: whether to subtract it.

    Raises:
        DtypeError: for anything but a Ref.

    Example:
        >>> pl.semaphore_wait(sem)  # doctest: +SKIP
    """
    checked = _checked(sem, "semaphore_wait")
    if decrement:
        checked.combine(..., -as_int32(value), "add")


def semaphore_read(sem: Ref | RefView) -> Array:
    """Return the count of a semaphore, an int32 scalar.

    Args:
        sem: a semaphore.

    Raises:
        DtypeError: for anything but a Ref.

    Example:
        >>> pl.semaphore_read(sem)  # doctest: +SKIP
    """
    return _checked(sem, "semaphore_read")[...]
