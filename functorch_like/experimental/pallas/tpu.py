"""Names of Pallas kernels for TPUs, as parts of XLA programs: memories, copies, semaphores, random bits."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from functorch_like.experimental.pallas import masks
from functorch_like.experimental.pallas.copies import async_copy as async_copy
from functorch_like.experimental.pallas.copies import make_async_copy as make_async_copy
from functorch_like.experimental.pallas.copies import make_async_remote_copy as make_async_remote_copy
from functorch_like.experimental.pallas.copies import sync_copy as sync_copy
from functorch_like.experimental.pallas.cores import TensorCoreMesh as TensorCoreMesh
from functorch_like.experimental.pallas.cores import create_tensorcore_mesh as create_tensorcore_mesh
from functorch_like.experimental.pallas.memory import SemaphoreType as SemaphoreType
from functorch_like.experimental.pallas.memory import TpuMemorySpace as MemorySpace
from functorch_like.experimental.pallas.pipeline import emit_pipeline as emit_pipeline
from functorch_like.experimental.pallas.random_bits import prng_random_bits as prng_random_bits
from functorch_like.experimental.pallas.random_bits import prng_seed as prng_seed
from functorch_like.experimental.pallas.specs import PrefetchScalarGridSpec as PrefetchScalarGridSpec
from functorch_like.experimental.pallas.vectors import bitcast as bitcast
from functorch_like.experimental.pallas.vectors import is_tpu_device as is_tpu_device
from functorch_like.experimental.pallas.vectors import roll as roll
from functorch_like.experimental.pallas.vectors import touch as touch
from functorch_like.experimental.pallas.vectors import with_memory_space_constraint as with_memory_space_constraint

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.ref.reference import Ref
    from functorch_like.ref.views import RefView
    from functorch_like.typing import ArrayLike

__all__ = (
    "ARBITRARY", "CMEM", "CORE_PARALLEL", "HBM", "PARALLEL", "SEMAPHORE", "SMEM", "SUBCORE_PARALLEL", "VMEM",
    "VMEM_SHARED", "CompilerParams", "GridDimensionSemantics", "InterpretParams", "MemorySpace",
    "PrefetchScalarGridSpec", "SemaphoreType", "SideEffectType", "TensorCoreMesh", "async_copy", "bitcast",
    "create_tensorcore_mesh", "emit_pipeline", "force_tpu_interpret_mode", "is_tpu_device", "load", "make_async_copy",
    "make_async_remote_copy", "prng_random_bits", "prng_seed", "roll", "store", "sync_copy", "touch",
    "with_memory_space_constraint",
)  # fmt: skip

VMEM, VMEM_SHARED, SMEM = MemorySpace.VMEM, MemorySpace.VMEM_SHARED, MemorySpace.SMEM
CMEM, SEMAPHORE, HBM = MemorySpace.CMEM, MemorySpace.SEMAPHORE, MemorySpace.HBM


class GridDimensionSemantics(enum.Enum):
    """Orders of the steps along an axis of the grid, for `CompilerParams(dimension_semantics=...)`."""

    PARALLEL = "parallel"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    ARBITRARY = "arbitrary"


PARALLEL, ARBITRARY = GridDimensionSemantics.PARALLEL, GridDimensionSemantics.ARBITRARY
CORE_PARALLEL, SUBCORE_PARALLEL = GridDimensionSemantics.CORE_PARALLEL, GridDimensionSemantics.SUBCORE_PARALLEL


class SideEffectType(enum.Enum):
    """Kinds of side effects that a kernel may declare. They have no effect."""

    PURE = "pure"
    DATAFLOW_SIDE_EFFECTING = "dataflow_side_effecting"
    SIDE_EFFECTING = "side_effecting"


@dataclasses.dataclass(frozen=True)
class CompilerParams:
    """Options of Mosaic's compiler. XLA compiles kernels: all but `dimension_semantics` have no effect.

    Attributes:
        dimension_semantics: for each axis of the grid, "parallel" or "arbitrary". Of an axis that is parallel, no step
            reads what another one has left in scratch; so they may be computed at once.
    """

    dimension_semantics: Any = None
    allow_input_fusion: Any = None
    vmem_limit_bytes: int | None = None
    collective_id: int | None = None
    has_side_effects: Any = False
    flags: Any = None
    internal_scratch_in_bytes: int | None = None
    serialization_format: int = 1
    disable_bounds_checks: bool = False
    disable_semaphore_checks: bool = False
    skip_device_barrier: bool = False
    allow_collective_id_without_custom_barrier: bool = False
    shape_invariant_numerics: bool = True
    use_tc_tiling_on_sc: bool | None = None
    needs_layout_passes: bool = True
    fuse_transposed_lhs_in_matmul: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class InterpretParams:
    """Options of JAX's interpreter of TPU kernels, for `pallas_call(interpret=...)`.

    Attributes:
        uninitialized_memory: "nan", or "zero" for memory that is zero at first. The other fields have no effect.
    """

    detect_races: bool = False
    out_of_bounds_reads: str = "raise"
    skip_floating_point_ops: bool = False
    uninitialized_memory: str = "nan"
    num_cores_or_threads: int = 1
    vector_clock_size: int | None = None
    logging_mode: Any = None
    dma_execution_mode: str = "on_wait"
    random_seed: int | None = None
    grid_point_recorder: Any = None
    allow_hbm_allocation_in_run_scoped: bool = False
    buffer_bounds: str = "logical"


@contextlib.contextmanager
def force_tpu_interpret_mode(params: InterpretParams | None = None) -> Iterator[None]:
    """Do nothing in a `with` block: kernels run as XLA programs everywhere.

    Args:
        params: taken, and without effect.

    Example:
        >>> from functorch_like.experimental.pallas import tpu as pltpu
        >>> with pltpu.force_tpu_interpret_mode():
        ...     pass
    """
    yield


def load(ref: Ref | RefView, *, mask: ArrayLike | None = None) -> Array:
    """Read a Ref or a view where a mask holds.

    Args:
        ref: a Ref, or a view as `ref.at[pl.ds(i, 4)]`; the slice may reach out of bounds where the mask is false.
        mask: booleans that broadcast to the elements; None for all of them.

    Returns:
        An array of the shape and dtype of the view; elements where the mask is false are undefined.

    Raises:
        DtypeError: for anything but a Ref.

    Example:
        >>> import functorch_like as ft, functorch_like.numpy as fnp
        >>> from functorch_like.experimental.pallas import tpu as pltpu
        >>> pltpu.load(ft.new_ref(fnp.arange(2))).tolist()
        [0, 1]
    """
    return masks.load(ref, mask=mask)


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
        >>> from functorch_like.experimental.pallas import tpu as pltpu
        >>> ref = ft.new_ref(fnp.arange(2))
        >>> pltpu.store(ref, 5, mask=fnp.asarray([True, False]))
        >>> ref
        Ref([5, 1], dtype=int32)
    """
    masks.store(ref, val, mask=mask)
