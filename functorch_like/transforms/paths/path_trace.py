"""The trace of one path: it records equations, and computes the values of guards.

The stretch of equations between two guards is a *segment*. A segment runs when Python needs the value of the guard at
its end: small ones in NumPy, which is faster than compiling; others, and those with effects, as compiled programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like.core import EVALUATE, ArrayImpl, Tracer, set_current_trace
from functorch_like.interpreters.batching import BatchTracer
from functorch_like.interpreters.forward import Dual
from functorch_like.ir.jaxpr import Equation, Jaxpr, Literal, Var, effects
from functorch_like.ir.reference import reference
from functorch_like.ir.trace_to_jaxpr import StageTracer
from functorch_like.primitives.higher_order.call import CallSpec, apply
from functorch_like.transforms.paths.following import FollowingTrace
from functorch_like.transforms.paths.python_state import PythonState
from functorch_like.transforms.paths.words import LARGEST_GUARD, Words, words_of

#: Elements of all results of a segment, up to which NumPy computes them.
_SMALL = 100_000


def plain(x: Any, element: int = 0) -> Any:
    """Return the value behind tracers: of a differentiated one the primal, of a mapped one that of one element."""
    while isinstance(x, Tracer):
        if isinstance(x, BatchTracer):
            whole = plain(x.value, element)
            return None if whole is None else np.take(np.asarray(whole), element, x.dim)
        x = x.primal if type(x) is Dual else x.concrete()
    return x


class PathTrace(FollowingTrace):
    """Trace that records equations like its base, and gives the values of guards.

    Args:
        name: its name in errors.
        leaves: the arguments of the call.
        forced: the words of the first guards, where they are decided already.
        element: which element of mapped arguments the path is traced for.
        exact: whether segments run as compiled programs, because their results are those of the call.
    """

    __slots__ = ("_forced", "_leaves", "_ran", "_resume", "element", "exact", "ran_effects", "values")

    def __init__(
        self, name: str, leaves: Sequence[Any], forced: Sequence[Words] = (), element: int = 0, exact: bool = False
    ) -> None:
        super().__init__(name, EVALUATE)
        self.values: dict[Var, Any] = {}
        self.exact, self.element = exact, element
        self.ran_effects = False
        self._leaves, self._forced = iter(leaves), list(forced)
        self._resume: Any = None
        self._ran = 0

    def input(self, aval: Any) -> StageTracer:
        tracer = super().input(aval)
        value = plain(next(self._leaves), self.element)
        self.values[tracer._var] = value if type(value) is ArrayImpl else np.asarray(value, aval.dtype)
        return tracer

    def guards_on(self, tracer: StageTracer, what: str) -> bool:
        return tracer.aval.size <= LARGEST_GUARD

    def decide(self, var: Var, state: PythonState | None) -> Words:
        if not self._forced:
            self.run([var])
            return words_of(self.values[var])
        words = self._forced.pop(0)
        if not self._forced and self._resume is not None:  # equations that ran already are not run again
            self._ran = len(self.equations)
            self._resume(self)
        return words

    def resume(self, adopt: Any) -> None:
        """Continue a path that has run up to its last forced guard: `adopt(trace)` fills in the values there."""
        self._resume = adopt

    def run(self, outputs: Sequence[Any]) -> None:
        """Compute equations that were recorded and have not run: outputs, and values that Python may still use."""
        todo, self._ran = self.equations[self._ran :], len(self.equations)
        for var, const in zip(self.const_vars, self.consts, strict=True):
            self.values.setdefault(var, plain(const, self.element))
        made = {v for e in todo for v in e.outputs}
        alive = self.alive()
        outs = [v for v in dict.fromkeys([*(o for o in outputs if type(o) is Var), *alive]) if v in made]
        self._born = [(t, v) for t, v in self._born if t() is not None]
        acts = any(effects(e) for e in todo)
        if not outs and not acts:
            return
        taken = list(dict.fromkeys(a for e in todo for a in e.inputs if type(a) is Var and a not in made))
        segment = Jaxpr(taken, todo, list(outs), self.name)
        args = [self.values[v] for v in taken]
        if not self.exact and not acts and _is_small(todo):
            # Where NumPy rounds another way than XLA does, the path is not the one taken; its program detects that.
            with np.errstate(all="ignore"):
                results = reference(segment, [np.asarray(a) for a in args])
        else:
            self.ran_effects = self.ran_effects or acts
            with set_current_trace(EVALUATE):
                results = apply(segment, [], args, CallSpec("segment"))
        self.values.update(zip(outs, results, strict=True))

    def value(self, atom: Any) -> Any:
        """Return the value of an output."""
        return np.asarray(atom.value, atom.aval.dtype) if type(atom) is Literal else self.values[atom]


def _is_small(equations: Sequence[Equation]) -> bool:
    """Return True where NumPy is quick: few elements, and no loops."""
    elements = sum(v.aval.size for e in equations for v in e.outputs)
    return elements <= _SMALL and not any(e.prim.kind == "loop" for e in equations)
