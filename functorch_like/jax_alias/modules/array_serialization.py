"""`jax.experimental.array_serialization.serialization`: arrays of several devices in files, by tensorstore."""

from __future__ import annotations

import abc
import asyncio
import importlib
import os
import re
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np

import functorch_like as ft
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.multihost_utils import sync_global_devices

__all__ = [
    "AsyncManager", "GlobalAsyncCheckpointManager", "GlobalAsyncCheckpointManagerBase", "async_deserialize",
    "async_serialize", "get_tensorstore_spec", "run_deserialization", "run_serialization",
]  # fmt: skip


def get_tensorstore_spec(
    ckpt_path: str | os.PathLike[str], *, ocdbt: bool = False, process_idx: int | None = None, arr: Any = None,
    driver: str = "zarr",
) -> dict[str, Any]:  # fmt: skip
    """Return the description of an array in a folder, as tensorstore takes it.

    Args:
        ckpt_path: folder of the array, or its address that begins with "gs://" or "s3://".
        ocdbt: True to keep the arrays of the folder above in one database.
        process_idx: number of a process whose parts get a folder of their own.
        arr: array whose shape and dtype are described; the one that is written, if None.
        driver: "zarr" or "zarr3".

    Raises:
        ArgumentError: for a relative path with `ocdbt`.
    """
    path = re.sub("/+$", "", os.fspath(ckpt_path))
    if ocdbt and not os.path.isabs(path) and "://" not in path:
        raise ArgumentError(f"the path of an array is {path!r}, which is relative", fix="give an absolute path")
    above, name = os.path.split(path)
    if process_idx is not None:
        above = f"{above}/process_{process_idx}"
    store = {"driver": "ocdbt", "base": _store(above), "path": name} if ocdbt else _store(os.path.join(above, name))
    return {"driver": driver, "kvstore": store} | ({} if arr is None else _described(arr, driver))


def _store(path: str) -> dict[str, Any]:
    """Return the place of a path: a folder, or a bucket of a service."""
    if remote := re.match("(gs|s3)://([^/]+)/?(.*)", path):
        service = {"gs": "gcs", "s3": "s3"}[remote[1]]
        return {"driver": service, "bucket": remote[2], "path": remote[3]}
    return {"driver": "file", "path": path}


def _described(x: Any, driver: str) -> dict[str, Any]:
    """Return shape, dtype and chunks of an array, which are the parts of the devices."""
    chunk = [max(n, 1) for n in x.sharding.shard_shape(x.shape)]
    if driver == "zarr3":
        grid = {"name": "regular", "configuration": {"chunk_shape": chunk}}
        return {"metadata": {"shape": list(x.shape), "chunk_grid": grid, "data_type": x.dtype.name}}
    return {"dtype": x.dtype.name, "metadata": {"shape": list(x.shape), "chunks": chunk}}


async def _written(x: Any, spec: Any, replica_id: int, transaction: Any) -> list[Any]:
    """Give the parts of an array to tensorstore, which copies them; return the writes to wait for."""
    tensorstore: Any = importlib.import_module("tensorstore")
    x = ft.numpy.asarray(x)
    spec = dict(spec) if isinstance(spec, dict) else spec.to_json()
    if "metadata" not in spec:
        spec |= _described(x, spec["driver"])
    store = await tensorstore.open(tensorstore.Spec(spec), create=True, open=True, transaction=transaction)
    parts = [s for s in x.addressable_shards if s.replica_id == replica_id]
    writes = [store[part.index].write(np.asarray(part.data)) for part in parts]
    for write in writes:
        await write.copy
    return writes


async def async_serialize(
    arr_inp: Any, tensorstore_spec: Any, commit_future: list[Any] | None = None, context: Any = None,
    chunk_layout: Any = None, primary_host: int | None = None, replica_id: int = 0, transaction: Any = None,
) -> None:  # fmt: skip
    """Write the parts of an array that this process has.

    Args:
        arr_inp: the array.
        tensorstore_spec: where it goes; see `get_tensorstore_spec`.
        commit_future: list that takes the writes, which are then not waited for.
        context: has no effect.
        chunk_layout: has no effect; a chunk is the part of a device.
        primary_host: has no effect: the processes open the same file.
        replica_id: number of the copy that is written.
        transaction: transaction of tensorstore.
    """
    writes = await _written(arr_inp, tensorstore_spec, replica_id, transaction)
    if commit_future is not None:
        commit_future.extend(writes)
    else:
        for write in writes:
            await write.commit


