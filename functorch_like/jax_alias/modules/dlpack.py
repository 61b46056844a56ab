"""`jax.dlpack`."""

from __future__ import annotations

from typing import Any

import functorch_like as ft


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Any:
    """Return an array of another library as one of this package."""
    return ft.numpy.from_dlpack(external_array)


def is_supported_dtype(dtype: Any) -> bool:
    """Return True for dtypes that DLPack can exchange."""
    return ft.numpy.dtype(dtype).kind in "biufcV"
