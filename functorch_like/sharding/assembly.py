"""Arrays on several devices, made from the part on each device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.backends.xla import named_sharding, sharded_arrays
from functorch_like.calling import api_boundary
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError


@api_boundary.public
def make_array_from_callback(
    shape: Sequence[int],
    sharding: Any,
    data_callback: Callable[[tuple[slice, ...]], Any],
    *,
    dtype: Any = None,
) -> Any:
    """Make an array whose parts a function computes, each from its index.

    Args:
        shape: of the whole array.
        sharding: a NamedSharding, a SingleDeviceSharding, or a PartitionSpec within `use_mesh`.
        data_callback: takes a tuple of slices and returns that part of the array, as a NumPy array or number. It is
            called once for each different part on the devices of this process.
        dtype: of the array; that of the first part if None.

    Returns:
        An array on the devices of the sharding.

    Raises:
        ShapeError: where a dimension does not divide, or a part has another shape or dtype than its index selects.

    >>> import functorch_like as ft, numpy as np
    >>> from functorch_like.sharding import NamedSharding, PartitionSpec as P
    >>> whole = np.arange(6)
    >>> where = NamedSharding(ft.make_mesh((1,), ("data",)), P("data"))
    >>> ft.make_array_from_callback(whole.shape, where, lambda index: whole[index]).tolist()
    [0, 1, 2, 3, 4, 5]
    """
    shape = named_sharding.shape_from(shape)
    where = named_sharding.from_user(sharding, "sharding")
    if not callable(data_callback):
        raise ArgumentError(
            f"data_callback is {data_callback!r:.60} of type {type(data_callback).__name__}",
            fix="give a function that takes an index and returns that part of the array",
        )
    if isinstance(where, named_sharding.SingleDeviceSharding):
        index = (slice(None),) * len(shape)
        whole = _part(data_callback(index), dtype)
        expected = ShapedArray(shape, dtypes.as_dtype(whole.dtype if dtype is None else dtype))
        sharded_arrays.check_part(whole, expected, index)
        return sharded_arrays.place(whole, where, False)
    sharded_arrays.check_concrete(where)
    named_sharding.check_divides(where, shape, f"an array of shape {shape}")
    cache: dict[Any, np.ndarray[Any, Any]] = {}
    if dtype is None:
        first = next(iter(where.addressable_devices_indices_map(shape).values()))
        cache[_key(first)] = value = _part(data_callback(first), None)
        dtype = value.dtype

    def part(index: tuple[slice, ...]) -> Any:
        part_array = cache.pop(_key(index), None)
        return _part(data_callback(index), dtype) if part_array is None else part_array

    return sharded_arrays.from_callback(ShapedArray(shape, dtypes.as_dtype(dtype)), where, part)


def _key(index: tuple[slice, ...]) -> Any:
    return tuple((s.start, s.stop) for s in index)


def _part(value: Any, dtype: Any) -> np.ndarray[Any, Any]:
    aval = aval_of(value)
    host = np.asarray(value, aval.dtype)
    return host if dtype is None or host.dtype == dtype or not aval.weak_type else host.astype(dtype)


@api_boundary.public
def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Any, arrays: Sequence[Any], *, dtype: Any = None
) -> Any:
    """Make an array of arrays on one device each; nothing is copied.

    Args:
        shape: of the whole array.
        sharding: a NamedSharding, a SingleDeviceSharding, or a PartitionSpec within `use_mesh`.
        arrays: one for each device of the sharding in this process, in any order.
        dtype: of the array; that of the parts if None.

    Returns:
        An array of that shape, split over the devices.

    Raises:
        ShapeError: where a part has another shape or dtype than the sharding gives its device.
        ArgumentError: where a device has no part.

    >>> import functorch_like as ft
    >>> from functorch_like.sharding import NamedSharding, PartitionSpec as P
    >>> where = NamedSharding(ft.make_mesh((1,), ("data",)), P("data"))
    >>> part = ft.device_put(ft.numpy.arange(3), ft.devices()[0])
    >>> ft.make_array_from_single_device_arrays((3,), where, [part]).tolist()
    [0, 1, 2]
    """
    parts = list(arrays)
    where = named_sharding.from_user(sharding, "sharding")
    if dtype is None:
        if not parts:
            raise ArgumentError("no arrays were given, and no dtype", fix="pass dtype=")
        dtype = aval_of(parts[0]).dtype
    return sharded_arrays.from_single_device_arrays(
        ShapedArray(named_sharding.shape_from(shape), dtypes.as_dtype(dtype)), where, parts
    )
