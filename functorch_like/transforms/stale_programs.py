"""Stale programs: those of functions whose Python code would give another program now.

A jitted function is traced once for a signature. What it reads besides its arguments, such as a global, an attribute
or the clock, is part of the program from then on. The check traces the function again at each call, and compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like.backends import xla
from functorch_like.core import Tracer, aval_of
from functorch_like.errors import StaleProgramError

if TYPE_CHECKING:
    from functorch_like.ir.jaxpr_diff import JaxprDiff
    from functorch_like.transforms.jit_stages import Traced

#: True in blocks of `debug.stale_programs`. All calls of jitted functions then go through Python.
CHECKED = xla.config("stale_programs", False, in_trace_key=False)
#: Most equations of each side that an error shows.
_MOST_SHOWN = 3


def check(fun: Callable[..., Any], name: str, traced: Traced, again: Traced) -> None:
    """Raise if a function, traced again for one signature, gives another program.

    Args:
        fun: the function.
        name: its name.
        traced: the trace that its program was made of.
        again: the new one.

    Raises:
        StaleProgramError: with the equations that only one of the two has, or the arrays that have changed.
    """
    from functorch_like.ir.jaxpr_diff import JaxprDiff  # needed in these blocks alone

    differences = [*_structure(traced, again), *_arrays(fun, traced.consts, again.consts)]
    diff = JaxprDiff(traced.jaxpr, again.jaxpr)
    if not diff.is_equal:
        differences += _equations(diff)
    if differences:
        raise StaleProgramError(
            "\n  ".join([f"the program of {name} is stale: its Python code gives another one now:", *differences]),
            fix="pass what has changed as an argument (static, if it is no array), or call clear_cache() of the jitted "
            "function after the change",
        )


def _structure(first: Traced, second: Traced) -> Iterator[str]:
    if first.out_tree != second.out_tree:
        yield f"results were {first.out_tree}, and are {second.out_tree}"


def _arrays(fun: Callable[..., Any], first: Sequence[Any], second: Sequence[Any]) -> Iterator[str]:
    """Yield the arrays that a function closes over and that have other values; others change the equations."""
    if len(first) != len(second):
        return
    for a, b in zip(first, second, strict=True):
        if a is not b and aval_of(a) == aval_of(b) and not _equal(a, b):
            name = _name(fun, b)
            yield f"{name or 'an array'}, a {aval_of(b)!r} that it closes over, has other values"


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, Tracer) or isinstance(b, Tracer):
        return False
    return np.asarray(a).tobytes() == np.asarray(b).tobytes()


def _name(fun: Callable[..., Any], value: Any) -> str:
    """Return the name by which a function reads a value: a global, or a variable of a function around it."""
    code = getattr(fun, "__code__", None)
    if code is None:
        return ""
    cells = zip(code.co_freevars, fun.__closure__ or (), strict=False)
    around = {name: cell.cell_contents for name, cell in cells if cell.cell_contents is value}
    return next(iter(around), next((n for n in code.co_names if fun.__globals__.get(n) is value), ""))


def _equations(diff: JaxprDiff) -> Iterator[str]:
    """Yield equations that one side alone has, with their lines."""
    changes = [change for section in diff.sections for change in section.changes]
    for sign, meaning in (("-", "before"), ("+", "now")):
        rows = [change.row for change in changes if change.sign == sign]
        for row in rows[:_MOST_SHOWN]:
            yield f"{meaning}: {row}" + (f"  # {row.place}" if row.place else "")
        if len(rows) > _MOST_SHOWN:
            yield f"{meaning}: {len(rows) - _MOST_SHOWN} more"
    if not diff.added and not diff.removed:
        yield "the results are other values of the program"
