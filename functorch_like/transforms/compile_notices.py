"""Warnings, logged once for a function: it is compiled again and again, or closes over large arrays."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from functorch_like import source_info
from functorch_like.caches import known
from functorch_like.core import Tracer, aval_of, state
from functorch_like.errors import bytes_text
from functorch_like.transforms import recompile_reasons

if TYPE_CHECKING:
    from functorch_like.calling.call_signature import FlatCall

#: Programs of one function, and the seconds that they took, after which a warning is logged.
PROGRAMS, SECONDS = 10, 5.0
#: Bytes of the arrays that a function closes over, from which on a warning is logged.
BYTES = 2**28

#: Programs and seconds by the code of a function, since `jit(lambda ...)` in a loop makes a new object each time. A
#: wrapper of a library compiles many functions; its name and its static arguments distinguish them.
_SPENT: weakref.WeakKeyDictionary[Any, dict[int, tuple[int, float]]] = known(weakref.WeakKeyDictionary())
#: Characters of a reason that a warning shows: structures of large models are pages long.
SHOWN = 400
#: Codes of functions for which the warning about large arrays was logged.
_LARGE: weakref.WeakSet[Any] = known(weakref.WeakSet())


def compiled(fun: Any, name: str, call: FlatCall, earlier: Iterable[Any], seconds: float) -> None:
    """Count a compiled program of a function, and warn where their number and time have become large.

    Args:
        fun: the function that was compiled.
        name: its name.
        call: the call that it was compiled for.
        earlier: keys of other calls of the same function, the last one first.
        seconds: time of tracing and compiling.
    """
    code = getattr(fun, "__code__", None)
    if code is None:
        return
    counts = _SPENT.setdefault(code, {})
    which = hash((name, *_codes(call.statics)))
    before, spent = counts.get(which, (0, 0.0))
    programs, total = counts[which] = before + 1, spent + seconds
    if not _is_much(before, spent) and _is_much(programs, total):
        why = recompile_reasons.difference(call.key, earlier) or recompile_reasons.first_time(fun)
        _warn(
            "%s was compiled %d times, in %.0f s; now at %s: %s. %s. ft.explain(f)(x) gives the reason for a call",
            name, programs, total, _line(), why if len(why) <= SHOWN else f"{why[:SHOWN]} ...", _remedy(why),
        )  # fmt: skip


def captured(fun: Any, name: str, consts: Sequence[Any]) -> None:
    """Warn if a traced function closes over large arrays. Tracers do not count, since no program holds them."""
    code = getattr(fun, "__code__", None)
    if code is None or code in _LARGE:
        return
    avals = [aval_of(c) for c in consts if not isinstance(c, Tracer)]
    size = lambda aval: aval.size * aval.dtype.itemsize
    total = sum(map(size, avals))
    if total >= BYTES:
        _LARGE.add(code)
        _warn(
            "%s, called at %s, closes over arrays of %s, the largest %r: they stay in memory as long as its programs, "
            "and NumPy's are copied each time that it is traced. Pass them as arguments",
            name, _line(), bytes_text(total), max(avals, key=size),
        )  # fmt: skip


def _codes(statics: Any) -> Iterator[Any]:
    """Yield the code and the name of each function among static arguments, and in tuples of them."""
    for value in statics:
        if type(value) is tuple:
            yield from _codes(value)
        elif callable(value):
            yield getattr(value, "__code__", None), str(getattr(value, "__name__", type(value)))


def _is_much(programs: int, seconds: float) -> bool:
    return programs >= PROGRAMS and seconds >= SECONDS


def _remedy(why: str) -> str:
    if " shape " in why:
        return 'Pad to a few sizes; or let sizes share a program: jit(f, buckets={"x": 0})'
    return "Pass numbers that change as arrays" if "static argument" in why else "See docs/concepts/caching.md"


def _line() -> str:
    return str(source_info.user_line(state.source) or "an unknown line")


def _warn(text: str, *args: Any) -> None:
    import logging  # seldom needed

    logging.getLogger("functorch_like").warning(text, *args)
