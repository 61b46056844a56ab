"""Arrays: jaxlib's own class, its methods, and conversion from and to NumPy."""

from __future__ import annotations

import copyreg
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.backends.xla import client, counters, sharding
from functorch_like.backends.xla.failures import failure
from functorch_like.backends.xla.jax_import_stubs import stubbed
from functorch_like.backends.xla.jaxlib_api import Array as Array
from functorch_like.backends.xla.jaxlib_api import ArrayImpl, JaxRuntimeError, _jax, xc
from functorch_like.errors import DonatedError, DtypeError

# TRAP: jaxlib's default keeps pointing into NumPy memory that happens to be 64-byte aligned, and 0.10 copies large
# arrays in the background. With this the data has been copied when the call returns.
_COPY_NOW = xc.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
_put = xc.batched_device_put


class SeveralDevices(Protocol):
    """Operations on arrays on several devices; the module that comes with the first mesh provides them."""

    def place(self, x: np.ndarray[Any, Any], where: Any, weak_type: bool) -> Any: ...
    def move(self, x: Any, place: Any, weak_type: bool) -> Any: ...
    def gather(self, x: Any) -> np.ndarray[Any, Any]: ...
    def local_parts(self, x: Any) -> list[Any]: ...
    def values_are_here(self, x: Any) -> bool: ...


_several: SeveralDevices


def on_several_devices(module: SeveralDevices) -> None:
    """Set the module that handles arrays and shardings of several devices."""
    global _several
    _several = module


def set_tracer_class(tracer: type) -> None:
    """Let instances of `tracer` count as `Array` in isinstance. They answer True to `_is_traced_array()`."""
    _jax.set_tracer_class(tracer)


def attach(name: str, attribute: Any) -> None:
    """Give every array a method, property or operator."""
    setattr(ArrayImpl, name, attribute)


def present(attributes: dict[str, Any], doc: str) -> None:
    """Show the attributes of arrays in `help(Array)`, and call both of their classes by the public name."""
    own = {name: vars(ArrayImpl)[name] for name in ("aval", "block_until_ready", "delete", "is_deleted", "is_ready")}
    for name, attribute in (own | attributes).items():
        setattr(Array, name, attribute)
    for kind in (Array, ArrayImpl):
        kind.__module__, kind.__name__, kind.__qualname__, kind.__doc__ = "functorch_like", "Array", "Array", doc


def device_put(x: Any, device: Any = None, *, weak_type: bool = False) -> Any:
    """Return `x` (NumPy array, NumPy scalar or array) as an array: a copy, which later writes to `x` do not change.

    It is committed to `device`, which may be a sharding; without one, it is on the default device and free to move. An
    array that already is there is returned as it is.
    """
    if type(x) is ArrayImpl:
        return _move(x, device, weak_type)
    client.check_not_forked()
    host = np.asarray(x)
    if not host.dtype.isnative:
        host = host.astype(host.dtype.newbyteorder("="))
    if type(device) is sharding.OneDevice:
        if not sharding.is_usual(device):
            return _several.move(device_put(host, device._device, weak_type=weak_type), device, weak_type)
        device = device._device
    elif device is not None and not isinstance(device, client.Device):
        return _several.place(host, device, weak_type)
    where = client.find_device(device)
    aval = ShapedArray(host.shape, host.dtype, weak_type)
    counters.host_to_device += 1
    try:
        return _put(aval, sharding.single(where), [host], [where], device is not None, host_buffer_semantics=_COPY_NOW)
    except (JaxRuntimeError, TypeError, ValueError) as error:
        if "RESOURCE_EXHAUSTED" in str(error):
            raise failure(f"copying {aval!r}", where, error) from error
        if host.dtype.kind in "biufcV" and host.dtype.names is None and host.dtype != np.longdouble:
            raise
        raise DtypeError(
            f"an array cannot hold NumPy dtype {host.dtype}",
            fix="convert to a bool, integer, float or complex dtype of at most 64 bits a part",
        ) from error


def computed(x: np.ndarray[Any, Any], aval: ShapedArray, device: Any, committed: bool) -> Any:
    """Return a result that NumPy has computed instead of XLA as an array; not counted as a transfer."""
    return _put(aval, sharding.single(device), [x], [device], committed, host_buffer_semantics=_COPY_NOW)


def copied(x: np.ndarray[Any, Any], where: Any) -> Any:
    """A NumPy array of native byte order, copied to the device of a sharding."""
    counters.host_to_device += 1
    aval = ShapedArray(x.shape, x.dtype)
    return _put(aval, where, [np.asarray(x)], [where._device], False, host_buffer_semantics=_COPY_NOW)


def copy_on_device(x: Any, device: Any) -> Any:
    """Return a copy of an array on its own device, which it is bound to."""
    aval = ShapedArray(x.shape, x.dtype)
    return _put(aval, sharding.single(device), [x], [device], True, True)


def _move(x: Any, device: Any, weak_type: bool) -> Any:
    check_alive(x)
    aval = x.aval
    if weak_type != aval.weak_type and weak_type:
        aval = aval.update(weak_type=True)
    if device is None or (device == device_of(x) and x._committed and sharding.is_usual(x._sharding)):
        return x if aval is x.aval else _rewrapped(x, aval, x._committed)
    client.check_not_forked()
    where = x._sharding
    if not isinstance(device, client.Device) or type(where) is not sharding.OneDevice or not sharding.is_usual(where):
        return _several.move(x, device, weak_type)
    target = sharding.single(device)
    if device == device_of(x):
        return _rewrapped(x, aval, True)
    counters.device_to_device += 1
    return _put(aval, target, [x], [device], True)


