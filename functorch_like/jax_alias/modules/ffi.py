"""`jax.ffi`: kernels of XLA's typed FFI, the only interface that this package calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functorch_like import ffi
from functorch_like.backends.xla import foreign
from functorch_like.errors import UnsupportedError

__all__ = [
    "ffi_call", "register_ffi_target", "register_ffi_target_as_batch_partitionable", "register_ffi_type",
    "register_ffi_type_id",
]  # fmt: skip

#: Names of `ffi_lowering.py`, which brings MLIR with it.
_LATE = ("build_ffi_lowering_function", "ffi_lowering")


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(name)
    from functorch_like.jax_alias.modules import ffi_lowering

    return getattr(ffi_lowering, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})


def register_ffi_target(name: str, fn: Any, platform: str = "cpu", api_version: int = 1) -> None:
    """Register a kernel under a name.

    Args:
        name: the name.
        fn: the handler, a PyCapsule or a function of a library loaded with ctypes; for the typed FFI also a dictionary
            of handlers by stage ("instantiate", "prepare", "initialize", "execute").
        platform: "cpu", "cuda" or "gpu".
        api_version: 1 for the typed FFI, 0 for the older interface of custom calls. Lowering rules call kernels of
            both, `ffi_call` those of the typed FFI.

    Raises:
        ArgumentError: for an object that is no handler, a name that another kernel has, or an unknown stage.
        UnsupportedError: for another `api_version`.
    """
    if api_version not in (0, 1):
        raise UnsupportedError(
            f"register_ffi_target: {name!r} has api_version={api_version}, which is not known",
            fix="write it for the typed FFI, by XLA_FFI_DEFINE_HANDLER_SYMBOL, and register it with api_version=1",
        )
    foreign.register(name, fn, _platform(platform), typed=api_version == 1)


def register_ffi_type(name: str, type_registration: Any, platform: str = "cpu") -> None:
    """Register a type of the typed FFI, such as the state of a kernel.

    Args:
        name: name of the type.
        type_registration: dictionary of PyCapsules, by "type_id" and "type_info".
        platform: "cpu", "cuda" or "gpu".

    Raises:
        ArgumentError: for anything but PyCapsules.
    """
    foreign.register_type(name, type_registration, _platform(platform))


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """Register the identity of a type of the typed FFI.

    Args:
        name: name of the type.
        obj: PyCapsule of a pointer to the identity.
        platform: "cpu", "cuda" or "gpu".

    Raises:
        ArgumentError: for anything but a PyCapsule.
    """
    foreign.register_type(name, {"type_id": obj}, _platform(platform))


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Let XLA split calls of a kernel over a mesh along leading dimensions, a call for each part."""
    foreign.split_along_batches(name)


def _platform(platform: str) -> str:
    return "gpu" if platform.lower() == "cuda" else platform


def ffi_call(
    target_name: str, result_shape_dtypes: Any, *, custom_call_api_version: int = 4, **options: Any
) -> Callable[..., Any]:
    """Call `ft.ffi.ffi_call`; `custom_call_api_version` must be that of the typed FFI."""
    if custom_call_api_version != 4:
        raise UnsupportedError(
            f"ffi_call: {target_name!r} has custom_call_api_version={custom_call_api_version}, an older interface",
            fix="use a kernel of the typed FFI, with custom_call_api_version=4",
        )
    return ffi.ffi_call(target_name, result_shape_dtypes, **options)
