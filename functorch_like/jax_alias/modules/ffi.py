"""`jax.ffi`: kernels of XLA's typed FFI, the only interface that this package calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functorch_like import ffi
from functorch_like.errors import UnsupportedError

__all__ = ["ffi_call", "register_ffi_target"]


def register_ffi_target(name: str, fn: Any, platform: str = "cpu", api_version: int = 1) -> None:
    """Call `ft.ffi.register_ffi_target`; `api_version` must be that of the typed FFI."""
    if api_version != 1:
        raise UnsupportedError(
            f"register_ffi_target: {name!r} has api_version={api_version}, an older interface of custom calls",
            fix="write it for the typed FFI, by XLA_FFI_DEFINE_HANDLER_SYMBOL, and register it with api_version=1",
        )
    ffi.register_ffi_target(name, fn, "gpu" if platform.lower() == "cuda" else platform)


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
