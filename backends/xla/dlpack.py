"""Arrays to and from other libraries by DLPack, without a copy where the other library can read their memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like.backends.xla import arrays, client
from functorch_like.backends.xla.jaxlib_api import ArrayImpl, JaxRuntimeError, _jax
from functorch_like.errors import ExchangeError, ProtocolError

_CPU, _CUDA = 1, 2  # DLDeviceType


def dlpack_device(x: Any) -> tuple[int, int]:
    """Kind and number of the device an array is on, in DLPack's terms."""
    device = arrays.device_of(x)
    return (_CPU, 0) if device.platform == "cpu" else (_CUDA, device.local_hardware_id)


def to_dlpack(
    self: Any,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: Any = None,
    copy: bool | None = None,
) -> Any:
    """A DLPack capsule of an array.

    Args:
        self: the array.
        stream: stream of the consumer, on GPUs.
        max_version: the consumer's; only newer ones pass it.
        dl_device: the device on which the consumer requests it: the array's own, or the host.
        copy: True copies first.

    Raises:
        ExchangeError: for a request on another device, an array that is split over several devices, or a dtype that
            DLPack does not have.
    """
    split = arrays.split_of(self)
    # TRAP: C++ hands out the part of the first device as if it were all.
    if split is not None and not split.is_fully_replicated:
        raise ExchangeError(
            f"{self.aval!r} is split over {split.mesh!r}, and DLPack takes memory of one device",
            fix="put it on one: ft.device_put(x, device); or pass a part: x.addressable_shards[0].data",
        )
    arrays.block_until_ready(self)
    if dl_device is not None and tuple(dl_device) != dlpack_device(self):
        if next(iter(dl_device)) != _CPU or copy is False:
            raise ExchangeError(
                f"an array on {arrays.device_of(self)} is requested on {dl_device}", fix="move it with ft.device_put"
            )
        return np.array(arrays.to_numpy(self)).__dlpack__()
    if copy:
        return np.array(arrays.to_numpy(self)).__dlpack__()
    try:
        return _jax.buffer_to_dlpack_managed_tensor(self, stream=stream)
    except Exception as error:
        raise ExchangeError(f"DLPack does not take {self.aval!r}: {error}", fix="convert it with astype") from error


def from_dlpack(x: Any, *, device: Any = None, copy: bool | None = None) -> Any:
    """An array from any object with `__dlpack__`.

    An array of this package is copied only if `device` or `copy` requires it. An array of another library is always
    copied, since that library may write to it later, and arrays of this package never change.

    Args:
        x: object with `__dlpack__` and `__dlpack_device__`.
        device: the device for the array; by default that of x.
        copy: True copies in any case; False demands that nothing is copied.

    Raises:
        ExchangeError: for `copy=False` where there is no way without a copy, and for memory that cannot be read.
        ProtocolError: for objects without DLPack.
    """
    if not hasattr(type(x), "__dlpack__") or not hasattr(type(x), "__dlpack_device__"):
        raise ProtocolError(
            f"{x!r:.60} of type {type(x).__name__} has no __dlpack__",
            fix="pass an array of a library with DLPack, or use fnp.asarray for numbers, lists and NumPy arrays",
        )
    where = None if device is None else client.find_device(device)
    if type(x) is ArrayImpl:
        if copy is False and where is not None and where != arrays.device_of(x):
            raise ExchangeError(f"an array cannot move to {where} without a copy", fix="leave copy out")
        return arrays.device_put(np.array(arrays.to_numpy(x)) if copy else x, where)
    kind, number = x.__dlpack_device__()
    if copy is False:
        raise ExchangeError(
            f"memory of a {type(x).__name__} can be written to, and is taken over by a copy only", fix="leave copy out"
        )
    if kind == _CPU:
        return arrays.device_put(_host(x, {}), where)
    gpu = _gpu(number) if kind == _CUDA and (where is None or where.platform != "cpu") else None
    if gpu is not None:
        made = _copied_on_gpu(x, gpu)
        return made if where is None else arrays.device_put(made, where)
    if where is None or where.platform != "cpu":
        why = f"memory of DLPack device type {kind} cannot be taken over"
        raise ExchangeError(why, fix="pass device='cpu', or move it to the host first")
    return arrays.device_put(_host(x, {"max_version": (1, 0), "dl_device": (_CPU, 0)}), where)


def is_on_gpu(x: Any) -> bool:
    """Return True for a tensor of another library in the memory of one of NVIDIA's GPUs."""
    return hasattr(type(x), "__dlpack__") and x.__dlpack_device__()[0] == _CUDA


def _gpu(number: int) -> Any:
    """Return the GPU with NVIDIA's number, or None if this process has no such device."""
    if client.default_backend() == "cpu":
        return None
    return next((gpu for gpu in client.local_devices() if gpu.local_hardware_id == number), None)


def _copied_on_gpu(x: Any, gpu: Any) -> Any:
    """Return a copy of another library's tensor on its GPU, finished before that library may write to it again."""
    stream = gpu.get_stream_for_external_ready_events()
    try:
        shared = _jax.dlpack_managed_tensor_to_buffer(x.__dlpack__(stream=stream), gpu, stream)
    except (BufferError, JaxRuntimeError, RuntimeError, TypeError) as error:
        raise ExchangeError(f"a {type(x).__name__} cannot be read by DLPack: {error}", fix="convert it") from error
    if str(shared._pjrt_layout) != _by_rows(shared.ndim):  # programs take the memory of arguments to be row-major
        return arrays.device_put(np.ascontiguousarray(arrays.read(shared)), gpu)
    return arrays.block_until_ready(arrays.copy_on_device(shared, gpu))


def _by_rows(ndim: int) -> str:
    return "{" + ",".join(map(str, reversed(range(ndim)))) + "}"


class _Capsule:
    """The producer's tensor on the host, for NumPy, which has its own protocol."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU, 0


def _host(x: Any, options: dict[str, Any]) -> np.ndarray[Any, Any]:
    """A NumPy array of a tensor. XLA reads what NumPy has no dtype for."""
    try:
        return np.from_dlpack(_Capsule(x.__dlpack__(**options)) if options else x)
    except (BufferError, RuntimeError, TypeError) as error:
        try:
            cpu = client.find_device("cpu")
            return np.array(arrays.to_numpy(_jax.dlpack_managed_tensor_to_buffer(x.__dlpack__(**options), cpu, None)))
        except Exception:
            raise ExchangeError(f"a {type(x).__name__} cannot be read by DLPack: {error}", fix="convert it") from error
