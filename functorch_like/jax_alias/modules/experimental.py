"""`jax.experimental`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functorch_like.jax_alias.modules.callbacks import io_callback as io_callback
from functorch_like.jax_alias.modules.callbacks import pure_callback as pure_callback
from functorch_like.jax_alias.modules.configuration import config
from functorch_like.jax_alias.modules.core import primal_dtype_to_tangent_dtype as primal_tangent_dtype
from functorch_like.jax_alias.modules.hi_mutable import current_state as cur_qdd
from functorch_like.jax_alias.modules.root import enable_x64 as enable_x64
from functorch_like.transforms.shard_map import shard_map as _shard_map

__all__ = ["cur_qdd", "disable_x64", "enable_x64", "io_callback", "primal_tangent_dtype", "pure_callback", "shard_map"]


def shard_map(
    f: Callable[..., Any], mesh: Any, in_specs: Any, out_specs: Any, check_rep: bool = True, auto: Any = frozenset()
) -> Callable[..., Any]:
    """Call `ft.shard_map` with the parameters of the earlier function.

    Args:
        f, mesh, in_specs, out_specs: as for `ft.shard_map`.
        check_rep: its `check_vma`.
        auto: axes of the mesh that the function does not name, which XLA splits.
    """
    names = frozenset(mesh.axis_names) - frozenset(auto) if auto else ()
    return _shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, axis_names=names, check_vma=check_rep)


def disable_x64() -> object:
    """Return a `with` block in which the default dtypes have 32 bits."""
    return config.enable_x64(False)
