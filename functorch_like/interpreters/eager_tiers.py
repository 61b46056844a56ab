"""Eager programs before their last tier: calls go through Python and are measured, until a better form is compiled.

A jitted function before its last tier is called through C++ (`transforms/tier_watch.py`). Eager programs are many, and
most of them are called a few times. So the 50 us that a call through Python costs are rare; they count as run time. A
program whose runs turn out to be brief stays in the quick tier: C++ calls it faster than Python would the best form.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from functorch_like.backends.xla import events

if TYPE_CHECKING:
    from functorch_like.compiler.program import Program

#: Seconds that a call takes longer through Python than through C++.
_DETOUR = 50e-6
#: Runs after which a program stays as it is, if they took less than so many seconds in the mean: Python takes half of
#: them, and C++ saves more than the better form would.
_TRIED, _BRIEF = 16, 20e-6


def run(program: Program, args: Sequence[Any]) -> list[Any]:
    """Run a program from Python; before its last tier measure it, and exchange it once a better form is compiled."""
    improvement = program.improvement
    if improvement is None:
        return program.run(args)
    if improvement.is_over:
        exchange(program)
        return program.run(args)
    results = improvement.measured(program.run, args, _DETOUR)
    events.emit("tier", program.lowered.name, how=improvement.where)
    brief = improvement.spent < improvement.runs * (_DETOUR + _BRIEF)
    if improvement.runs >= _TRIED and brief and improvement.compiled is None:
        program.improvement = None
    return results


def remembered(program: Program, out_tree: Any, narrowed: bool = False) -> tuple[Any, bool]:
    """Return the fast path for C++, or None; and True if C++ stores nothing for this signature (`xla.function`).

    Before the last tier nothing is stored: after a None, C++ would never accept a fast path. If arguments were
    `narrowed` in Python, None is stored, so that all calls go through Python.
    """
    if narrowed:
        return None, False
    return (program.fastpath(out_tree), False) if program.improvement is None else (None, True)


def exchange(program: Program) -> None:
    """Exchange a program for its better form, once its compilation has ended; warn if it has failed."""
    name, improvement = program.lowered.name, program.improvement
    if improvement is None or improvement.compiled is None or not improvement.is_over:
        return  # another function has exchanged the program
    if improvement.compiled.cancelled():  # the process ends
        program.improvement = None
        return
    before = program.executable
    try:
        program.exchange()
    except Exception as error:
        stays = "in the quick tier, which runs slower" if improvement.quick else "as it is"
        warnings.warn(f"{name} stays {stays}: its better form could not be compiled: {error}", stacklevel=2)
        return
    if program.executable is not before:
        events.emit("exchange", name, how=improvement.report())