async def async_deserialize(
    in_type: Any, tensorstore_spec: Any, global_shape: Sequence[int] | None = None, dtype: Any = None,
    byte_limiter: Any = None, context: Any = None, chunk_layout: Any = None, assume_metadata: bool = False,
) -> Any:  # fmt: skip
    """Read an array: each device gets its part.

    Args:
        in_type: sharding of the array, its format, or a `ShapeDtypeStruct` with a sharding.
        tensorstore_spec: where it is; see `get_tensorstore_spec`.
        global_shape: its shape, that of the file if None. What the file lacks is 0, what it has besides is left out.
        dtype: its dtype, that of the file if None.
        byte_limiter: has no effect.
        context: has no effect.
        chunk_layout: has no effect.
        assume_metadata: True to believe the description's shape and dtype.

    Raises:
        ShapeError: for a shape of another rank than the file's.
    """
    tensorstore: Any = importlib.import_module("tensorstore")
    sharding = getattr(in_type, "sharding", in_type)
    global_shape = getattr(in_type, "shape", None) if global_shape is None else global_shape
    dtype = getattr(in_type, "dtype", None) if dtype is None else dtype
    spec = tensorstore.Spec(tensorstore_spec) if isinstance(tensorstore_spec, dict) else tensorstore_spec
    store = await tensorstore.open(spec, open=True, assume_metadata=assume_metadata)
    shape = tuple(store.shape if global_shape is None else global_shape)
    if len(shape) != len(store.shape):
        raise ShapeError(f"an array of shape {store.shape} is read with the shape {shape}", fix="give its rank")
    kind = np.dtype(store.dtype.numpy_dtype if dtype is None else dtype)

    async def read(index: tuple[slice, ...]) -> Any:
        bounds = [s.indices(n)[:2] for s, n in zip(index, shape, strict=True)]
        result = np.zeros([b - a for a, b in bounds], kind)
        stored = tuple(slice(a, max(a, min(b, n))) for (a, b), n in zip(bounds, store.shape, strict=True))
        inside = tuple(slice(0, s.stop - s.start) for s in stored)
        if result[inside].size:
            result[inside] = (await store[stored].read()).astype(kind)
        return result

    indices = {repr(i): i for i in sharding.addressable_devices_indices_map(shape).values()}
    parts = dict(zip(indices, await asyncio.gather(*map(read, indices.values())), strict=True))
    return ft.make_array_from_callback(shape, sharding, lambda index: parts[repr(index)])


def run_serialization(arrays: Any, tensorstore_specs: Any) -> None:
    """Write the arrays of a pytree.

    Args:
        arrays: pytree of arrays.
        tensorstore_specs: their places, a pytree of the same form.
    """
    places = ft.tree.structure(arrays).flatten_up_to(tensorstore_specs)
    _run(async_serialize(x, spec) for x, spec in zip(ft.tree.leaves(arrays), places, strict=True))


def run_deserialization(
    shardings: Sequence[Any], tensorstore_specs: Sequence[Any], global_shapes: Sequence[Any] | None = None,
    dtypes: Sequence[Any] | None = None, concurrent_gb: int = 32,
) -> list[Any]:  # fmt: skip
    """Read arrays.

    Args:
        shardings: that of each array.
        tensorstore_specs: place of each.
        global_shapes: shape of each, or None; see `async_deserialize`.
        dtypes: dtype of each, or None.
        concurrent_gb: has no effect.
    """
    n = len(tensorstore_specs)
    columns = shardings, tensorstore_specs, global_shapes or [None] * n, dtypes or [None] * n
    return _run(async_deserialize(*row) for row in zip(*columns, strict=True))


def _run(tasks: Any) -> list[Any]:
    async def together() -> list[Any]:
        return list(await asyncio.gather(*tasks))

    return asyncio.run(together())


