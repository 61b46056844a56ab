"""Ctrl-C, other signals and the end of Python, kept out of what must not stop in the middle: imports, and work in C++.

Half of a module leaves primitives, dialects of MLIR or types of C++ registered, and they cannot be registered again:
every later compile of the process would fail. C++ that imports Python modules even aborts the process when one of them
raises KeyboardInterrupt. And a thread that Python ends inside of C++ aborts the process.
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

#: Signals whose handlers raise in some programs: they end them, or set them a time limit.
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
    """`with held:` around work that signals must not stop: they are delivered when the block ends.

    Python runs signal handlers in the main thread alone, so in other threads the block changes nothing. Blocks may be
    nested; the outermost delivers. Costs 4 us for one signal, and 0.3 us inside of another block.

    Args:
        names: of the signals; what the platform lacks is left out.
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
            except BaseException:  # of a handler that was called just before
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
            # SIG_IGN and SIG_DFL raise nothing; one from outside of Python stays
            if not callable(previous) or previous == self._receive:
                continue
            self._previous[number] = previous
            try:
                signal.signal(number, self._receive)
            except ValueError:  # not the main interpreter
                self._previous.clear()
                return

    def _give_back(self) -> None:
        """Put the handlers back, the first one last, and then deliver. One that is back may raise meanwhile."""
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
    """Call handlers in turn, the later ones where an earlier one raises, too."""
    if received:
        handler, number, frame = received[0]
        try:
            handler(number, frame)
        finally:
            _deliver(received[1:])


#: For imports and registrations.
held = _Held("SIGINT")
#: For XLA's compiler. TRAP: in 0.10 it runs in a thread of its own, and C++ that waits for it runs signal handlers. If
#: one raises, XLA goes on and reads what has been freed: the process crashes, at its end at the latest.
all_held = _Held("SIGINT", *_OTHERS)

#: Seconds for which a thread stays where it is while Python ends; then an `atexit` function may be waiting for it.
_END = 10.0


class _Awaited(contextlib.ContextDecorator):
    """`with awaited:` around work in C++ in other threads than the main one, for which the end of Python waits.

    Python waits for threads that are not daemons by itself, but no longer once Ctrl-C has stopped it from waiting. Here
    Ctrl-C ends the process at once.
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
            time.sleep(_END)  # or Python would end the thread in its next call of C++
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
            except BaseException as error:  # of the handler of another signal, which must not end this either
                raised = error
        if raised is not None:
            raise raised


awaited = _Awaited()


class _Whole:
    """Loader of a module of this package that runs another loader without interrupts."""

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
    """Finder by which the modules of this package are imported as a whole or not at all, at whatever time."""

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