def values_are_here(x: Any) -> bool:
    """Return True unless parts of an array belong to other processes, and none of this one's devices has all of it."""
    return type(x._sharding) is sharding.OneDevice or _several.values_are_here(x)


def _rewrapped(x: Any, aval: ShapedArray, committed: bool) -> Any:
    """Another array on the same buffer."""
    parts = [x]
    if type(x._sharding) is not sharding.OneDevice:
        parts = _several.local_parts(x)
    return ArrayImpl(aval, x._sharding, parts, committed=committed, _skip_checks=True)


def on_device(x: Any, device: Any) -> Any:
    """An array in the usual memory of one device; None where it is on another, or on several.

    It may be on a mesh of that device alone, or in other memory, and is then copied.
    """
    where = x._sharding
    if type(where) is sharding.OneDevice:
        if where._device != device:
            return None
        return x if sharding.is_usual(where) else _several.move(x, device, False)
    return _several.move(x, device, False) if devices_of(x) == {device} else None


def check_alive(x: Any) -> None:
    """Raise DonatedError for an array whose memory is gone."""
    if x.is_deleted():
        raise DonatedError(
            f"the array {x.aval!r} was donated to a computation or deleted, and is used again",
            fix="use the result of that computation instead, copy the array before, or leave out donate_argnums",
        )


def release(values: Iterable[Any]) -> None:
    """Delete the arrays among `values` whose memory was donated.

    C++ gives the use of a donated array a short error and a line on stderr; for a deleted one it calls Python.
    """
    for x in values:
        if type(x) is ArrayImpl and x.is_deleted():
            x.delete()


def is_deleted(x: Any) -> bool:
    """Return True if the array's memory was donated or deleted."""
    return x.is_deleted()


def device_of(x: Any) -> Any:
    """The device an array is on; its sharding, where it is on several."""
    where = x._sharding
    return where._device if type(where) is sharding.OneDevice else where


def devices_of(x: Any) -> set[Any]:
    """The devices that hold an array."""
    where = x._sharding
    return {where._device} if type(where) is sharding.OneDevice else set(where.mesh.devices.flat)


def split_of(x: Any) -> Any:
    """The sharding of an array that is on several devices; None for anything else."""
    return x._sharding if type(x) is ArrayImpl and type(x._sharding) is not sharding.OneDevice else None


_wait = ArrayImpl.block_until_ready


def block_until_ready(self: Any) -> Any:
    """The array, once it is computed.

    Raises:
        OutOfMemoryError, CompileError: where its computation failed after the call that began it.
        DonatedError: where its memory is gone.
    """
    try:
        return _wait(self)
    except RuntimeError as error:
        check_alive(self)
        raise failure(f"the computation of {self.aval!r}", device_of(self), error) from error


# Elsewhere it would only make the method slower.
client.on_late_errors(lambda: attach("block_until_ready", block_until_ready))


def to_numpy(x: Any) -> np.ndarray[Any, Any]:
    """The array's values, read-only; on the CPU a view of its memory. Waits until they are computed."""
    if type(x._sharding) is not sharding.OneDevice:
        block_until_ready(x)
        return _several.gather(x)
    counters.device_to_host += 1
    return read(x)


def read(x: Any) -> np.ndarray[Any, Any]:
    """The values of an array on one device, as `to_numpy` gives them; not counted as a transfer."""
    # Block first: the call below must not wait while the stubs are in place, and must not swallow an error.
    block_until_ready(x)
    if _HAS_DIRECT:
        return x._to_np_array_did_copy()[0]
    try:
        return np.asarray(memoryview(x))  # 0.10: no import of jax on this way, but plain dtypes on the CPU only
    except (BufferError, ValueError, TypeError, NotImplementedError, JaxRuntimeError):
        with stubbed:
            return x._single_device_array_to_np_array_did_copy()[0]


def content(x: Any) -> bytes:
    """Return the bytes of an array on one device."""
    try:
        return bytes(memoryview(x))  # 0.3 us, on CPUs alone
    except BufferError:
        return read(x).tobytes()


_HAS_DIRECT = hasattr(ArrayImpl, "_to_np_array_did_copy")


def _array(self: Any, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
    """NumPy's conversion protocol."""
    # TRAP: without this, np.asarray of a bfloat16 array, or of one whose computation failed, is a rank-0 object array.
    value = to_numpy(self)
    if dtype is not None and value.dtype != np.dtype(dtype):
        if copy is False:
            raise ValueError(f"a {value.dtype} array cannot be seen as {np.dtype(dtype)} without a copy")
        return value.astype(dtype)
    return value.copy() if copy else value


def _restore(value: np.ndarray[Any, Any], weak_type: bool) -> Any:
    """Return the array of pickled values; in a forked process, which cannot make one, the values as NumPy's array.

    TRAP: multiprocessing.Pool restarts a worker for ever whose arguments raise when they are unpickled, and its caller
    waits for ever. So the first operation on the values raises instead, and the caller gets that error.
    """
    return value if client.is_forked() else device_put(value, weak_type=weak_type)


def reduce_array(x: Any) -> tuple[Any, ...]:
    """Return the values and the weak type, for pickle and copy. An array comes back on the default device."""
    return _restore, (to_numpy(x), x.aval.weak_type)


# Classes with a metaclass are pickled by it; the names are those that `present` gives.
copyreg.pickle(type(Array), lambda cls: cls.__qualname__)  # type: ignore[arg-type]
attach("__array__", _array)
# C++ moves an array to a device of another platform by this: as NumPy's, over the host.
attach("_value", property(to_numpy))
attach("__reduce__", reduce_array)
