"""Arrays to and from other libraries by DLPack, without a copy where the other side can read where they lie."""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like.backends.xla import arrays
from functorch_like.backends.xla.jaxlib_api import ArrayImpl, _jax
from functorch_like.errors import DeviceError, DtypeError

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
        stream: of the consumer, on GPUs.
        max_version: the consumer's; only asked for by newer ones.
        dl_device: where the consumer wants it: where it is, or the host.
        copy: True copies first.

    Raises:
        DeviceError: where it is wanted on a device that it is not on.
        DtypeError: for dtypes that DLPack does not have.
    """
    arrays.block_until_ready(self)
    if dl_device is not None and tuple(dl_device) != dlpack_device(self):
        if next(iter(dl_device)) != _CPU or copy is False:
            raise DeviceError(
                f"an array on {arrays.device_of(self)} is wanted on {dl_device}", fix="move it with ft.device_put"
            )
        return np.array(arrays.to_numpy(self)).__dlpack__()
    if copy:
        return np.array(arrays.to_numpy(self)).__dlpack__()
    try:
        return _jax.buffer_to_dlpack_managed_tensor(self, stream=stream)
    except Exception as error:
        raise DtypeError(f"DLPack does not take {self.aval!r}: {error}", fix="convert it with astype") from error


def from_dlpack(x: Any, *, copy: bool | None = None) -> Any:
    """An array from any object with `__dlpack__`; a copy of what the other library holds.

    Raises:
        DeviceError: for memory of a device of another kind.
    """
    if type(x) is ArrayImpl:
        return x
    kind, _ = x.__dlpack_device__()
    if kind != _CPU:
        raise DeviceError(f"memory of DLPack device type {kind} cannot be taken over", fix="move it to the host first")
    host = np.from_dlpack(x)
    return arrays.device_put(host)
