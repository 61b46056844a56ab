"""`debug.breakpoint`: a prompt in the middle of a program, with the values under the names they have in the code."""

from __future__ import annotations

import bdb
import builtins
import linecache
import select
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from functorch_like import source_info
from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.calling import api_boundary
from functorch_like.calling.host_callbacks import host_function
from functorch_like.core import ArrayImpl, Tracer
from functorch_like.primitives.effects.callbacks import debug_callback

#: Frames that can be looked at; those further out are seldom of interest, and keep their values alive.
_MOST_FRAMES = 8
_HELP = """\
c, continue    go on (as does the end of the input)
q, quit        stop with an error
v, values      the local values, again
p EXPRESSION   a value; EXPRESSION alone does the same
l, list        the code around
w, where       the functions that led here
u, up; d, down the function that called this one, and back"""


class _Frame(NamedTuple):
    """A running function of the user's, with the values of its names."""

    line: source_info.Line
    values: dict[str, Any]
    globals: dict[str, Any]


@api_boundary.public
def breakpoint(*, ordered: bool = False) -> None:
    """Stop the program here, when it runs, and prompt for expressions in its values by their names in the code.

    Under `jit` the prompt comes when the compiled program gets here, each time it does; under vmap, for each element.
    Type h for help, c to go on. Where standard input is at its end, or is not a terminal and has nothing to
    read, the program goes on at once.

    Args:
        ordered: whether prompts keep the order of the Python code; see `debug.callback`.

    Raises:
        bdb.BdbQuit: at the call of the program, where the answer is q.

    >>> import functorch_like as ft
    >>> @ft.jit
    ... def f(x):
    ...     y = x + 1
    ...     ft.debug.breakpoint()
    ...     return y
    >>> y = f(1.0)  # doctest: +SKIP
    breakpoint at example.py:5 in f
      x = f32[] 1.0
      y = f32[] 2.0
    (ft)
    """
    places, values = _frames()
    host, operands, _ = host_function(
        lambda given: _Prompt([_Frame(line, v, g) for (line, g), v in zip(places, given, strict=True)]).loop(),
        None,
        (values,),
        {},
        "debug.breakpoint",
        numbers=False,
    )
    debug_callback(*operands, fun=host, ordered=bool(ordered))


def _frames() -> tuple[list[tuple[source_info.Line, dict[str, Any]]], list[dict[str, Any]]]:
    """Lines and globals of the user's functions at work, innermost first; and their local values."""
    places: list[tuple[source_info.Line, dict[str, Any]]] = []
    values: list[dict[str, Any]] = []
    frame = sys._getframe(1)
    while frame is not None and len(places) < _MOST_FRAMES:
        code = frame.f_code
        if source_info.is_users(code.co_filename):
            places.append((source_info.Line(code.co_filename, frame.f_lineno, code.co_name), frame.f_globals))
            inside = frame.f_locals if frame.f_locals is not frame.f_globals else {}
            values.append({name: _seen(value) for name, value in inside.items()})
        frame = frame.f_back
    return places, values


