"""`jax.debug`: functions that show shardings."""

from __future__ import annotations

from typing import Any

from functorch_like import debug
from functorch_like.debug import inspect_array_sharding
from functorch_like.jax_alias.modules.callbacks import debug_callback as callback
from functorch_like.jax_alias.modules.programs import DebugEffect, OrderedDebugEffect

__all__ = [
    "DebugEffect",
    "OrderedDebugEffect",
    "callback",
    "inspect_array_sharding",
    "visualize_array_sharding",
    "visualize_sharding",
]


def visualize_array_sharding(arr: Any, **options: Any) -> None:
    """Call `ft.debug.visualize_array_sharding`; options of the picture have no effect."""
    debug.visualize_array_sharding(arr)


def visualize_sharding(shape: Any, sharding: Any, **options: Any) -> None:
    """Call `ft.debug.visualize_sharding`; options of the picture have no effect."""
    debug.visualize_sharding(shape, sharding)
