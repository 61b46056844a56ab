"""Delay of Ctrl-C, other signals and Python's shutdown during work that must not be interrupted: imports and C++.

An interrupted import leaves primitives, MLIR dialects or C++ types registered. They cannot be registered twice, so
every later compilation of the process would fail. C++ that imports Python modules aborts the process if one of them
raises KeyboardInterrupt. A thread that Python ends inside of C++ aborts it, too.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.machinery
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType, ModuleType
from typing import Any

_Handler = Callable[[int, FrameType | None], Any]
_PACKAGE = __name__.partition(".")[0] + "."

#: Signals whose handlers raise in some programs, to end them or to limit their time.
_OTHERS = (
    "SIGTERM",
    "SIGHUP",
    "SIGQUIT",
    "SIGBREAK",
    "SIGALRM",
    "SIGVTALRM",
    "SIGPROF",
    "SIGXCPU",
    "SIGUSR1",
    "SIGUSR2",
)


class _Held:
    """Context manager that delays signals: their handlers run when the block ends.

    Python runs signal handlers in the main thread alone, so in other threads the block changes nothing. Blocks may be
    nested; the handlers run at the end of the outermost. A block costs 4 us for one signal, and 0.3 us inside of
    another block.

    Args:
        names: names of the signals; those that the platform lacks are left out.
    """

    def __init__(self, *names: str) -> None:
        self._numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
        self._depth = 0
        self._previous: dict[int, _Handler] = {}
        self._received: dict[int, tuple[_Handler, FrameType | None]] = {}

    def __enter__(self) -> None:
        if threading.get_ident() != threading.main_thread().ident:
            return
        if self._depth == 0:
            try:
                self._take_over()
            except BaseException:  # raised by a handler that was called meanwhile
                self._give_back()
                raise
        self._depth += 1

    def __exit__(self, *error: object) -> None:
        if threading.get_ident() != threading.main_thread().ident:
            return
        self._depth -= 1
        if self._depth == 0 and self._previous:
            self._give_back()

    def _take_over(self) -> None:
        for number in self._numbers:
            previous: Any = signal.getsignal(number)
            # SIG_IGN and SIG_DFL raise nothing; handlers from outside of Python stay.
            if not callable(previous) or previous == self._receive:
                continue
            self._previous[number] = previous
            try:
                signal.signal(number, self._receive)
            except ValueError:  # this is not the main interpreter
                self._previous.clear()
                return

    def _give_back(self) -> None:
        """Restore the handlers in reverse order, then call those that have been delayed. A restored one may raise."""
        try:
            while self._previous:
                number = next(reversed(self._previous))
                signal.signal(number, self._previous[number])
                del self._previous[number]
        finally:
            if self._previous:
                self._give_back()
            received, self._received = self._received, {}
            _deliver([(handler, number, frame) for number, (handler, frame) in received.items()])

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self._received[number] = self._previous[number], frame


def _deliver(received: list[tuple[_Handler, int, FrameType | None]]) -> None:
    """Call handlers in turn, also after one of them has raised."""
    if received:
        handler, number, frame = received[0]
        try:
            handler(number, frame)
        finally:
            _deliver(received[1:])


#: For imports and registrations.
held = _Held("SIGINT")
#: For XLA's compiler. TRAP: in jaxlib 0.10 it runs in a thread of its own, and C++ that waits for it runs signal
#: handlers. If one raises, XLA goes on and reads freed memory: the process crashes, at its end at the latest.
all_held = _Held("SIGINT", *_OTHERS)

#: Seconds that a thread sleeps while Python shuts down. After that it ends, since an `atexit` function may wait for it.
_END = 10.0


class _Awaited(contextlib.ContextDecorator):
    """Context manager for C++ work in threads other than the main one: Python's shutdown waits for its end.

    Python itself waits for threads that are not daemons, but not after a Ctrl-C during that wait. Here a Ctrl-C during
    the wait ends the process at once.
    """

    def __init__(self) -> None:
        self._reset()
        atexit.register(self._wait)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._open, self._is_over = 0, False

    def __enter__(self) -> None:
        if threading.get_ident() != threading.main_thread().ident:
            with self._lock:
                self._open += 1
                over = self._is_over
            if over:
                self._leave()

    def __exit__(self, *error: object) -> None:
        if threading.get_ident() != threading.main_thread().ident:
            self._leave()

    def _leave(self) -> None:
        with self._lock:
            self._open -= 1
            over = self._is_over
        if over:
            time.sleep(_END)  # otherwise Python would end the thread in its next call of C++
            raise SystemExit

    def _wait(self) -> None:
        with self._lock:
            self._is_over = True
        if self._open and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            with contextlib.suppress(ValueError):  # Python ends in another thread
                signal.signal(signal.SIGINT, signal.SIG_DFL)
        raised = None
        while self._open:
            try:
                time.sleep(0.01)
            except BaseException as error:  # raised by the handler of another signal; the wait goes on
                raised = error
        if raised is not None:
            raise raised


awaited = _Awaited()


def end_with_the_reader() -> None:
    """Let a command end without a traceback when the reader of its output has gone, as in `... | head`."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


class _Whole:
    """Loader of a module of this package: runs another loader, and delays Ctrl-C until it has finished."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def exec_module(self, module: ModuleType) -> None:
        with held:
            self._loader.exec_module(module)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._loader, name)


class _ImportWhole:
    """Finder that wraps the loaders of this package's modules, so that Ctrl-C never interrupts their import."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not name.startswith(_PACKAGE):
            return None
        for finder in sys.meta_path:
            spec = None if isinstance(finder, _ImportWhole) else finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Whole(spec.loader)  # type: ignore[assignment]
                return spec
        return None


sys.meta_path.insert(0, _ImportWhole())  # type: ignore[arg-type]
