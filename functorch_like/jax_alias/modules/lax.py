"""`jax.lax`: functions with options that this package has no use for, and functions that move typed keys."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from functorch_like import lax
from functorch_like.jax_alias.modules import core_primitives
from functorch_like.jax_alias.modules.numpy import moving_keys
from functorch_like.jax_alias.modules.sharding import reshard

__all__ = ["reshard"]

#: Functions that move elements and look at none, so that they move typed keys as well.
_MOVING = (
    "broadcast", "broadcast_in_dim", "concatenate", "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim", "dynamic_update_slice", "dynamic_update_slice_in_dim", "expand_dims",
    "index_in_dim", "reshape", "rev", "select", "slice", "slice_in_dim", "squeeze", "transpose",
)  # fmt: skip
#: Options that have no effect on the result.
_IGNORED = ("out_sharding", "_split_transpose", "mode_hint")


def _without_options(fun: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fun)
    def called(*args: Any, **kwargs: Any) -> Any:
        for name in _IGNORED:
            kwargs.pop(name, None)
        return fun(*args, **kwargs)

    return called


for _name in _MOVING:
    globals()[_name] = moving_keys(_without_options(getattr(lax, _name)))
for _name in ("scan", "dot_general", "dot", "full", "full_like", "iota", "broadcasted_iota", "split", "gather"):
    globals()[_name] = _without_options(getattr(lax, _name))
del _name


def pvary(x: Any, axis_name: Any = None) -> Any:
    """Return `x`."""
    return x


def pcast(x: Any, axis_name: Any = None, *, to: Any = None) -> Any:
    """Return `x`."""
    return x


def tie_in(x: Any, y: Any) -> Any:
    """Return `y`."""
    return y


def __getattr__(name: str) -> Any:
    return getattr(core_primitives, name)
