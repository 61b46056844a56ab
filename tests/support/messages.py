"""Parsing of error messages, so that tests can check them part by part."""

from __future__ import annotations

import inspect
import os
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from functorch_like import source_info
from functorch_like.errors import FtError


class Message(NamedTuple):
    """The parts of an error's text, and the error itself."""

    head: str
    under: str
    at: str
    rule: str
    remedy: str
    error: Any


def refusal(fun: Callable[[], Any], *kinds: type[BaseException]) -> Message:
    """Call `fun` and return the message of its error: an `FtError` of these builtin kinds, with a remedy."""
    with pytest.raises(FtError) as caught:
        fun()
    error = caught.value
    for kind in kinds:
        assert isinstance(error, kind), f"{type(error).__name__} is no {kind.__name__}"
    message = read(error)
    assert message.remedy, f"no remedy in: {error}"
    hidden(error)
    return message


def read(error: FtError) -> Message:
    """Split the text of an error into its parts; `head` may have several lines."""
    parts = {"under": "", "at": "", "rule": "", "what to do": ""}
    head: list[str] = []
    for line in str(error).split("\n"):
        name, colon, rest = line.strip().partition(": ")
        if line.startswith("  ") and colon and name in parts:
            parts[name] = rest
        else:
            head.append(line)
    return Message("\n".join(head), parts["under"], parts["at"], parts["rule"], parts["what to do"], error)


def hidden(error: BaseException) -> None:
    """Assert that at most one frame of the traceback is the package's."""
    frames = [f.filename for f in traceback.extract_tb(error.__traceback__)]
    ours = [f for f in frames if source_info.is_ours(f)]
    assert len(ours) <= 1, f"frames of the package in the traceback: {ours}"


def line_of(fun: Callable[..., Any], text: str) -> str:
    """Return the position of a text in the source of a function, as `file.py:12`."""
    lines, first = inspect.getsourcelines(fun)
    at = next(k for k, line in enumerate(lines) if text in line)
    return f"{os.path.basename(inspect.getsourcefile(fun) or '')}:{first + at}"


def says(text: str, *parts: str) -> None:
    """Assert that every part is in the text."""
    for part in parts:
        assert part in text, f"{part!r} is not in {text!r}"
