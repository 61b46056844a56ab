"""`jax.experimental`."""

from __future__ import annotations

from functorch_like.jax_alias.modules.callbacks import io_callback as io_callback
from functorch_like.jax_alias.modules.callbacks import pure_callback as pure_callback
from functorch_like.jax_alias.modules.configuration import config
from functorch_like.jax_alias.modules.core import primal_dtype_to_tangent_dtype as primal_tangent_dtype
from functorch_like.jax_alias.modules.root import enable_x64 as enable_x64
from functorch_like.transforms.shard_map import shard_map as shard_map

__all__ = ["disable_x64", "enable_x64", "io_callback", "primal_tangent_dtype", "pure_callback", "shard_map"]


def disable_x64() -> object:
    """Return a `with` block in which the default dtypes have 32 bits."""
    return config.enable_x64(False)
