"""Kernels on blocks of arrays, written for Pallas, as XLA programs: `pallas_call` and what kernels use.

>>> import functorch_like as ft, functorch_like.numpy as fnp
>>> from functorch_like.experimental import pallas as pl
>>> def double(x_ref, o_ref):
...     o_ref[...] = x_ref[...] * 2
>>> block = pl.BlockSpec((2,), lambda i: i)
>>> out = ft.ShapeDtypeStruct((4,), "int32")
>>> pl.pallas_call(double, out, grid=2, in_specs=[block], out_specs=block)(fnp.arange(4)).tolist()
[0, 2, 4, 6]
"""

from __future__ import annotations

from functorch_like.calling import lazy_imports as _lazy_imports

with _lazy_imports.block(__name__):
    from functorch_like.experimental.pallas import tpu as tpu
    from functorch_like.experimental.pallas import triton as triton
    from functorch_like.experimental.pallas.arithmetic import broadcast_to as broadcast_to
    from functorch_like.experimental.pallas.arithmetic import reciprocal as reciprocal
    from functorch_like.experimental.pallas.call import pallas_call as pallas_call
    from functorch_like.experimental.pallas.control import loop as loop
    from functorch_like.experimental.pallas.control import when as when
    from functorch_like.experimental.pallas.cores import core_map as core_map
    from functorch_like.experimental.pallas.cores import kernel as kernel
    from functorch_like.experimental.pallas.cost import CostEstimate as CostEstimate
    from functorch_like.experimental.pallas.cost import estimate_cost as estimate_cost
    from functorch_like.experimental.pallas.debugging import debug_check as debug_check
    from functorch_like.experimental.pallas.debugging import debug_print as debug_print
    from functorch_like.experimental.pallas.debugging import delay as delay
    from functorch_like.experimental.pallas.debugging import enable_debug_checks as enable_debug_checks
    from functorch_like.experimental.pallas.environment import num_programs as num_programs
    from functorch_like.experimental.pallas.environment import program_id as program_id
    from functorch_like.experimental.pallas.memory import ANY as ANY
    from functorch_like.experimental.pallas.memory import HOST as HOST
    from functorch_like.experimental.pallas.memory import MemoryRef as MemoryRef
    from functorch_like.experimental.pallas.memory import MemorySpace as MemorySpace
    from functorch_like.experimental.pallas.scoped import empty as empty
    from functorch_like.experimental.pallas.scoped import empty_like as empty_like
    from functorch_like.experimental.pallas.scoped import empty_ref_like as empty_ref_like
    from functorch_like.experimental.pallas.scoped import run_scoped as run_scoped
    from functorch_like.experimental.pallas.scoped import run_state as run_state
    from functorch_like.experimental.pallas.scoped import with_scoped as with_scoped
    from functorch_like.experimental.pallas.semaphores import DeviceIdType as DeviceIdType
    from functorch_like.experimental.pallas.semaphores import semaphore_read as semaphore_read
    from functorch_like.experimental.pallas.semaphores import semaphore_signal as semaphore_signal
    from functorch_like.experimental.pallas.semaphores import semaphore_wait as semaphore_wait
    from functorch_like.experimental.pallas.sizes import align_to as align_to
    from functorch_like.experimental.pallas.sizes import cdiv as cdiv
    from functorch_like.experimental.pallas.sizes import multiple_of as multiple_of
    from functorch_like.experimental.pallas.sizes import next_power_of_2 as next_power_of_2
    from functorch_like.experimental.pallas.sizes import strides_from_shape as strides_from_shape
    from functorch_like.experimental.pallas.specs import Blocked as Blocked
    from functorch_like.experimental.pallas.specs import BlockSpec as BlockSpec
    from functorch_like.experimental.pallas.specs import BoundedSlice as BoundedSlice
    from functorch_like.experimental.pallas.specs import Buffered as Buffered
    from functorch_like.experimental.pallas.specs import Element as Element
    from functorch_like.experimental.pallas.specs import GridSpec as GridSpec
    from functorch_like.experimental.pallas.specs import RevisitMode as RevisitMode
    from functorch_like.experimental.pallas.specs import Squeezed as Squeezed
    from functorch_like.experimental.pallas.specs import no_block_spec as no_block_spec
    from functorch_like.experimental.pallas.specs import squeezed as squeezed
    from functorch_like.ref.slices import Slice as Slice
    from functorch_like.ref.slices import ds as ds
    from functorch_like.ref.slices import dslice as dslice
