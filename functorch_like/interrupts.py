"""Ctrl-C (SIGINT), kept out of what must not stop in the middle: imports, and registrations in jaxlib's C++.

Half of a module leaves primitives, dialects of MLIR or types of C++ registered, and they cannot be registered again:
every later compile of the process would fail. C++ that imports Python modules even aborts the process when one of them
raises KeyboardInterrupt.
"""

from __future__ import annotations

import importlib.machinery
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType, ModuleType
from typing import Any

_PACKAGE = __name__.partition(".")[0] + "."


class _Held:
    """`with held:` around work that SIGINT must not stop: it is delivered when the block ends.

    Python runs signal handlers in the main thread alone, so in other threads the block changes nothing. Blocks may be
    nested; the outermost delivers. Costs 4 us, and 0.3 us inside of another block.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._previous: Callable[[int, FrameType | None], Any] | None = None
        self._received: tuple[int, FrameType | None] | None = None

    def __enter__(self) -> None:
        if threading.get_ident() != threading.main_thread().ident:
            return
        if self._depth == 0:
            self._take_over()
        self._depth += 1

    def __exit__(self, *error: object) -> None:
        if threading.get_ident() != threading.main_thread().ident:
            return
        self._depth -= 1
        if self._depth or self._previous is None:
            return
        previous, self._previous = self._previous, None
        signal.signal(signal.SIGINT, previous)
        received, self._received = self._received, None
        if received is not None:
            previous(*received)

    def _take_over(self) -> None:
        previous: Any = signal.getsignal(signal.SIGINT)
        if not callable(previous):  # SIG_IGN and SIG_DFL raise nothing; one from outside of Python stays
            return
        try:
            signal.signal(signal.SIGINT, self._receive)
        except ValueError:  # not the main interpreter
            return
        self._previous = previous

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self._received = number, frame


held = _Held()


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
