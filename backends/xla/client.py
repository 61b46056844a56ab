"""Clients and devices, started at first use.

Environment variables, read at the first use of a device:
    FT_PLATFORM     "cpu" or "gpu": use this platform alone. Unset: a GPU if there is one, and the CPU.
    FT_CPU_ASYNC    "1": compiled calls on the CPU return before they have finished. Off by default: a NumPy array
                    passed in is not copied, so with it on, C++ may not be handed NumPy arrays directly (`dispatch.py`).
    FT_CPU_DEVICES  how many devices the CPU shows itself as. 1 by default.
"""

from __future__ import annotations

import copyreg
import os
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from functorch_like import interrupts
from functorch_like.backends.xla import configuration, cuda, jax_import_stubs, memory, processes
from functorch_like.backends.xla.jaxlib_api import xc
from functorch_like.errors import DeviceError, FtError

CPU_ASYNC: bool = configuration.switched_on("FT_CPU_ASYNC")

if TYPE_CHECKING:
    from functorch_like.arrays.array_type import Device as Device
else:
    Device = xc.Device

#: The device that is the default one instead of the first; None for that.
chosen = configuration.config("default_device", None, in_trace_key=False)

_lock = threading.RLock()
_clients: dict[str, Any] = {}  # by platform, the default one first; filled at once
_default: Any = None


def _start() -> dict[str, Any]:
    """The clients, started if they were not."""
    global _clients, _default
    if _clients:
        return _clients
    with interrupts.held, _lock:
        if _clients:
            return _clients
        platform = os.environ.get("FT_PLATFORM", "").lower()
        if platform not in ("", "cpu", "gpu", "cuda"):
            raise DeviceError(
                f"FT_PLATFORM={platform!r} is not a platform", fix='set FT_PLATFORM to "cpu" or "gpu", or unset it'
            )
        made: dict[str, Any] = {}
        if platform != "cpu":
            gpu = cuda.make_client(required=platform in ("gpu", "cuda"))
            if gpu is not None:
                made["gpu"] = gpu
        if platform in ("", "cpu"):
            memory.keep_freed(_asked_memory())
            with _sized():
                of_processes = processes.cpu_client_options()
                made["cpu"] = xc.make_cpu_client(asynchronous=CPU_ASYNC, num_devices=_cpu_devices(), **of_processes)
        for client in made.values():
            jax_import_stubs.prime(client.local_devices()[0])
            break  # C++ keeps the answers once per process
        if "gpu" in made or CPU_ASYNC:
            _expect_late_errors()
        _default = next(iter(made.values())).local_devices()[0]
        _clients = made
    return _clients


_asked_threads: Callable[[], int] = lambda: 0
_asked_memory: Callable[[], int | None] = lambda: None
_expect_late_errors: Callable[[], None] = lambda: None


def on_late_errors(prepare: Callable[[], None]) -> None:
    """Set the function that is called once, where computations may fail after the calls that began them."""
    global _expect_late_errors
    _expect_late_errors = prepare


def on_threads(read: Callable[[], int]) -> None:
    """Set the function that returns the number of threads of the CPU's client; 0 means all that the process may use."""
    global _asked_threads
    _asked_threads = read


def on_kept_memory(read: Callable[[], int | None]) -> None:
    """Set the function that returns how many bytes of freed memory are kept, as `memory.keep_freed` takes them."""
    global _asked_memory
    _asked_memory = read


def started() -> bool:
    """Return True if a device was used, so that the options of clients are settled."""
    return bool(_clients)


@contextmanager
def _sized() -> Generator[None]:
    """Give XLA's thread pools the size that is set, within the block, by NPROC, a variable meant for containers."""
    before, threads = os.environ.get("NPROC"), _asked_threads()
    if not threads:
        yield
        return
    os.environ["NPROC"] = str(threads)
    try:
        yield
    finally:
        del os.environ["NPROC"]
        if before is not None:
            os.environ["NPROC"] = before


def _cpu_devices() -> int | None:
    text = os.environ.get("FT_CPU_DEVICES", "")
    if not text:
        return None  # then XLA_FLAGS decides
    if not text.isdecimal() or int(text) < 1:
        raise DeviceError(f"FT_CPU_DEVICES={text!r} is not a positive number", fix="set it to 1, 2, ... or unset it")
    return int(text)


