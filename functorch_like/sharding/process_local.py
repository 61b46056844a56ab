"""Arrays of several processes from the data that each process has loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.backends.xla import named_sharding, processes, sharded_arrays
from functorch_like.calling import api_boundary
from functorch_like.core import aval_of
from functorch_like.errors import ShapeError


@api_boundary.public
def make_array_from_process_local_data(
    sharding: Any, local_data: Any, global_shape: Sequence[int | None] | None = None
) -> Any:
    """Make an array from the parts that each process has for its own devices.

    Along each dimension, `local_data` is either those parts, joined in order, or the whole array, from which the parts
    are cut. Processes whose devices hold the same part must pass the same data.

    Args:
        sharding: a NamedSharding, or a PartitionSpec within `use_mesh`.
        local_data: NumPy array or number; the data of this process.
        global_shape: shape of the whole array. None, or a None in it: the local data are the parts of this process.

    Returns:
        An array on the devices of the sharding.

    Raises:
        ShapeError: where a size does not divide, or fits neither the parts of this process nor the whole array.
        DistributedError: where processes make arrays of different shapes or dtypes. Processes compare each new shape
            once, so all processes of the mesh must call this.

    >>> import functorch_like as ft, numpy as np
    >>> from functorch_like.sharding import NamedSharding, PartitionSpec as P
    >>> where = NamedSharding(ft.make_mesh((1,), ("data",)), P("data"))
    >>> ft.make_array_from_process_local_data(where, np.arange(4)).tolist()
    [0, 1, 2, 3]
    """
    where = named_sharding.from_user(sharding, "sharding")
    aval = aval_of(local_data)
    data = np.asarray(local_data, aval.dtype)
    if isinstance(where, named_sharding.SingleDeviceSharding):
        return sharded_arrays.place(data, where, False)
    sharded_arrays.check_concrete(where)
    named_sharding.check_rank(where.spec, data.ndim, f"local data of shape {data.shape}")
    sizes: Sequence[int | None] = (None,) * data.ndim if global_shape is None else tuple(global_shape)
    if len(sizes) != data.ndim:
        raise ShapeError(f"global_shape {tuple(sizes)} has {len(sizes)} dimensions, and local_data {data.ndim}")
    blocks = [_Blocks(where, data.shape, d, size) for d, size in enumerate(sizes)]
    shape = tuple(b.size for b in blocks)
    processes.compare(
        "arrays of process-local data",
        repr(ShapedArray(shape, aval.dtype)),
        where.mesh,
        "give each process as many rows as the others, of one dtype: pad or drop what is left of a last batch",
    )
    return sharded_arrays.from_callback(
        ShapedArray(shape, aval.dtype),
        where,
        lambda index: data[tuple(b.local(s) for b, s in zip(blocks, index, strict=True))],
    )


class _Blocks:
    """The parts of an array along one dimension that this process holds.

    Args:
        where: the sharding.
        shape: of the local data.
        d: the dimension.
        size: of the whole array, None if it follows from the local data.

    Attributes:
        size: of the whole array.
    """

    def __init__(self, where: Any, shape: tuple[int, ...], d: int, size: int | None) -> None:
        local, count = shape[d], named_sharding.shard_counts(where, len(shape))[d]
        what = f"dimension {d} of local_data of shape {shape}"
        parts_of = _parts_by_process(where, len(shape), d)
        own = parts_of[where.mesh.client.process_index()]
        uniform = all(other == own or (len(other) == len(own) and not other & own) for other in parts_of.values())
        whole = local * count // len(own) if uniform and local % len(own) == 0 else None
        self._is_whole = size == local and size != whole
        self.size = self._settle(local, whole, size, what, len(own), uniform)
        if self.size % count:
            raise ShapeError(
                f"{what} is of an array of size {self.size}, which does not divide by {count}, the number of parts",
                fix=f"pad the whole array to {-(-self.size // count) * count}",
            )
        self._part = self.size // count
        self._place = {block: position for position, block in enumerate(sorted(own))}

    @staticmethod
    def _settle(local: int, whole: int | None, size: int | None, what: str, own: int, uniform: bool) -> int:
        if size is not None and size in (whole, local):
            return size
        if not uniform:
            raise ShapeError(
                f"{what}: processes hold parts that overlap, and global_shape has {size} there",
                fix=f"give every process the whole dimension, and global_shape with {local} there",
            )
        if whole is None:
            raise ShapeError(
                f"{what} has size {local}, which does not divide by the {own} parts of this process",
                fix="give each part as many rows as the others",
            )
        if size is not None:
            raise ShapeError(
                f"{what} has size {local}, and global_shape has {size} there",
                fix=f"with the parts of this process alone it is {whole}, with the whole array {local}",
            )
        return whole

    def local(self, index: slice) -> slice:
        """Return the slice of the local data that is a part of the whole array."""
        if self._is_whole or index.start is None:
            return index
        at = self._place[index.start // self._part] * self._part
        return slice(at, at + self._part)


def _parts_by_process(where: Any, ndim: int, d: int) -> dict[int, set[int]]:
    """Return the parts along a dimension that each process holds."""
    counts = named_sharding.shard_counts(where, ndim)
    parts_of: dict[int, set[int]] = {}
    for device, index in where.devices_indices_map(counts).items():
        parts_of.setdefault(device.process_index, set()).add(index[d].start or 0)
    return parts_of