class AsyncManager:
    """Writes that go on behind the program.

    Attributes:
        timeout_secs: time that processes wait for one another.
    """

    def __init__(self, timeout_secs: float = 300) -> None:
        self.timeout_secs = timeout_secs
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._writes: list[Any] = []

    def check_for_errors(self) -> None:
        """Raise the exception of a write that failed."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def wait_until_finished(self) -> None:
        """Wait for the writes, and raise their exception if one failed."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.check_for_errors()

    def _add_futures(self, futures: Sequence[Any]) -> None:
        self._writes = list(futures)

    def _start_async_commit(self, on_commit_callback: Callable[[], None] | None) -> None:
        writes, self._writes = self._writes, []

        def commit() -> None:
            try:
                for write in writes:
                    write.result()
                if ft.process_count() > 1:
                    sync_global_devices("array_serialization", timeout=self.timeout_secs)
                if on_commit_callback is not None and ft.process_index() == 0:
                    on_commit_callback()
            except BaseException as error:  # the next call of the main thread raises it
                self._error = error

        self._thread = threading.Thread(target=commit)
        self._thread.start()
        if ft.process_count() > 1:  # devices are waited for in the order of the program
            self.wait_until_finished()


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """Interface of managers that write checkpoints of arrays while the program goes on."""

    @abc.abstractmethod
    def check_for_errors(self) -> None:
        """Raise the error of a write, if there was one, without waiting."""

    @abc.abstractmethod
    def wait_until_finished(self) -> None:
        """Wait for the writes that have started."""

    @abc.abstractmethod
    def serialize(
        self, arrays: Sequence[Any], tensorstore_specs: Sequence[Any], *, on_commit_callback: Callable[[], None]
    ) -> None:
        """Start to write arrays, and call a function after the last one."""

    @abc.abstractmethod
    def deserialize(
        self,
        shardings: Sequence[Any],
        tensorstore_specs: Sequence[Any],
        global_shapes: Sequence[Any] | None = None,
        dtypes: Sequence[Any] | None = None,
    ) -> Sequence[Any]:
        """Read arrays, and place them as the shardings say."""


class GlobalAsyncCheckpointManager(AsyncManager, GlobalAsyncCheckpointManagerBase):
    """Arrays of several devices, which are copied and written while the program goes on."""

    def serialize(
        self, arrays: Sequence[Any], tensorstore_specs: Sequence[Any], *,
        on_commit_callback: Callable[[], None] | None = None, transaction: Any = None,
    ) -> None:  # fmt: skip
        """Begin to write arrays, after those of the call before.

        Args:
            arrays: the arrays, which may be donated or deleted after the call.
            tensorstore_specs: their places.
            on_commit_callback: called by process 0 once all are written.
            transaction: transaction of tensorstore.
        """
        self.wait_until_finished()
        writes: list[Any] = []
        tasks: list[Awaitable[None]] = [
            async_serialize(x, spec, commit_future=writes, transaction=transaction)
            for x, spec in zip(arrays, tensorstore_specs, strict=True)
        ]
        _run(tasks)
        self._add_futures(writes)
        self._start_async_commit(on_commit_callback)

    def serialize_with_paths(self, arrays: Sequence[Any], paths: Sequence[str], **options: Any) -> None:
        """Begin to write arrays to folders; see `serialize`."""
        self.serialize(arrays, [get_tensorstore_spec(p) for p in paths], **options)

    def deserialize(
        self, shardings: Sequence[Any], tensorstore_specs: Sequence[Any], global_shapes: Sequence[Any] | None = None,
        dtypes: Sequence[Any] | None = None, concurrent_gb: int = 32,
    ) -> list[Any]:  # fmt: skip
        """Read arrays, after the writes of the last call; see `run_deserialization`."""
        self.wait_until_finished()
        return run_deserialization(shardings, tensorstore_specs, global_shapes, dtypes)

    def deserialize_with_paths(self, shardings: Sequence[Any], paths: Sequence[str], *args: Any, **options: Any) -> Any:
        """Read arrays of folders; see `run_deserialization`."""
        return self.deserialize(shardings, [get_tensorstore_spec(p) for p in paths], *args, **options)
