"""`jax.debug`: functions that show shardings; those of arrays show the first device only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functorch_like.arrays import devices


def inspect_array_sharding(value: Any, *, callback: Callable[[Any], None]) -> None:
    """Call a function with the sharding of an array."""
    from functorch_like.sharding import SingleDeviceSharding

    callback(SingleDeviceSharding(devices.devices()[0]))


def visualize_array_sharding(arr: Any, **options: Any) -> None:
    """Print the device of an array."""
    print(f"{arr.shape} on {devices.devices()[0]}")


def visualize_sharding(shape: Any, sharding: Any, **options: Any) -> None:
    """Print the devices of a sharding."""
    print(f"{tuple(shape)} on {sharding.device_set}")
