"""`jax.flatten_util`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functorch_like import flatten_util


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Call `ft.flatten_util.ravel_pytree`."""
    return flatten_util.ravel_pytree(pytree)
