"""Kinds of memory, and descriptions of arrays in them: `pltpu.VMEM((8, 128), "float32")`.

All kinds are the memory of the device that XLA runs on: the names change no value and no speed.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.errors import ArgumentError
from functorch_like.primitives import structural
from functorch_like.ref.cells import as_held

if TYPE_CHECKING:
    from functorch_like.typing import DTypeLike


@dataclasses.dataclass(frozen=True)
class MemoryRef:
    """Type of a Ref that a kernel gets as scratch.

    Attributes:
        inner_aval: shape and dtype of the value.
        memory_space: kind of memory.
    """

    inner_aval: ShapedArray
    memory_space: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self.inner_aval.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""
        return self.inner_aval.dtype


def _described(space: Any, shape: Sequence[int], dtype: DTypeLike) -> MemoryRef:
    return MemoryRef(ShapedArray(tuple(map(int, shape)), dtypes.narrowed(np.dtype(dtype))), space)


class MemorySpace(enum.Enum):
    """Kinds of memory that all devices have."""

    ANY = "any"
    DEFAULT = "default"
    HOST = "host"

    def __call__(self, shape: Sequence[int], dtype: DTypeLike) -> MemoryRef:
        """Return the description of an array in this memory."""
        return _described(self, shape, dtype)

    def __str__(self) -> str:
        return self.value


class TpuMemorySpace(enum.Enum):
    """Kinds of memory of a TPU."""

    VMEM = "vmem"
    VMEM_SHARED = "vmem_shared"
    SMEM = "smem"
    CMEM = "cmem"
    SEMAPHORE = "semaphore"
    HBM = "hbm"

    def __call__(self, shape: Sequence[int], dtype: DTypeLike) -> MemoryRef:
        """Return the description of an array in this memory."""
        return _described(self, shape, dtype)

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.value


class SemaphoreType(enum.Enum):
    """Kinds of semaphores. A semaphore is a Ref of int32 counters, 0 at first."""

    REGULAR = "regular"
    DMA = "dma"
    BARRIER = "barrier"

    def __call__(self, shape: Sequence[int] = ()) -> MemoryRef:
        """Return the description of an array of semaphores."""
        return MemoryRef(ShapedArray(tuple(map(int, shape)), np.dtype(np.int32)), TpuMemorySpace.SEMAPHORE)


ANY, HOST, SEMAPHORE = MemorySpace.ANY, MemorySpace.HOST, TpuMemorySpace.SEMAPHORE


def described(scratch: Any) -> MemoryRef:
    """Return the description of one scratch array.

    Raises:
        ArgumentError: for an object that describes none.
    """
    if isinstance(scratch, MemoryRef):
        return scratch
    if isinstance(scratch, SemaphoreType):
        return scratch()
    if hasattr(scratch, "shape") and hasattr(scratch, "dtype"):
        return _described(MemorySpace.ANY, scratch.shape, scratch.dtype)
    raise ArgumentError(
        f"{scratch!r:.60} of type {type(scratch).__name__} does not describe a scratch array",
        fix="pltpu.VMEM(shape, dtype), pl.ANY(shape, dtype), or pltpu.SemaphoreType.REGULAR",
    )


def initial(description: MemoryRef, zeros: bool = False) -> Any:
    """Return the value of memory that nothing has been written to.

    Args:
        description: shape and dtype; semaphores are 0.
        zeros: zeros instead of NaN and its like.
    """
    dtype = description.dtype
    value = np.zeros((), dtype) if zeros or description.memory_space is SEMAPHORE else unwritten(dtype)
    if not description.shape:
        return as_held(value, dtype)
    return structural.broadcast_in_dim(value, shape=description.shape, broadcast_dimensions=())


def unwritten(dtype: np.dtype[Any]) -> Any:
    """Return the value of an element that was never written: NaN, the least integer, or False."""
    if dtypes.is_float(dtype) or dtypes.is_complex(dtype):
        return np.asarray(np.nan, dtype)
    if dtype == dtypes.bool_:
        return np.zeros((), dtype)
    return np.asarray(dtypes.iinfo(dtype).min, dtype)
