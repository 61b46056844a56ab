"""Padding of arrays to a bucket's size, and cutting of results.

The padding repeats the first row, so that no operation gets values that the user's rows do not have. On CPUs NumPy
copies: XLA would need a program for each number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like.backends import xla
from functorch_like.core import Tracer, aval_of
from functorch_like.primitives import structural


def pad(x: Any, shape: Sequence[int]) -> Any:
    """Enlarge an array to a shape at the ends of its axes."""
    given = aval_of(x).shape
    if tuple(shape) == given:
        return x
    if _on_host(x):
        host = np.asarray(x)
        out = np.zeros(shape, host.dtype)
        out[tuple(map(slice, given))] = host
        for axis, (old, new) in enumerate(zip(given, shape, strict=True)):
            if 0 < old < new:
                out[_along(axis, old, new)] = out[_along(axis, 0, 1)]
        return out
    for axis, (old, new) in enumerate(zip(given, shape, strict=True)):
        if old < new:
            x = structural.concatenate(x, _rows_like(x, axis, new - old), dimension=axis)
    return x


def placed(x: Any) -> Any:
    """Put a NumPy array on the device: for arguments of NumPy, another program would be compiled."""
    return xla.device_put(x) if isinstance(x, np.ndarray) else x


def cut(x: Any, shape: Sequence[int]) -> Any:
    """The first elements of an array along each axis."""
    given = aval_of(x).shape
    if tuple(shape) == given:
        return x
    if _on_host(x):
        return xla.device_put(np.array(np.asarray(x)[tuple(map(slice, shape))]))
    return structural.slice(x, start_indices=(0,) * len(given), limit_indices=tuple(shape))


def _on_host(x: Any) -> bool:
    """Return True for an array that NumPy reads without a transfer."""
    if isinstance(x, Tracer):
        return False
    if not isinstance(x, xla.ArrayImpl):
        return True
    devices = x.devices()
    return len(devices) == 1 and next(iter(devices)).platform == "cpu"


def _along(axis: int, start: int, stop: int) -> tuple[slice, ...]:
    return (*[slice(None)] * axis, slice(start, stop))


def _rows_like(x: Any, axis: int, count: int) -> Any:
    """The first row of an array, `count` times; zeros where the array has no rows."""
    aval = aval_of(x)
    shape = (*aval.shape[:axis], count, *aval.shape[axis + 1 :])
    if not aval.shape[axis]:
        return structural.zeros(aval.update(shape=shape))
    limits = tuple(1 if d == axis else n for d, n in enumerate(aval.shape))
    row = structural.slice(x, start_indices=(0,) * aval.ndim, limit_indices=limits)
    return structural.broadcast_in_dim(row, shape=shape, broadcast_dimensions=tuple(range(aval.ndim)))
