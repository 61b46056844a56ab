"""Eager programs in the quick tier: calls go through Python and are measured, until the optimised form is compiled.

A jitted function in the quick tier is called through C++ (`transforms/tier_watch.py`). Eager programs are many, and
most of them are called a few times. So the 50 us that a call through Python costs are rare; they count as run time.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from functorch_like.backends.xla import events

if TYPE_CHECKING:
    from functorch_like.compiler.program import Program

#: Seconds that a call takes longer through Python than through C++.
_DETOUR = 50e-6


def run(program: Program, args: Sequence[Any]) -> list[Any]:
    """Run a program from Python; in the quick tier measure it, and exchange it once its optimised form is compiled."""
    quick = program.quick
    if quick is None:
        return program.run(args)
    if quick.is_over:
        exchange(program)
        return program.run(args)
    started = time.perf_counter()
    results = program.run(args)
    quick.credit(time.perf_counter() - started + _DETOUR)
    events.emit("tier", program.lowered.name, how="in the quick tier")
    return results


def remembered(program: Program, out_tree: Any, narrowed: bool = False) -> tuple[Any, bool]:
    """Return the fast path for C++, or None; and True if C++ stores nothing for this signature (`xla.function`).

    In the quick tier nothing is stored: after a None, C++ would never accept a fast path. If arguments were `narrowed`
    in Python, None is stored, so that all calls go through Python.
    """
    if narrowed:
        return None, False
    return (program.fastpath(out_tree), False) if program.quick is None else (None, True)


def exchange(program: Program) -> None:
    """Exchange a program for its optimised form, once its compilation has ended; warn if it has failed."""
    name, quick = program.lowered.name, program.quick
    if quick is None or quick.compiled is None or quick.compiled.cancelled():
        program.quick = None  # another function has exchanged the program, or the process ends
        return
    try:
        program.exchange()
    except Exception as error:
        warnings.warn(
            f"{name} stays in the quick tier, which runs slower: its optimised form could not be compiled: {error}",
            stacklevel=2,
        )
        return
    events.emit("exchange", name, how=f"after {quick.spent * 1e3:.3g} ms of running in the quick tier")
