"""The sharding of an array on one device: jaxlib's class, given the methods C++ calls on it."""

from __future__ import annotations

from typing import Any

from functorch_like.backends.xla.jaxlib_api import _jax, xc
from functorch_like.errors import UnsupportedError

OneDevice = _jax.SingleDeviceSharding
REPLICATED = xc.HloSharding.replicate()
# jaxlib leaves these to Python; a setattr on the C++ class works and costs nothing per call.
for _class in (_jax.SingleDeviceSharding, _jax.NamedSharding, _jax.GSPMDSharding):
    _class.memory_kind = property(lambda self: self._memory_kind)
_jax.SingleDeviceSharding._to_xla_hlo_sharding = lambda self, ndim: REPLICATED

_singles: dict[Any, Any] = {}
_lists: dict[Any, Any] = {}


def single(device: Any) -> Any:
    """The sharding "all of it on `device`". One object per device, so that comparing is by identity."""
    found = _singles.get(device)
    if found is None:
        found = _singles.setdefault(device, _jax.SingleDeviceSharding(device, None))
    return found


def device_list(device: Any) -> Any:
    """jaxlib's list of one device, made once; or that of a mesh."""
    if not isinstance(device, xc.Device):
        return device._internal_device_list
    found = _lists.get(device)
    if found is None:
        found = _lists.setdefault(device, xc.DeviceList((device,)))
    return found


def check_usual_memory(where: Any) -> None:
    """Refuse a SingleDeviceSharding in other memory than the device's usual one.

    Raises:
        UnsupportedError: with the sharding to use instead.
    """
    kind = where._memory_kind
    if kind is not None and kind != where._device.default_memory().kind:
        raise UnsupportedError(
            f"arrays on one device without a mesh are in its usual memory, and {kind!r} was asked for",
            fix=f"NamedSharding(ft.make_mesh((1,), ('x',), devices=[device]), PartitionSpec(), memory_kind={kind!r})",
        )
