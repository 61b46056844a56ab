"""`jax.extend.source_info_util`, `jax._src.traceback_util`: which frames an error shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def register_exclusion(path: str) -> None:
    """Do nothing: an error shows the frames of libraries."""


def api_boundary(fun: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Return the function as it is."""
    return (lambda f: f) if fun is None else fun
