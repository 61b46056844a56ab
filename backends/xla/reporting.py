"""Record of XLA's work within a block: programs compiled and loaded, and the time of each part."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from functorch_like.backends.xla import events
from functorch_like.errors import ArgumentError
from functorch_like.markup import terminal

if TYPE_CHECKING:
    from functorch_like.markup import elements


@contextmanager
def verbose(file: TextIO | None = None, rows: int = 20) -> Generator[None]:
    """Report XLA's work within the block: programs compiled or loaded, and the time of each operation.

    Each program that this thread traces, lowers, compiles or loads is printed at once, with its time. The operations
    that ran in the whole process are printed at the end, the longest first, with the user's line. Profiling makes
    programs somewhat slower.

    Args:
        file: the file to write to; standard output by default.
        rows: number of operations that are listed.

    >>> import functorch_like as ft
    >>> with ft.backends.xla.verbose():  # doctest: +ELLIPSIS
    ...     x = ft.jit(lambda x: x @ x)(ft.numpy.ones((100, 100)))
    traced <lambda> in ... ms: first call
    ...
    """
    from functorch_like.backends.xla import profiling

    out = sys.stdout if file is None else file

    def show(event: events.Event) -> None:
        if event.kind in events.VERBS:
            print(events.line(event), file=out)

    session: Any = None
    try:
        session = profiling.Session()
    except ArgumentError:
        print("the profiler is running already: no times of operations here", file=out)
    started = time.perf_counter()
    try:
        with events.listening(show):
            yield
    finally:
        seconds = time.perf_counter() - started
        if session is not None:
            print(table(profiling.operations(session.stop()), seconds, rows), file=out)


def table(operations: list[Any], seconds: float, rows: int = 20, paint: terminal.Paint = terminal.plain) -> str:
    """Return operations and their times as text in columns, and below them the times of the user's lines.

    Args:
        operations: the longest first.
        seconds: time of the whole block.
        rows: number of operations that are listed.
        paint: gives parts a style.
    """
    total = sum(each.seconds for each in operations)
    lines = [paint(_summary(total, seconds), "head")]
    if not operations:
        return lines[0]
    lines.append(f"{'ms':>9} {'share':>6} {'calls':>6}  {'':10}  operation, program, line")
    for each in operations[:rows]:
        where = f"{each.name}  {each.program}  {_short(each.line)}".rstrip()
        share = paint(f"{terminal.bar(each.seconds / total, 10):<10}", "blue")
        shown = terminal.trimmed(where, terminal.WIDEST - 37)
        lines.append(f"{each.seconds * 1e3:9.3f} {each.seconds / total:6.1%} {each.calls:6}  {share}  {shown}")
    if len(operations) > rows:
        rest = sum(each.seconds for each in operations[rows:])
        lines.append(f"{rest * 1e3:9.3f} {rest / total:6.1%}         {len(operations) - rows} more")
    by_line = by_lines(operations)
    if len(by_line) > 1 or next(iter(by_line), ""):
        lines += ["", f"{'ms':>9} {'share':>6}  {'':10}  line"]
    for line, spent in list(by_line.items())[:rows]:
        share = paint(f"{terminal.bar(spent / total, 10):<10}", "blue")
        shown = terminal.trimmed(line or "unknown", terminal.WIDEST - 30)
        lines.append(f"{spent * 1e3:9.3f} {spent / total:6.1%}  {share}  {shown}")
    return "\n".join(lines)


def markup(operations: list[Any], seconds: float, rows: int = 30) -> elements.Markup:
    """Return operations, and the user's lines, with their times as bars.

    Args:
        operations: the longest first.
        seconds: time of the whole block.
        rows: number of each that are listed.
    """
    from functorch_like.markup import elements  # only in notebooks

    total = sum(each.seconds for each in operations)
    head = elements.element("div", _summary(total, seconds), cls="head")
    if not operations:
        return head
    code = lambda text: elements.element("code", elements.breakable(text))
    each_row = [
        (f"{e.seconds * 1e3:.3f}", f"{e.seconds / total:.1%}", elements.bar(e.seconds / total), e.calls, code(e.name),
         code(e.program), elements.element("code", _short(e.line), title=e.line))
        for e in operations[:rows]
    ]  # fmt: skip
    each_line = [
        (f"{spent * 1e3:.3f}", f"{spent / total:.1%}", elements.bar(spent / total), code(line or "unknown"))
        for line, spent in list(by_lines(operations).items())[:rows]
    ]
    more = f"{len(operations) - rows} more operations" if len(operations) > rows else None
    parts = [
        elements.table(("ms", "share", "", "calls", "operation", "program", "line"), each_row, numbers=[0, 1, 3]),
        more,
    ]
    by_line = elements.table(("ms", "share", "", "line"), each_line, numbers=[0, 1])
    return elements.join(
        [
            head,
            elements.details("by line", by_line, opened=True),
            elements.details("by operation", *parts, opened=True),
        ]
    )


def by_lines(operations: list[Any]) -> dict[str, float]:
    """Return seconds by the user's line, the most first; those of no known line under ""."""
    spent: dict[str, float] = {}
    for each in operations:
        spent[each.line] = spent.get(each.line, 0.0) + each.seconds
    return dict(sorted(spent.items(), key=lambda item: -item[1]))


def _summary(total: float, seconds: float) -> str:
    return f"{total * 1e3:.3g} ms in operations of compiled programs, of {seconds * 1e3:.3g} ms"


def _short(line: str) -> str:
    """A line without its folder."""
    return line.rsplit("/", 1)[-1]
