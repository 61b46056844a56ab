"""Eager programs in the quick tier: each call comes to Python and is measured, until the optimised form is there.

A jitted function in the quick tier is called through C++ (`transforms/tier_watch.py`). Eager programs are many and most
of them are called a few times. So the 50 us that Python costs occur seldom; they count as time spent.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from functorch_like.backends.xla import events

if TYPE_CHECKING:
    from functorch_like.compiler.program import Program

#: Seconds that a call through Python takes longer than one through C++.
_DETOUR = 50e-6


def run(program: Program, args: Sequence[Any]) -> list[Any]:
    """Run a program from Python; in the quick tier measure it, and exchange it once its optimised form is there."""
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
    """Return what C++ gets after a call: the record by which it runs later ones or None, and whether to forget all.

    In the quick tier C++ forgets: where a call gave no record, it never requests one again. Where arguments were
    `narrowed` in Python, all calls go through Python.
    """
    if narrowed:
        return None, False
    return (program.fastpath(out_tree), False) if program.quick is None else (None, True)


def exchange(program: Program) -> None:
    """Exchange a program for its optimised form, which has been compiled, or was refused."""
    name, quick = program.lowered.name, program.quick
    if quick is None or quick.compiled is None or quick.compiled.cancelled():
        program.quick = None  # another function of the same program was first, or the process ends
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
