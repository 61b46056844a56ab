"""The CUDA client, from the same plugin wheels jax uses, without their Python entry point, which imports jax.

It was run with jaxlib 0.11.2 and CUDA 13 on an H200; the flow is that of the plugin's own `__init__`.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from functorch_like.backends.xla import processes
from functorch_like.backends.xla.jaxlib_api import _jax, xc
from functorch_like.errors import DeviceError

_PLUGINS = ("xla_cuda13", "xla_cuda12")
# Loaded by path beforehand, because the plugin names them without one. In the order of their dependencies.
_LIBRARIES: dict[str, tuple[str, ...]] = {
    "cu13": (
        "libcudart.so.13",
        "libnvrtc.so.13",
        "libnvJitLink.so.13",
        "libcublasLt.so.13",
        "libcublas.so.13",
        "libcupti.so.13",
        "libcusparse.so.12",
        "libcusolver.so.12",
        "libcufft.so.12",
    ),
    "cuda_runtime": ("libcudart.so.12",),
    "cuda_nvrtc": ("libnvrtc.so.12",),
    "nvjitlink": ("libnvJitLink.so.12",),
    "cublas": ("libcublasLt.so.12", "libcublas.so.12"),
    "cuda_cupti": ("libcupti.so.12",),
    "cusparse": ("libcusparse.so.12",),
    "cusolver": ("libcusolver.so.11",),
    "cufft": ("libcufft.so.11",),
    "nccl": ("libnccl.so.2",),
    "nvshmem": ("libnvshmem_host.so.3",),
    "cudnn": ("libcudnn.so.9",),
}
_KERNELS = ("_solver", "_hybrid", "_linalg", "_prng", "_sparse", "_rnn", "_triton")


_api: list[Any] = []  # the plugin's, once it is loaded
_loaded_libraries: list[Path] = []  # NVIDIA's

_asked_memory: Callable[[], tuple[bool | None, float | None]] = lambda: (None, None)


def on_memory(read: Callable[[], tuple[bool | None, float | None]]) -> None:
    """Set the function that returns whether the client preallocates memory, and what share; None: XLA's default."""
    global _asked_memory
    _asked_memory = read


def find_plugin() -> Path | None:
    """The plugin's shared library, looked for without importing its package."""
    for root in sys.path:
        for name in _PLUGINS:
            library = Path(root or ".") / "jax_plugins" / name / "xla_cuda_plugin.so"
            if library.exists():
                return library
    return None


def _has_device() -> bool:
    """Return True if the driver shows a GPU. Loading the plugin takes 400 MB, so look before."""
    return any(os.path.exists(path) for path in ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg"))


def _preload() -> None:
    for package, names in _LIBRARIES.items():
        try:
            spec = importlib.util.find_spec(f"nvidia.{package}")
        except ModuleNotFoundError:
            continue
        for folder in (spec.submodule_search_locations or []) if spec is not None else []:
            for name in names:
                file = Path(folder) / "lib" / name
                try:
                    ctypes.CDLL(str(file))
                except OSError:
                    continue  # a system-wide CUDA may have it; if none has, making the client raises
                _loaded_libraries.append(file)


def make_client(required: bool = False) -> Any:
    """A client for the GPUs, or None where there is no plugin or no GPU."""
    plugin = find_plugin()
    if plugin is None or not _has_device():
        if required:
            what = "no GPU is visible" if plugin is not None else "the CUDA plugin is not installed"
            raise DeviceError(
                f"a GPU was asked for, but {what}",
                fix="install jax-cuda13-plugin[with-cuda] and jax-cuda13-pjrt as new as jaxlib, or unset FT_PLATFORM",
            )
        return None
    try:
        return _load(plugin)
    except Exception as error:
        if required:
            raise DeviceError(
                f"the CUDA plugin {plugin} does not start: {error}", fix="check driver and versions"
            ) from error
        warnings.warn(f"a GPU is here, but the CUDA plugin does not start, so the CPU is used: {error}", stacklevel=2)
        return None


def load_plugin(plugin: Path) -> Any:
    """Load and initialise the plugin, and register its kernels; returns its PJRT API, the same each time."""
    from jaxlib import _profiler, plugin_support

    _preload()
    if not _api:
        api = xc.load_pjrt_plugin_dynamically("cuda", str(plugin))
        extension = plugin_support.import_from_plugin("cuda", "cuda_plugin_extension")
        if extension is not None:
            xc.register_custom_type_handler("CUDA", functools.partial(extension.register_custom_type, api))
            xc.register_custom_call_handler("CUDA", functools.partial(extension.register_custom_call_target, api))
            for name, value in extension.ffi_types().items():
                xc.register_custom_type(name, value, platform="CUDA")
            for name, value in extension.ffi_handlers().items():
                xc.register_custom_call_target(name, value, platform="CUDA", api_version=1)
        _register_kernels(api, plugin_support)
        _profiler.register_plugin_profiler(api)
        _api.append(api)
    if not xc.pjrt_plugin_initialized("cuda"):
        xc.initialize_pjrt_plugin("cuda")
    return _api[0]


@functools.cache
def identity(device: Any) -> bytes:
    """Return what the programs for a GPU depend on: the card, the plugin, and NVIDIA's libraries.

    A program names algorithms by the numbers that the library it was compiled with gives them.
    """
    plugin = find_plugin()
    files = [*_loaded_libraries, *([] if plugin is None else [plugin])]
    seen = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    card = device.device_kind, device.compute_capability, device.core_count, device.client.platform_version
    return repr((card, seen)).encode()


def _load(plugin: Path) -> Any:
    load_plugin(plugin)
    preallocate, fraction = _asked_memory()
    of_processes, store = processes.gpu_client_options()
    options = {**xc.generate_pjrt_gpu_plugin_options(), **of_processes}
    if preallocate is not None:
        options["preallocate"] = preallocate
    if fraction is not None:
        options["memory_fraction"] = fraction
    return xc.make_c_api_client("cuda", options, store)


def _register_kernels(api: Any, plugin_support: Any) -> None:
    for part in _KERNELS:
        module = plugin_support.import_from_plugin("cuda", part)
        if module is None or not hasattr(module, "registrations"):
            continue
        for name, target in module.registrations().items():
            # These three families hold only typed (FFI) targets, whatever their names end in.
            version = 1 if part in ("_hybrid", "_linalg", "_triton") else int(name.endswith("_ffi"))
            xc.register_custom_call_target(name, target, platform="CUDA", api_version=version)
            if part in ("_solver", "_linalg") and name.endswith("_ffi"):
                _jax.register_custom_call_as_batch_partitionable(name, api)
