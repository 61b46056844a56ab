"""`jax.extend.source_info_util`, `jax._src.traceback_util`: the user's lines of equations, and files to exclude."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from types import FrameType
from typing import Any, NamedTuple

from functorch_like import core
from functorch_like import source_info as lines
from functorch_like.backends import xla
from functorch_like.jax_alias.modules.name_stack import (
    NameStack,
    current_name_stack,
    extend_name_stack,
    new_name_stack,
    reset_name_stack,
    set_name_stack,
    transform_name_stack,
)

__all__ = [
    "NameStack", "current_name_stack", "extend_name_stack", "new_name_stack", "reset_name_stack", "set_name_stack",
    "transform_name_stack",
]  # fmt: skip

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


class SourceInfo(NamedTuple):
    """The place of an equation.

    Attributes:
        traceback: the frames in which it was recorded.
        name_stack: names of scopes around it.
    """

    traceback: Any
    name_stack: NameStack = NameStack()

    def replace(self, **changes: Any) -> SourceInfo:
        """Return the same with some attributes changed."""
        return self._replace(**changes)


def new_source_info() -> SourceInfo:
    """Return a place that is not known."""
    return SourceInfo(None)


def current() -> SourceInfo:
    """Return the place of this call."""
    return SourceInfo(core.state.source or xla.here(), current_name_stack())


def place_of(source: Any) -> SourceInfo:
    """Return the place of a recorded traceback."""
    names = lines.scope(source)
    return SourceInfo(source, new_name_stack(names) if names else NameStack())


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """Return the user's line of a place, as text."""
    return str(lines.user_line(source_info.traceback) or "")


@contextmanager
def user_context(traceback: Any = None, *, name_stack: Any = None) -> Generator[None]:
    """Record equations in this block as of a traceback's line; None for their own lines."""
    before = core.state.source
    core.state.source = before if traceback is None else traceback
    try:
        with nullcontext() if name_stack is None else set_name_stack(name_stack):
            yield
    finally:
        core.state.source = before
