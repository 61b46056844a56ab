"""Tracer leaks: traced values that a block leaves behind, in a list, an attribute or a cache."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from functorch_like.core import Tracer
from functorch_like.errors import FtError, LeakError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


@contextmanager
def checking_leaks() -> Generator[None]:
    """Raise at the end of the block if traced values made in it are still alive.

    A tracer that outlives its transformation has no value, and using it is an error. This finds the object that keeps
    it alive, before it is used. All objects of the process are searched, which takes tens of milliseconds.

    Returns:
        A context manager.

    Raises:
        LeakError: with each traced value, and the kinds of objects that hold it.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> kept = []
    >>> with ft.checking_leaks():
    ...     y = ft.jit(lambda x: kept.append(x) or 2 * x)(fnp.ones(3))
    Traceback (most recent call last):
        ...
    functorch_like.errors.LeakError: 1 traced value outlived its transformation:
      ...held by list of length 1...
    """
    before = alive()
    yield
    text = left(before)
    if text:
        raise LeakError(text, fix="return the values from the transformed function instead of storing them")


def check_tracer_leaks(enable: bool = True) -> AbstractContextManager[object]:
    """Check for tracer leaks in a block, like `checking_leaks`, if enabled.

    Args:
        enable: False gives a block without effect.

    Returns:
        A context manager.

    Raises:
        LeakError: as `checking_leaks`.

    >>> import functorch_like as ft
    >>> with ft.check_tracer_leaks(False):
    ...     y = ft.jit(lambda x: 2 * x)(1.0)
    """
    return checking_leaks() if enable else nullcontext()


def alive() -> dict[int, Tracer]:
    """The traced values that are alive now, by identity."""
    gc.collect()
    return {id(t): t for t in _tracers()}


def left(before: dict[int, Tracer]) -> str:
    """Describe the tracers that are alive and were not before, with their holders; "" if there are none."""
    gc.collect()
    leaked = [t for t in _tracers() if id(t) not in before]
    if not leaked:
        return ""
    ignored = {id(leaked), id(before)}
    lines = [f"  {_shown(t)}, held by {_holders(t, ignored)}" for t in leaked[:5]]
    more = [f"  and {len(leaked) - 5} more"] if len(leaked) > 5 else []
    plural = "value" if len(leaked) == 1 else "values"
    return "\n".join([f"{len(leaked)} traced {plural} outlived its transformation:", *lines, *more])


def _tracers() -> list[Tracer]:
    return [x for x in gc.get_objects() if issubclass(type(x), Tracer)]


def _shown(t: Tracer) -> str:
    try:
        return f"{type(t).__name__} {t.aval!r}"
    except FtError:
        return type(t).__name__


def _holders(t: Tracer, ignored: set[int]) -> str:
    kinds = [
        f"{type(x).__name__} of length {len(x)}" if isinstance(x, (list, dict, tuple, set)) else type(x).__name__
        for x in gc.get_referrers(t)
        if id(x) not in ignored and type(x).__name__ != "frame"
    ]
    return ", ".join(dict.fromkeys(kinds)) or "a variable of a running function"
