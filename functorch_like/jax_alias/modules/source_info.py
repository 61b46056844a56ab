"""`jax.extend.source_info_util`, `jax._src.traceback_util`: files whose frames a library excludes from tracebacks."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

_EXCLUDED: list[str] = []


def register_exclusion(path: str) -> None:
    """Make `include_frame` return False for the frames of a file; errors of the package show them nevertheless."""
    _EXCLUDED.append(path)


def include_frame(frame: FrameType) -> bool:
    """Return True for a frame of no excluded file."""
    return not any(frame.f_code.co_filename.startswith(path) for path in _EXCLUDED)


def api_boundary(fun: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Return the function unchanged."""
    return (lambda f: f) if fun is None else fun
