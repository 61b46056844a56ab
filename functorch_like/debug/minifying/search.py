"""The search: smaller programs that still fail, until none is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from functorch_like.debug.minifying.failures import Fails
from functorch_like.debug.minifying.programs import (
    Program,
    bodies,
    bodies_of,
    inlined,
    part,
    resized,
    sizes_of,
    thinned,
    values_of,
    with_inner,
)  # fmt: skip

T = TypeVar("T")


def fewest(items: list[T], ok: Callable[[list[T]], bool]) -> list[T]:
    """Return a small part of `items` that `ok` accepts, by leaving out smaller and smaller groups (ddmin).

    A. Zeller, R. Hildebrandt, "Simplifying and isolating failure-inducing input", 2002.
    """
    groups = 2
    while len(items) >= 2:
        size = max(1, len(items) // groups)
        for start in range(0, len(items), size):
            rest = items[:start] + items[start + size :]
            if rest and ok(rest):
                items, groups = rest, max(groups - 1, 2)
                break
        else:
            if size == 1:
                break
            groups = min(len(items), 2 * groups)
    return items


class Search:
    """A search for a small program that fails.

    Attributes:
        program: the smallest so far.
        tried: number of programs that were run.
    """

    def __init__(self, program: Program, fails: Fails, report: Callable[[str], None]) -> None:
        self.program, self._fails, self._report, self.tried = program, fails, report, 0

    def bad(self, program: Program | None) -> bool:
        """Return True for a program that fails; one that cannot be run does not."""
        if program is None:
            return False
        self.tried += 1
        try:
            return self._fails(program)
        except Exception:  # another failure than the one that is searched for
            return False

    def take(self, program: Program | None, what: str) -> bool:
        """Take a program in the place of the smallest, if it fails."""
        if program is None or not self.bad(program):
            return False
        self.program = program
        self._report(f"{what}: {len(program.jaxpr.equations)} equations")
        return True

    def run(self) -> Program:
        """Return the smallest program found."""
        flat = inlined(self.program.jaxpr)
        self.take(Program(flat, self.program.args), "calls in place")
        while self._fewer_equations() or self._enter() or self._thin():
            pass
        while self._smaller_sizes():
            pass
        self._simpler_values()
        return self.program

    def _part(self, equations: Sequence[Any], outputs: Sequence[Any], values: Any) -> Program:
        return part(equations, outputs, values, self.program.jaxpr.name)

    def _fewer_equations(self) -> bool:
        """Cut after the first wrong value, then leave out results and equations; True if that made it smaller."""
        before = len(self.program.jaxpr.equations)
        try:
            values = values_of(self.program)
        except Exception:  # the reference cannot run it: its values are not known
            return False
        self._cut(values)
        equations = self.program.jaxpr.equations
        outputs = fewest(list(self.program.jaxpr.outputs), lambda some: self.bad(self._part(equations, some, values)))
        self.take(self._part(equations, outputs, values), "results")
        equations = fewest(list(self.program.jaxpr.equations), lambda some: self.bad(self._part(some, outputs, values)))
        self.take(self._part(equations, outputs, values), "equations")
        return len(self.program.jaxpr.equations) < before

    def _cut(self, values: Any) -> None:
        """Find by bisection the first equations after which something is wrong; all values so far are results."""
        equations = self.program.jaxpr.equations
        until = lambda k: self._part(equations[:k], [v for e in equations[:k] for v in e.outputs], values)
        low, high = 0, len(equations)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.bad(until(middle)) else (middle, high)
        if high < len(equations):
            self.take(until(high), f"cut after {high}")

    def _enter(self) -> bool:
        """Go on with the body of a loop or a branch, if it fails alone."""
        try:
            values = values_of(self.program)
            for e in self.program.jaxpr.equations:
                for body in bodies(e, values):
                    if self.take(Program(inlined(body.jaxpr), body.args), f"body of {e.prim.name}"):
                        return True
        except Exception:  # the reference cannot run it
            pass
        return False

    def _thin(self) -> bool:
        """Leave out equations of bodies that do not fail alone; zeros take the place of their results."""
        for position, inner in list(bodies_of(self.program)):
            made = lambda some, p=position, i=inner: with_inner(self.program, p, i, thinned(i, some))
            kept = fewest(list(inner.equations), lambda some, made=made: self.bad(made(some)))
            if len(kept) < len(inner.equations) and self.take(made(kept), f"body with {len(kept)} equations"):
                return True
        return False

    def _smaller_sizes(self) -> bool:
        for size in sizes_of(self.program.jaxpr):
            for new in dict.fromkeys((1, 2, size // 2, size - 1)):
                for last in (False, True) if 0 < new < size else ():
                    if self.take(resized(self.program, size, new, last), f"size {size} to {new}"):
                        return True
        return False

    def _simpler_values(self) -> None:
        """Try zeros, ones and whole numbers as arguments."""
        for k, x in enumerate(self.program.args):
            simple = [np.zeros_like(x), np.ones_like(x)]
            simple += [np.round(x).astype(x.dtype)] if x.dtype.kind == "f" else []
            for y in simple:
                args = [*self.program.args[:k], y, *self.program.args[k + 1 :]]
                if y.tobytes() == x.tobytes() or self.take(Program(self.program.jaxpr, args), f"argument {k}"):
                    break
