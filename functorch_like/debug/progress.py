"""`progress`: a line of the terminal that shows the progress of a loop, in Python or compiled."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, Generic, TypeVar, overload

import numpy as np

from functorch_like import lax, status_line, tree
from functorch_like import numpy as fnp
from functorch_like.calling import api_boundary
from functorch_like.core import aval_of, is_value
from functorch_like.debug.printing import callback
from functorch_like.errors import ArgumentError
from functorch_like.lax.loops import Watched
from functorch_like.source_info import name_of

T = TypeVar("T")
#: Seconds between redraws, and reports of a compiled loop.
REDRAW, REPORTS = 0.1, 50
_BAR = 24


@overload
def progress(
    xs: Iterable[T], total: int | None = None, *, label: str = "", every: int | None = None, start: int = 0
) -> Progress[T]: ...
@overload
def progress(
    xs: object, total: int | None = None, *, label: str = "", every: int | None = None, start: int = 0
) -> Progress[Any]: ...
@api_boundary.public
def progress(
    xs: object, total: int | None = None, *, label: str = "", every: int | None = None, start: int = 0
) -> Progress[Any]:
    """Show how far a loop is, how fast, and when it will be done.

    The line is redrawn on terminals and in notebooks, and not written elsewhere, as to logs. FT_PROGRESS=1 writes it
    everywhere, FT_PROGRESS=0 nowhere. It serves three kinds of loops::

        for batch in ft.progress(batches): ...
        ft.lax.scan(f, init, ft.progress(xs))
        ft.lax.fori_loop(0, n, ft.progress(body, n), init)

    A compiled loop reports about 50 times, through the host, at a cost of about 50 us each. Reports are part of the
    compiled program; whether a line is shown is decided at each of them. Derivatives do not report again; under `vmap`
    one loop of all elements does.

    Args:
        xs: an iterable; arrays to scan over, or None with `total`; or the body of a `fori_loop`.
        total: the number of steps, where xs does not have it: iterables without a length, and bodies, which need it.
        label: text at the beginning of the line.
        every: number of steps between the reports of a compiled loop; a fiftieth of all steps if None.
        start: the lower bound of the `fori_loop`.

    Returns:
        The iterable that takes the place of xs in the loop.

    Raises:
        ArgumentError: for a body without `total`, and for anything else.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> sum(ft.progress(range(4)))
    6
    >>> total = ft.jit(lambda xs: ft.lax.scan(lambda c, x: (c + x, None), 0.0, ft.progress(xs))[0])
    >>> total(fnp.ones(3)).item(), ft.lax.fori_loop(0, 3, ft.progress(lambda i, c: c + i, 3), 0).item()
    (3.0, 3)
    """
    if callable(xs) and not isinstance(xs, Iterable) and total is None:
        raise ArgumentError(
            "progress of the body of a fori_loop needs the number of steps", fix="ft.progress(body, upper)"
        )
    if (xs is None and total is None) or isinstance(xs, (int, float, complex, np.generic)):
        raise ArgumentError(
            f"progress takes an iterable, arrays or a body, got {xs!r:.60}",
            fix="ft.progress(range(n)), or progress(None, n)",
        )
    for name, count in (("total", total), ("every", every)):
        if count is not None and (not isinstance(count, (int, np.integer)) or count < 1 - (name == "total")):
            raise ArgumentError(f"{name}={count!r} of progress", fix="pass a count of steps")
    return Progress(xs, total, label, every, start)


class Progress(Watched, Generic[T]):
    """Stand-in for a loop's iterable, slices or body, which counts steps; see `progress`."""

    def __init__(self, xs: object, total: int | None, label: str, every: int | None, start: int) -> None:
        self._xs: Any = xs
        self._total, self._label, self._every, self._start = total, label, every, start

    def __len__(self) -> int:
        return len(self._xs) if self._total is None else self._total

    # --------------------------------------------------------------------------------------------------- in Python
    def __iter__(self) -> Iterator[T]:
        total = self._total
        if total is None and hasattr(self._xs, "__len__"):
            with suppress(TypeError):  # of batches for ever
                total = len(self._xs)
        meter = Meter(self._label, total)
        done = 0
        try:
            for x in self._xs:
                yield x
                done += 1
                meter.at(done)
        finally:
            meter.finish(done)

    # ---------------------------------------------------------------------------------------------------- compiled
    def attach(self, f: Callable[..., Any], length: int | None, reverse: bool) -> tuple[Callable[..., Any], Any]:
        """Return a body for `scan` that reports, and its slices with their numbers."""
        leaves = tree.leaves(self._xs)
        sizes = [aval_of(leaf).shape[:1] for leaf in leaves if is_value(leaf)]
        steps = sizes[0][0] if sizes and sizes[0] else length if length is not None else self._total
        if steps is None:
            raise ArgumentError("scan over progress(None) needs the number of steps", fix="ft.progress(None, n)")
        report = self._reporter(steps)

        def watched(carry: Any, numbered: Any) -> Any:
            number, x = numbered
            report(steps - 1 - number if reverse else number)
            return f(carry, x)

        watched.__name__ = name_of(f)
        return watched, (np.arange(steps, dtype=np.int32), self._xs)

    def __call__(self, i: Any, carry: Any) -> Any:
        """The body of a `fori_loop`."""
        assert self._total is not None
        self._reporter(self._total - self._start)(i - self._start)
        return self._xs(i, carry)

    def _reporter(self, steps: int) -> Callable[[Any], None]:
        """A function of the number of steps done, which reports at every `every`-th step and at the last."""
        every = max(steps // REPORTS, 1) if self._every is None else self._every
        meter = Meter(self._label, steps)

        def report(done: Any) -> None:
            now = (done % every == 0) | (done == steps - 1)
            lax.cond(
                now, lambda n: callback(meter.report, n, ordered=False), lambda n: None, fnp.asarray(done, "int32")
            )

        return report


class Meter:
    """The line of one loop.

    Args:
        label: its beginning.
        total: the number of steps, or None.
    """

    def __init__(self, label: str, total: int | None) -> None:
        self._label, self._total = label, total
        self._started = self._drawn = time.monotonic()
        self._done = 0

    def report(self, number: Any) -> None:
        """Count a step of a compiled loop by its number; the first begins a new run."""
        number = int(number)
        if number <= self._done:
            self._started = time.monotonic()
        self._done = number
        if number + 1 == self._total:
            self.finish(number + 1)
        else:
            self.at(number)

    def at(self, done: int) -> None:
        """Redraw the line, if the last time was `REDRAW` seconds ago."""
        now = time.monotonic()
        if now - self._drawn >= REDRAW and status_line.is_shown():
            self._drawn = now
            status_line.show(self.line(done, now - self._started))

    def finish(self, done: int) -> None:
        """Leave the last state of the line on the screen."""
        if status_line.is_shown():
            status_line.end(self.line(done, time.monotonic() - self._started))

    def line(self, done: int, seconds: float) -> str:
        """The line after so many steps and seconds."""
        rate = done / seconds if seconds > 0 else 0.0
        speed = f"{rate:.3g}/s" if rate >= 1 or not done else f"{seconds / done:.3g} s each"
        head = f"{self._label} " if self._label else ""
        if not self._total:
            return f"{head}{done} [{duration(seconds)}, {speed}]"
        share = min(done / self._total, 1.0)
        filled = int(share * _BAR)
        left = duration((self._total - done) / rate) if rate else "?"
        bar = "#" * filled + "." * (_BAR - filled)
        return f"{head}{share:4.0%} {bar} {done}/{self._total} [{duration(seconds)} < {left}, {speed}]"


def duration(seconds: float) -> str:
    """A time as text: `4.2 s`, `3:05`, `2:03:05`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
