"""A check that no key is used twice: numbers drawn with one key depend on each other."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from functorch_like import core, source_info
from functorch_like.core import Tracer
from functorch_like.errors import KeyReuseError

#: Functions that do not use a key up: they derive another key from it, or only read it.
_KEEP = ("random.fold_in", "random.wrap_key_data", "batches")


class _Use(NamedTuple):
    """One use of a key."""

    call: FrameType | None  # frame of the public function, kept alive so that no later call has its id
    what: str
    line: str
    key: Any  # kept alive so that no later tracer has its id


class _Uses(threading.local):
    """The uses of keys in the current block of this thread; None outside of a block."""

    by_key: dict[Any, _Use] | None = None
    clones: dict[Any, int]


_uses = _Uses()


@contextmanager
def check_key_reuse() -> Generator[None]:
    """Raise an error in this block where a key is used a second time.

    Two keys with the same words are the same key: `random.key(0)` made twice counts, too. `split` uses a key, `fold_in`
    does not, and `clone` allows one more use of a key. Inside of a jitted function keys are checked while it is
    traced; calls of compiled functions are not checked, nor is a key that all elements of a `vmap` share.
    The branches of `lax.cond` count as if all ran: pass them the key as an operand.

    Returns:
        A context manager.

    Raises:
        KeyReuseError: in the block, where a function gets a used key; the message names the line of the first use.

    >>> with random.check_key_reuse():
    ...     first, second = random.split(random.key(0))
    ...     x = random.normal(first, (2,)) + random.normal(second, (2,))
    >>> try:
    ...     with random.check_key_reuse():
    ...         x = random.normal(first, (2,)) + random.uniform(first, (2,))
    ... except ft.errors.KeyReuseError as error:
    ...     print(error.reason.partition(" at ")[0])
    random.uniform got a key that random.normal has used
    """
    before = _uses.by_key, getattr(_uses, "clones", {})
    _uses.by_key, _uses.clones = {}, {}
    try:
        yield
    finally:
        _uses.by_key, _uses.clones = before


def is_checked() -> bool:
    """Return True in a block of `check_key_reuse`."""
    return _uses.by_key is not None


def check_from_now_on(check: bool = True) -> None:
    """Check in this thread as in a block, which the caller ends by `check=False`."""
    _uses.by_key, _uses.clones = ({}, {}) if check else (None, {})


def use(key: Any, what: str) -> None:
    """Record that a function uses a key, in a block of `check_key_reuse`.

    Args:
        key: the words of the key, an array or a tracer.
        what: the function's name.
    """
    uses = _uses.by_key
    if uses is None or what in _KEEP:
        return
    # The value of a tracer is not known; within one trace a key is one tracer.
    name = id(key) if isinstance(key, Tracer) else np.asarray(key).tobytes()
    if what == "random.clone":
        _uses.clones[name] = _uses.clones.get(name, 0) + 1
        return
    call, line = _public_call(), str(source_info.user_line(core.state.source) or "an unknown line")
    first = uses.get(name)
    if first is None or (call is not None and call is first.call):  # functions of keys call each other
        uses[name] = _Use(call, what, line, key)
    elif _uses.clones.get(name, 0):
        _uses.clones[name] -= 1
    else:
        raise KeyReuseError(
            f"{what} got a key that {first.what} has used at {first.line}: their numbers depend on each other",
            fix="make a key for each use: key, new = ft.random.split(key); for the same numbers on purpose, "
            "ft.random.clone(key)",
        )


def _public_call() -> FrameType | None:
    """Return the outermost frame of the package in the user's current call."""
    frame: FrameType | None = sys._getframe(2)
    inside = None
    while frame is not None and not source_info.is_users(frame.f_code.co_filename):
        inside, frame = frame, frame.f_back
    return inside
