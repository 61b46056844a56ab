"""Frames of methods that refuse what the user wrote, which tracebacks leave out."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def without_frames(get: F) -> F:
    """Mark a method that only refuses, or a `__getattr__`: tracebacks of its errors end at the line that uses it.

    An error from further inside, such as that of a module which is imported for the name, keeps its frames.
    """

    @functools.wraps(get)
    def getter(*args: Any) -> Any:
        try:
            return get(*args)
        except Exception as e:
            own = e.__traceback__ and e.__traceback__.tb_next
            if own is not None and own.tb_next is None and os.environ.get("FT_TRACEBACK", "").lower() != "full":
                e.__traceback__ = None
            raise

    return getter  # type: ignore[return-value]
