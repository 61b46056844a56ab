"""`jax.custom_derivatives`."""

from __future__ import annotations

from typing import Any

from functorch_like.jax_alias.modules import core_primitives


def __getattr__(name: str) -> Any:
    return getattr(core_primitives, name)
