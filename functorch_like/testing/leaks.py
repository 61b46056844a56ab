"""Whether a block leaves traced values behind: a list, an attribute or a cache that holds on to them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from functorch_like.core import Tracer
from functorch_like.errors import FtError


@contextmanager
def check_leaks() -> Iterator[None]:
    """Raise at the end of the block if tracers made in it are still alive.

    A tracer that outlives its transformation has no value, and using it is an error; this finds who keeps it, before.

    Raises:
        AssertionError: with each tracer and the kinds of objects that hold it.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> kept = []
    >>> with check_leaks():
    ...     y = ft.jit(lambda x: kept.append(x) or 2 * x)(fnp.ones(3))
    Traceback (most recent call last):
        ...
    AssertionError: 1 traced value outlived its transformation:
      ...held by list of length 1...
    """
    gc.collect()
    before = {id(t): t for t in _tracers()}
    yield
    gc.collect()
    leaked = [t for t in _tracers() if id(t) not in before]
    if leaked:
        ignored = {id(leaked), id(before)}
        lines = [f"  {_shown(t)}, held by {_holders(t, ignored)}" for t in leaked[:5]]
        more = [f"  and {len(leaked) - 5} more"] if len(leaked) > 5 else []
        plural = "value" if len(leaked) == 1 else "values"
        text = "\n".join([f"{len(leaked)} traced {plural} outlived its transformation:", *lines, *more])
        del leaked
        raise AssertionError(text)


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
