"""The state of Python at a guard, up to the values of arrays.

Two guards with equal states continue alike, on every path to them: the rest of the function depends on arrays alone.
So branches that meet again are joined, and a loop that comes back to a state is a loop of the program.

A state is the frames from the jitted function to the guard: of each the instruction and the local names that may be
read later. Frames that have been suspended since the first guard cannot have changed, and count as one. A state is not
known where something hidden could make a difference: temporary values on the stack of an expression, iterators other
than ranges, `with` blocks entered after the first guard, generators, a derivative that is being recorded. Mutable
objects count in all frames.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from functorch_like import source_info
from functorch_like.backends import xla
from functorch_like.core import ArrayImpl, Trace, Tracer, state
from functorch_like.interpreters.batching import BatchTrace, BatchTracer
from functorch_like.interpreters.forward import Dual, JVPTrace
from functorch_like.ir.jaxpr import Var
from functorch_like.ir.trace_to_jaxpr import StageTracer
from functorch_like.transforms.paths.bytecode import entered_once, point
from functorch_like.transforms.paths.global_state import GlobalState, is_large

if TYPE_CHECKING:
    from functorch_like.transforms.paths.following import FollowingTrace

_MOST_VALUES = 2000
_ATOMS = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis), np.generic, np.dtype, range)
_NAMED = (type, types.ModuleType, types.BuiltinFunctionType, xla.PjitFunction, ArrayImpl)
_IMMUTABLE = (*_ATOMS, *(t for t in _NAMED if t is not types.BuiltinFunctionType), Tracer)
_PLAIN_OBJECT = object.__basicsize__ + 16  # of instances that are their dictionary: no fields of a type in C


class PythonState(NamedTuple):
    """The state of Python on which the rest of a function depends.

    Attributes:
        key: equal for equal states.
        slots: the traced values in it, in the same order for equal states; the guard's value is the last.
    """

    key: Any
    slots: list[Var]

    def pattern(self) -> tuple[int, ...]:
        """Return which slots hold one value: of each the first slot with it."""
        return tuple(map(self.slots.index, self.slots))


class _Hidden(Exception):
    """Something whose state cannot be known."""


def python_state(trace: FollowingTrace, guarded: StageTracer) -> PythonState | None:
    """Return the state of Python while it converts a value of the trace; None where it cannot be known."""
    frames: list[types.FrameType] = []
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and frame is not trace.bottom:
        frames.append(frame)
        frame = frame.f_back
    frames.reverse()
    users = [k for k, f in enumerate(frames) if source_info.is_users(f.f_code.co_filename)]
    if not users:
        return None
    conversions = [f.f_code.co_name for f in frames[users[-1] + 1 :]]
    del frames[users[-1] + 1 :]
    if not trace.base:
        trace.base = frames
        trace.entered = [entered_once(f.f_code, f.f_lasti) for f in frames]
        trace.outside = GlobalState(frames)
        with contextlib.suppress(_Hidden):
            reader = _Reader(trace)
            trace.outside.note_first(reader.outside)
    if conversions[:2] != ["boundary", "tracer_bool"]:  # a function of the package converts it: its state is hidden
        return None
    try:
        return _state(trace, frames, guarded)
    except _Hidden:
        return None


def _state(trace: FollowingTrace, frames: list[types.FrameType], guarded: StageTracer) -> PythonState:
    shared = sum(all(a is b for a, b in zip(frames[:k], trace.base, strict=False)) for k in range(1, len(frames) + 1))
    shared = min(shared, len(trace.base))
    if not shared:
        raise _Hidden
    reader = _Reader(trace)
    suspended = [reader.mutable(f) for f in frames[: shared - 1] if source_info.is_users(f.f_code.co_filename)]
    parts = [*suspended, *(reader.frame(f, test=f is frames[-1]) for f in frames[shared - 1 :])]
    assert trace.outside is not None
    trace.outside.add(frames, reader.kinds)
    parts.append(trace.outside.key(reader.outside))
    parts.append(reader.key(guarded))
    return PythonState((shared, *parts, reader.traces, xla.settings(), state.axes), reader.slots)


class _Reader:
    """Maker of keys of values. Traced values become slots."""

    def __init__(self, trace: FollowingTrace) -> None:
        self.trace = trace
        self.entered = trace.base, trace.entered
        self.slots: list[Var] = []
        self.kinds: set[type] = set()
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # so that identities stay their own
        self._chain: list[Trace] = []
        current = state.trace
        while current is not trace:
            if type(current) is not JVPTrace and type(current) is not BatchTrace:
                raise _Hidden  # a tape, or a body that is being traced
            self._chain.append(current)
            current = current.parent
        self.traces = tuple((type(t), t.axis if isinstance(t, BatchTrace) else None) for t in self._chain)

    def frame(self, frame: types.FrameType, test: bool) -> Any:
        if not source_info.is_users(frame.f_code.co_filename):
            raise _Hidden
        place = point(frame.f_code, frame.f_lasti, test=test)
        if place is None or (place.counters and "range" in frame.f_globals):
            raise _Hidden
        names = frame.f_locals
        if any(type(names.get(name)) is not int for name in place.counters):
            raise _Hidden
        # The function that a `with` block calls at its end is hidden. In blocks entered before the first guard it is
        # the same for all states.
        if not place.withs <= next((e for f, e in zip(*self.entered, strict=True) if f is frame), frozenset()):
            raise _Hidden
        mutable = {name for name, value in names.items() if not isinstance(value, _IMMUTABLE)}
        return frame.f_code, place.where, self._named(names, place.live | place.counters | mutable)

    def mutable(self, frame: types.FrameType) -> Any:
        """Return the key of the mutable objects that a suspended frame holds."""
        names = frame.f_locals
        return self._named(names, {name for name, value in names.items() if not isinstance(value, _IMMUTABLE)})

    def _named(self, values: Mapping[str, Any], names: Iterable[str]) -> Any:
        return tuple((name, self.key(values[name])) for name in sorted(names) if name in values)

    def key(self, x: Any) -> Any:
        kind = type(x)
        if issubclass(kind, _ATOMS):
            return kind, repr(x)
        if kind is StageTracer and x._trace is self.trace:
            self.slots.append(x._var)
            return StageTracer, x.aval
        if isinstance(x, _NAMED):
            holder = getattr(x, "__self__", None) if type(x) is types.BuiltinFunctionType else None
            if holder is None or isinstance(holder, (types.ModuleType, type)):
                return _Same(x)
            return types.BuiltinFunctionType, x.__name__, self.key(holder)  # a method: its object may change
        known = self._seen.get(id(x))
        if known is not None:
            return "again", known
        if len(self._seen) > _MOST_VALUES:
            raise _Hidden
        self._seen[id(x)] = len(self._seen)
        self._kept.append(x)
        self.kinds.add(kind)
        return kind, self._inside(x)

    def outside(self, x: Any) -> tuple[Any, bool]:
        """Return the key of a value that is in no frame, and whether traced values are in it, which become slots."""
        reader = _OutsideReader(self.trace)
        key = reader.key(x)
        self.slots += reader.slots
        return key, bool(reader.slots)

    def _inside(self, x: Any) -> Any:
        each: Callable[[Any], tuple[Any, ...]] = lambda values: tuple(map(self.key, values))
        if isinstance(x, Tracer):
            return self._tracer(x)
        if isinstance(x, np.ndarray) and x.dtype != object:
            return x.shape, x.dtype, x.tobytes()
        if type(x) is list or (isinstance(x, tuple) and not hasattr(x, "__dict__")):
            return each(x)
        if type(x) is dict:
            return each(x.keys()), each(x.values())
        if type(x) is set or type(x) is frozenset:
            return each(sorted(x, key=repr))
        if type(x) is slice:
            return each((x.start, x.stop, x.step))
        if isinstance(x, types.FunctionType):
            cells = [c.cell_contents if c != types.CellType() else None for c in x.__closure__ or ()]
            return x.__code__, each((x.__defaults__, x.__kwdefaults__, *cells, x.__dict__ or None))
        if isinstance(x, types.MethodType):
            return each((x.__func__, x.__self__))
        if isinstance(x, functools.partial):
            return each((x.func, x.args, x.keywords))
        if type(x).__dictoffset__ and type(x).__basicsize__ <= _PLAIN_OBJECT and not hasattr(x, "__slots__"):
            return each((x.__dict__,))
        raise _Hidden

    def _tracer(self, x: Tracer) -> Any:
        if x._trace not in self._chain:
            raise _Hidden
        depth = self._chain.index(x._trace)
        if type(x) is Dual:
            return depth, self.key(x.primal), self.key(x.tangent)
        if type(x) is BatchTracer:
            return depth, x.dim, self.key(x.value)
        raise _Hidden


class _OutsideReader(_Reader):
    """Maker of keys of values in no frame. What cannot be known counts as the object that it is."""

    def key(self, x: Any) -> Any:
        return _Same(x) if is_large(x) else super().key(x)

    def _inside(self, x: Any) -> Any:
        count = len(self.slots)
        try:
            return super()._inside(x)
        except _Hidden:
            del self.slots[count:]
            return "stale" if isinstance(x, Tracer) else _Same(x)


class _Same:
    """An object that is compared by identity."""

    __slots__ = ("x",)

    def __init__(self, x: Any) -> None:
        self.x = x

    def __hash__(self) -> int:
        return id(self.x)

    def __eq__(self, other: object) -> bool:
        return type(other) is _Same and other.x is self.x