class _Kept:
    """Wrapper that makes an untraced value a leaf, so that flattening does not open it."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _seen(value: Any) -> Any:
    """A local value for the callback; tracers of a transformation that has returned are replaced by "<gone>"."""
    try:
        leaves, structure = xla.flatten(value)
    except (ValueError, TypeError):  # a dict whose keys cannot be sorted
        return _Kept(value)
    if not any(isinstance(leaf, Tracer) for leaf in leaves):
        return _Kept(value)
    return structure.unflatten(list(map(_leaf, leaves)))


def _leaf(leaf: Any) -> Any:
    if not isinstance(leaf, Tracer):
        return _Kept(leaf)
    return _Kept("<gone>") if leaf._trace.finished else leaf


def _shown(value: Any) -> str:
    if isinstance(value, (np.ndarray, ArrayImpl)):
        host = np.asarray(value)
        aval = ShapedArray(host.shape, host.dtype)
        text = f"{aval!r} {np.array2string(host, threshold=20, edgeitems=3, precision=6)}"
    else:
        text = repr(value)
    text = " ".join(text.split())
    return text if len(text) <= 100 else text[:97] + "..."


class _Prompt:
    """One stop: frames, which of them is looked at, and the commands."""

    def __init__(self, frames: list[_Frame]) -> None:
        unpack = lambda leaf: leaf.value if isinstance(leaf, _Kept) else leaf
        self.frames: list[_Frame] = []
        for f in frames:
            values = {}
            for name, value in f.values.items():
                leaves, structure = xla.flatten(value)
                values[name] = structure.unflatten(list(map(unpack, leaves)))
            self.frames.append(f._replace(values=values))
        self.at = 0
        self.commands: dict[str, Callable[[str], Any]] = {
            "v": self.values, "values": self.values, "l": self.code, "list": self.code, "w": self.where,
            "where": self.where, "bt": self.where, "u": self.up, "up": self.up, "d": self.down, "down": self.down,
            "p": self.evaluate, "h": self.help, "help": self.help, "?": self.help,
        }  # fmt: skip

    def loop(self) -> None:
        builtins.print(f"breakpoint at {self.frames[0].line}")
        self.values("")
        first = True
        while (text := _read(first)) is not None:
            first = False
            command, _, rest = text.strip().partition(" ")
            if command in ("c", "cont", "continue"):
                return
            if command in ("q", "quit", "exit"):
                raise bdb.BdbQuit(f"stopped at {self.frames[self.at].line}")
            if command in self.commands:
                self.commands[command](rest)
            elif command:
                self.evaluate(text)

    def values(self, rest: str) -> None:
        for name, value in self.frames[self.at].values.items():
            builtins.print(f"  {name} = {_shown(value)}")

    def evaluate(self, text: str) -> None:
        frame = self.frames[self.at]
        try:
            builtins.print(repr(eval(text, {**frame.globals, **frame.values})))
        except Exception as error:  # any error of the user's expression
            builtins.print(f"*** {type(error).__name__}: {error}")

    def code(self, rest: str) -> None:
        file, line, _ = self.frames[self.at].line
        for n in range(max(line - 5, 1), line + 6):
            text = linecache.getline(file, n)
            if text:
                builtins.print(f"{'->' if n == line else '  '} {n:4} {text.rstrip()}")

    def where(self, rest: str) -> None:
        for k, frame in enumerate(self.frames):
            builtins.print(f"{'->' if k == self.at else '  '} {frame.line}")

    def up(self, rest: str) -> None:
        self._look(self.at + 1)

    def down(self, rest: str) -> None:
        self._look(self.at - 1)

    def _look(self, at: int) -> None:
        if 0 <= at < len(self.frames):
            self.at = at
        builtins.print(f"in {self.frames[self.at].line}")

    def help(self, rest: str) -> None:
        builtins.print(_HELP)


def _read(first: bool) -> str | None:
    """A line of the user's; None where there is none."""
    stdin = sys.stdin
    try:
        if "ipykernel" in sys.modules or stdin.isatty():
            return input("(ft) ")
        if first and not _ready(stdin):
            return None
        builtins.print("(ft) ", end="", flush=True)
        text = stdin.readline()
        builtins.print(text, end="" if text else "\n")  # no terminal shows what was typed
        return text or None
    except (EOFError, OSError, RuntimeError, ValueError, AttributeError):  # closed, captured, or no stdin at all
        return None


def _ready(stdin: Any) -> bool:
    """Return True if reading would not wait: an open pipe without a writer must not stop the program for ever."""
    try:
        descriptor = stdin.fileno()
    except (OSError, ValueError):  # no file: it answers at once
        return True
    return bool(select.select([descriptor], [], [], 0)[0])
