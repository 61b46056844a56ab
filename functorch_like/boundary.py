"""Floor 4. Public boundaries: errors leave the package without the frames inside it.

Set FT_TRACEBACK=full to see every frame.
"""

from __future__ import annotations

import functools
import os
import types
from collections.abc import Callable
from typing import Any, TypeVar

from functorch_like import sources
from functorch_like.errors import FtError

F = TypeVar("F", bound=Callable[..., Any])


def public(fun: F) -> F:
    """Mark a function that users call: an FtError that passes through it loses our frames."""

    @functools.wraps(fun)
    def boundary(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except FtError as e:
            e.__traceback__ = trim(e.__traceback__)
            raise

    return boundary  # type: ignore[return-value]


def trim(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """A traceback without the frames of this package."""
    if os.environ.get("FT_TRACEBACK") == "full":
        return traceback
    frames: list[types.TracebackType] = []
    while traceback is not None:
        if sources.is_users(traceback.tb_frame.f_code.co_filename):
            frames.append(traceback)
        traceback = traceback.tb_next
    kept: types.TracebackType | None = None
    for entry in reversed(frames):
        kept = types.TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return kept