def _platform(name: str) -> str:
    return "gpu" if name in ("cuda", "gpu") else name


def devices(backend: str | None = None) -> list[Any]:
    """All devices of a platform; of the default one if None."""
    clients = _start()
    if backend is None:
        return list(next(iter(clients.values())).devices())
    client = clients.get(_platform(backend.lower()))
    if client is None:
        raise DeviceError(f"Unknown backend: there is no platform {backend!r} here", fix=f"use one of: {_names()}")
    return list(client.devices())


def local_devices(backend: str | None = None) -> list[Any]:
    """The devices of a platform that belong to this process."""
    here = [device for device in devices(backend) if device.process_index == device.client.process_index()]
    return here


def default_backend() -> str:
    """The platform computations run on by default: "gpu" where there is one."""
    return next(iter(_start()))


def default_device() -> Any:
    """The device that was chosen, else the first of the default platform."""
    if chosen.value is not None:
        return chosen.value
    if _default is None:
        _start()
    return _default


def live_modules() -> Iterator[Any]:
    """The optimised HLO modules of all programs that are loaded."""
    for started in _start().values():
        for program in started.live_executables():
            yield from program.hlo_modules()


def live_arrays() -> list[Any]:
    """All arrays that have memory on a device."""
    return [array for started in _start().values() for array in started.live_arrays()]


def find_device(spec: Any = None) -> Any:
    """Return the device named "cpu", "gpu" or "cpu:1"; the default one for None; a device or sharding as it is."""
    if spec is None:
        return default_device()
    if isinstance(spec, xc.Device):
        if spec.process_index != spec.client.process_index():
            raise DeviceError(
                f"{spec} belongs to process {spec.process_index}, and this is process {spec.client.process_index()}",
                fix="use one of ft.local_devices(), or a sharding over the devices of all processes",
            )
        return spec
    if isinstance(spec, xc.Sharding):
        return spec
    if not isinstance(spec, str):
        raise DeviceError(f"{spec!r} of type {type(spec).__name__} is not a device", fix=f"use one of: {_names()}")
    name, _, index = spec.lower().partition(":")
    client = _start().get(_platform(name))
    if client is not None:
        devices = client.local_devices()
        if not index:
            return devices[0]
        if index.isdecimal() and int(index) < len(devices):
            return devices[int(index)]
    raise DeviceError(f"there is no device {spec!r} here", fix=f"use one of: {_names()}")


def _reduce_device(device: Any) -> tuple[Any, ...]:
    return find_device, (f"{device.platform}:{device.client.local_devices().index(device)}",)


copyreg.pickle(xc.Device, _reduce_device)
_attribute_of: Any = getattr(xc.Device, "__getattr__", None)


def _attribute(device: Any, name: str) -> Any:
    """Return an attribute that C++ looks up; its error has no text."""
    try:
        return _attribute_of(device, name)
    except AttributeError:
        remedy = "; use device.platform" if name == "type" else "; use device.id" if name == "index" else ""
        raise AttributeError(f"a device has no attribute {name!r}{remedy}", name=name) from None


if _attribute_of is not None:
    setattr(xc.Device, "__getattr__", _attribute)  # noqa: B010 - type checkers do not know it


def _names() -> str:
    return ", ".join(f'"{name}:{i}"' for name, client in _start().items() for i in range(len(client.local_devices())))


# TRAP: a fork copies none of XLA's threads, so a computation in the child would wait for ever. The setting is in the
# key of jit: every compiled function of the child misses, comes back to Python, and `check_not_forked` refuses it.
def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()
    jax_import_stubs.stubbed.renew()
    if _clients:
        configuration.forked.set_global(True)


def is_forked() -> bool:
    """Return True in the child of a fork of a process that had already started XLA."""
    return bool(configuration.forked.value)


def check_not_forked() -> None:
    """Raise where `is_forked()`."""
    if is_forked():
        raise FtError(
            "this process was forked from one that had already started XLA, whose threads did not come along",
            fix="start workers with multiprocessing.get_context('spawn'), or fork before the first array is made",
        )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
