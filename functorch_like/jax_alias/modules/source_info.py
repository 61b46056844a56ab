"""`jax.extend.source_info_util`, `jax._src.traceback_util`: which frames an error shows."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

_EXCLUDED: list[str] = []


def register_exclusion(path: str) -> None:
    """Leave the frames of a file out of what `include_frame` accepts; errors show them all the same."""
    _EXCLUDED.append(path)


def include_frame(frame: FrameType) -> bool:
    """Return True for a frame of no excluded file."""
    return not any(frame.f_code.co_filename.startswith(path) for path in _EXCLUDED)


def api_boundary(fun: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Return the function as it is."""
    return (lambda f: f) if fun is None else fun
