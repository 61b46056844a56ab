"""Record of XLA's work within a block: programs compiled and loaded, and the time of each part."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from functorch_like.backends.xla import events
from functorch_like.errors import ArgumentError


@contextmanager
def verbose(file: TextIO | None = None, rows: int = 20) -> Iterator[None]:
    """Report what XLA does within the block: what is compiled or loaded, and the time of each operation.

    As it happens, in this thread: each program traced, lowered, compiled or loaded, and what that took. At the end, of
    the whole process: the operations that ran, the longest first, with the user's line. Profiling makes programs
    somewhat slower.

    Args:
        file: where to; standard output by default.
        rows: how many operations are listed.

    >>> import functorch_like as ft
    >>> with ft.backends.xla.verbose():  # doctest: +ELLIPSIS
    ...     x = ft.jit(lambda x: x @ x)(ft.numpy.ones((100, 100)))
    traced <lambda> in ... ms: first call
    ...
    """
    from functorch_like.backends.xla import profiling

    out = sys.stdout if file is None else file

    def tell(event: events.Event) -> None:
        if event.kind in events.VERBS:
            print(events.line(event), file=out)

    session: Any = None
    try:
        session = profiling.Session()
    except ArgumentError:
        print("the profiler is running already: no times of operations here", file=out)
    started = time.perf_counter()
    try:
        with events.listening(tell):
            yield
    finally:
        seconds = time.perf_counter() - started
        if session is not None:
            print(table(profiling.operations(session.stop()), seconds, rows), file=out)


def table(operations: list[Any], seconds: float, rows: int = 20) -> str:
    """Operations and their times as text, in columns."""
    total = sum(each.seconds for each in operations)
    lines = [f"{total * 1e3:.3g} ms in operations of compiled programs, of {seconds * 1e3:.3g} ms"]
    if operations:
        lines.append(f"{'ms':>9} {'share':>6} {'calls':>6}  operation, program, line")
    for each in operations[:rows]:
        where = f"{each.name}  {each.program}  {each.line}".rstrip()
        lines.append(f"{each.seconds * 1e3:9.3f} {each.seconds / total:6.1%} {each.calls:6}  {where}")
    if len(operations) > rows:
        rest = sum(each.seconds for each in operations[rows:])
        lines.append(f"{rest * 1e3:9.3f} {rest / total:6.1%}         {len(operations) - rows} more")
    return "\n".join(lines)
