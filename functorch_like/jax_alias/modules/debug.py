"""`jax.debug`: functions that show shardings; of traced arrays, the first device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functorch_like import debug
from functorch_like.arrays import devices
from functorch_like.core import ArrayImpl
from functorch_like.jax_alias.modules.callbacks import debug_callback as callback
from functorch_like.jax_alias.modules.programs import DebugEffect, OrderedDebugEffect

__all__ = [
    "DebugEffect",
    "OrderedDebugEffect",
    "callback",
    "inspect_array_sharding",
    "visualize_array_sharding",
    "visualize_sharding",
]


def inspect_array_sharding(value: Any, *, callback: Callable[[Any], None]) -> None:
    """Call a function with the sharding of an array; of a traced one, with that of the first device."""
    from functorch_like.sharding import SingleDeviceSharding

    callback(value.sharding if type(value) is ArrayImpl else SingleDeviceSharding(devices.devices()[0]))


def visualize_array_sharding(arr: Any, **options: Any) -> None:
    """Print which device holds which part of an array; for a traced array or other ranks, only the devices."""
    if type(arr) is ArrayImpl and arr.ndim in (1, 2):
        debug.visualize_array_sharding(arr)
    else:
        print(f"{arr.shape} on {arr.sharding.device_set if type(arr) is ArrayImpl else devices.devices()[0]}")


def visualize_sharding(shape: Any, sharding: Any, **options: Any) -> None:
    """Print the devices of a sharding."""
    print(f"{tuple(shape)} on {sharding.device_set}")
