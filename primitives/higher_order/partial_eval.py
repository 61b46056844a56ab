"""Partial evaluation of a jaxpr: a half that can run now, and a half that is linear in the inputs not known yet.

Reverse mode needs it of every primitive that holds jaxprs: the known half runs at once, the linear half is recorded and
later transposed. The known values that the linear half reads are its residuals.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from functorch_like import core
from functorch_like.core import Tracer, aval_of, state
from functorch_like.interpreters import reverse
from functorch_like.ir import passes
from functorch_like.ir.jaxpr import Equation, Jaxpr, Literal, Var, evaluate
from functorch_like.ir.trace_to_jaxpr import StageTracer
from functorch_like.primitives.base.shapes import zeros
from functorch_like.primitives.higher_order.jaxpr_jvp_and_batch import derive


@dataclasses.dataclass(frozen=True)
class PartialEval:
    """The two halves of a jaxpr.

    Attributes:
        known: takes the known inputs; gives the known results, then those residuals that are neither a known input
            nor a known result.
        consts: the values of the first inputs of `known`, ahead of the known inputs of the whole.
        linear: takes the residuals and the unknown inputs, gives the unknown results.
        residuals: where the i-th residual comes from: ("in", k), the k-th input of `known`, or ("out", k), the k-th
            result of it.
        unknown_out: which results of the whole are unknown.
    """

    known: Jaxpr
    consts: list[Any]
    linear: Jaxpr
    residuals: list[tuple[str, int]]
    unknown_out: list[bool]


def partial_eval_jaxpr(jaxpr: Jaxpr, unknown: Sequence[bool], instantiate: Sequence[bool] = ()) -> PartialEval:
    """Partially evaluate a jaxpr; the halves are made once for each pattern of unknown inputs.

    Args:
        jaxpr: the whole.
        unknown: its inputs that are not known yet; it must be linear in them.
        instantiate: results that are to be unknown even where they depend on nothing unknown, and so are zero.
    """
    return jaxpr.memo(
        ("partial_eval", tuple(unknown), tuple(instantiate)), lambda: _partial_eval_jaxpr(jaxpr, unknown, instantiate)
    )


def places(
    atoms: Iterable[Any], inputs: Mapping[Any, int], outputs: list[Any], position: dict[Any, int]
) -> list[tuple[str, int]]:
    """Return the place of each atom: ("in", k) among the inputs, or ("out", k) among the outputs, which take new ones.

    `position` gives where the outputs are, and is kept up to date with them.
    """
    where: list[tuple[str, int]] = []
    for atom in atoms:
        if atom in inputs:
            where.append(("in", inputs[atom]))
            continue
        if atom not in position:
            position[atom] = len(outputs)
            outputs.append(atom)
        where.append(("out", position[atom]))
    return where


def _partial_eval_jaxpr(jaxpr: Jaxpr, unknown: Sequence[bool], instantiate: Sequence[bool]) -> PartialEval:
    tape_of: list[Any] = []
    equations: list[Equation] = []
    variables: list[Any] = []
    residuals = _Residuals()

    def fun(*known: Any) -> list[Any]:
        tape = reverse.TapeTrace(state.trace)
        rest = iter(known)
        with core.new_trace(tape):
            args = [tape.input(v.aval) if u else next(rest) for v, u in zip(jaxpr.inputs, unknown, strict=True)]
            outs = evaluate(jaxpr, args)
        variables[:] = [tape.var(o) for o in outs]
        tape_of[:] = [a._var for a, u in zip(args, unknown, strict=True) if u]
        equations[:] = [
            e.of([a if type(a) is Var else residuals.atom(a) for a in e.inputs])
            for e in reverse.dead_code_elimination(tape.equations, variables)
        ]
        if instantiate:
            for k, w in enumerate(instantiate):
                if w and variables[k] is None:
                    variables[k] = residuals.atom(zeros(aval_of(outs[k]).strong()))
        return [*(o for o, v in zip(outs, variables, strict=True) if v is None), *residuals.values]

    avals = [a for a, u in zip(jaxpr.in_avals, unknown, strict=True) if not u]
    staged, consts = derive(jaxpr, "known", "known half", fun, avals)
    linear = Jaxpr(
        [*residuals.vars, *tape_of],
        equations,
        [v for v in variables if v is not None],
        f"{jaxpr.name}_linear",
        f"linear half of {jaxpr.name}",
    )
    # A residual that is an input of the known half, or equals another result of it, is not returned again.
    first = len(variables) - sum(v is not None for v in variables)
    inputs: dict[Any, int] = {v: k for k, v in enumerate(staged.inputs)}
    outputs = list(staged.outputs[:first])
    position: dict[Any, int] = {a: k for k, a in enumerate(outputs) if type(a) is Var}
    where = places(staged.outputs[first:], inputs, outputs, position)
    known = passes.dead_code(Jaxpr(staged.inputs, staged.equations, outputs, staged.name, staged.origin))
    return PartialEval(known, consts, linear, where, [v is not None for v in variables])


class _Residuals:
    """Known values that the linear half reads, each once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.vars: list[Var] = []
        self._of: dict[Any, Var] = {}

    def atom(self, value: Any) -> Any:
        if not isinstance(value, Tracer) and np.ndim(value) == 0 and type(value) is not core.ArrayImpl:
            aval = aval_of(value)
            return Literal(np.array(value, aval.dtype), aval)
        key = value._var if type(value) is StageTracer else id(value)
        if key not in self._of:
            self._of[key] = Var(aval_of(value))
            self.values.append(value)
            self.vars.append(self._of[key])
        return self._of[key]
