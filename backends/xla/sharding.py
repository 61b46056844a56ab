"""The sharding of an array on one device: jaxlib's class, given the methods C++ calls on it."""

from __future__ import annotations

from typing import Any

from functorch_like.backends.xla.jaxlib_api import _jax, xc

OneDevice = _jax.SingleDeviceSharding
REPLICATED = xc.HloSharding.replicate()
# jaxlib leaves these to Python; a setattr on the C++ class works and costs nothing per call.
for _class in (_jax.SingleDeviceSharding, _jax.NamedSharding, _jax.GSPMDSharding):
    _class.memory_kind = property(lambda self: self._memory_kind)
_jax.SingleDeviceSharding._to_xla_hlo_sharding = lambda self, ndim: REPLICATED

_singles: dict[Any, Any] = {}
_in_other_memory: dict[Any, Any] = {}
_lists: dict[Any, Any] = {}


def single(device: Any) -> Any:
    """The sharding "all of it on `device`". One object per device, so that comparing is by identity."""
    result = _singles.get(device)
    if result is None:
        result = _singles.setdefault(device, _jax.SingleDeviceSharding(device, None))
    return result


def single_in(device: Any, kind: str | None) -> Any:
    """The sharding of arrays on one device, in its memory of a kind: one object for each."""
    if kind in (None, device.default_memory().kind):
        return single(device)
    result = _in_other_memory.get((device, kind))
    if result is None:
        made = _jax.SingleDeviceSharding(device, memory_kind=kind)
        result = _in_other_memory.setdefault((device, kind), made)
    return result


def device_list(device: Any) -> Any:
    """jaxlib's list of one device, made once; or that of a mesh."""
    if not isinstance(device, xc.Device):
        return device._internal_device_list
    result = _lists.get(device)
    if result is None:
        result = _lists.setdefault(device, xc.DeviceList((device,)))
    return result


def is_usual(where: Any) -> bool:
    """Return True unless a sharding is in other memory of one device than the usual one."""
    return type(where) is not OneDevice or where is single(where._device)
