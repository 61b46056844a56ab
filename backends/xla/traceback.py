"""The user's line: jaxlib's traceback object, taken in 0.12 us and decoded only on request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functorch_like.backends.xla.jaxlib_api import _jax

# The bound C++ function itself: a Python wrapper would cost as much again, and add a frame.
here = _jax.Traceback.get_traceback


def frames(traceback: Any) -> list[tuple[str, int, str]]:
    """(file name, line, function) for each frame, innermost first."""
    if traceback is None:
        return []
    return [(frame.file_name, frame.line_num, frame.function_name) for frame in traceback.frames]


# (code, offset) -> (line, column, end line, end column)
_locate = _jax.Traceback.code_addr2location


def innermost(traceback: Any, accept: Callable[[str], bool]) -> tuple[str, int, str] | None:
    """The innermost frame whose file name is accepted, decoding no other."""
    for code, offset in zip(*traceback.raw_frames(), strict=True):
        if accept(code.co_filename):
            return code.co_filename, _locate(code, offset)[0], code.co_name
    return None
