"""Parts of programs: each takes the values that the whole program gave its variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.core import Primitive, abstract_eval
from functorch_like.errors import FtError
from functorch_like.ir.jaxpr import Atom, Equation, Jaxpr, Literal, Var, inner_jaxprs
from functorch_like.ir.passes import dead_code
from functorch_like.ir.reference import by_ref, reference
from functorch_like.primitives.higher_order.call import call
from functorch_like.primitives.higher_order.checkpoint.checkpoint import checkpoint
from functorch_like.primitives.higher_order.control_flow.cond import cond
from functorch_like.primitives.higher_order.control_flow.scan import scan
from functorch_like.primitives.higher_order.control_flow.while_loop import while_
from functorch_like.primitives.higher_order.custom.custom_jvp import custom_jvp_call
from functorch_like.primitives.higher_order.custom.custom_vjp import custom_vjp_call
from functorch_like.primitives.higher_order.custom.custom_vmap import custom_vmap_call

#: Parameters under which primitives that only call a jaxpr hold it. Rules for derivatives are no longer needed.
_CALLS: dict[Primitive, str] = {
    call: "jaxpr",
    checkpoint: "jaxpr",
    custom_jvp_call: "fun",
    custom_vjp_call: "fun",
    custom_vmap_call: "fun",
}
#: Steps of a loop whose values are tried.
_MOST_STEPS = 16


class Program(NamedTuple):
    """A jaxpr and the arrays to run it on."""

    jaxpr: Jaxpr
    args: list[np.ndarray[Any, Any]]


def values_of(program: Program) -> dict[Var, Any]:
    """Return the value of each variable, as NumPy computes it."""
    values: dict[Var, Any] = dict(zip(program.jaxpr.inputs, program.args, strict=True))
    with np.errstate(all="ignore"):
        for e in program.jaxpr.equations:
            outs = by_ref(e, [a.value if type(a) is Literal else values[a] for a in e.inputs])
            values.update((v, np.asarray(o, v.aval.dtype)) for v, o in zip(e.outputs, outs, strict=True))
    return values


def part(equations: Sequence[Equation], outputs: Sequence[Atom], values: dict[Var, Any], name: str) -> Program:
    """Return some equations as a program, whose inputs are the variables that none of them defines."""
    live = dead_code(Jaxpr([], list(equations), list(outputs), name))
    made: set[Var] = set()
    inputs: dict[Var, None] = {}
    for e in live.equations:
        inputs.update((a, None) for a in e.inputs if type(a) is Var and a not in made)
        made.update(e.outputs)
    inputs.update((a, None) for a in outputs if type(a) is Var and a not in made)
    return Program(Jaxpr(list(inputs), live.equations, list(outputs), name), [values[v] for v in inputs])


def inlined(jaxpr: Jaxpr) -> Jaxpr:
    """Return a program with the jaxprs that it calls in the place of the calls."""
    equations: list[Equation] = []

    def put(inner: Jaxpr, args: Sequence[Atom]) -> list[Atom]:
        names: dict[Var, Atom] = dict(zip(inner.inputs, args, strict=True))
        read: Callable[[Atom], Atom] = lambda a: names[a] if type(a) is Var else a
        for e in inner.equations:
            operands = [read(a) for a in e.inputs]
            called = e.params.get(_CALLS.get(e.prim, ""))
            if isinstance(called, Jaxpr):
                names.update(zip(e.outputs, put(called, operands), strict=True))
            else:
                new = [Var(v.aval) for v in e.outputs]
                equations.append(Equation(e.prim, operands, e.params, new, e.source))
                names.update(zip(e.outputs, new, strict=True))
        return [read(a) for a in inner.outputs]

    outputs = put(jaxpr, jaxpr.inputs)
    return Jaxpr(jaxpr.inputs, equations, outputs, jaxpr.name)


# ---------------------------------------------------------------------------------------------- loops and branches
def bodies(equation: Equation, values: dict[Var, Any]) -> Iterator[Program]:
    """Yield the jaxprs that an equation holds as programs, on operands that they have in the run."""
    operands = [a.value if type(a) is Literal else values[a] for a in equation.inputs]
    params, prim = equation.params, equation.prim
    with np.errstate(all="ignore"):
        if prim is cond:
            index = min(max(int(operands[0]), 0), len(params["branches"]) - 1)
            yield _program(params["branches"][index], operands[1:])
        elif prim is scan:
            yield from _steps_of_scan(operands, params)
        elif prim is while_:
            yield from _steps_of_while(operands, params)
        elif isinstance(called := params.get(_CALLS.get(prim, "")), Jaxpr):
            yield _program(called, operands)


def _program(jaxpr: Jaxpr, operands: Sequence[Any]) -> Program:
    args = [np.asarray(x, v.aval.dtype) for x, v in zip(operands, jaxpr.inputs, strict=True)]
    return Program(jaxpr, args)


def _steps_of_scan(operands: list[Any], params: dict[str, Any]) -> Iterator[Program]:
    n, m, jaxpr = params["num_consts"], params["num_carry"], params["jaxpr"]
    consts, carry, xs = operands[:n], operands[n : n + m], operands[n + m :]
    steps = range(params["length"])
    for k in list(reversed(steps) if params["reverse"] else steps)[:_MOST_STEPS]:
        program = _program(jaxpr, [*consts, *carry, *(x[k] for x in xs)])
        yield program
        carry = reference(*program)[:m]


def _steps_of_while(operands: list[Any], params: dict[str, Any]) -> Iterator[Program]:
    n, m = params["cond_nconsts"], params["body_nconsts"]
    cond, body, carry = operands[:n], operands[n : n + m], operands[n + m :]
    for _ in range(_MOST_STEPS):
        test = _program(params["cond_jaxpr"], [*cond, *carry])
        yield test
        if not reference(*test)[0]:
            return
        program = _program(params["body_jaxpr"], [*body, *carry])
        yield program
        carry = reference(*program)


def thinned(jaxpr: Jaxpr, kept: Sequence[Equation]) -> Jaxpr:
    """Return a body in which the results of the equations left out are zero."""
    stays = set(map(id, kept))
    zeros: dict[Var, Atom] = {}
    for e in jaxpr.equations:
        if id(e) not in stays:
            zeros.update((v, Literal(np.zeros(v.aval.shape, v.aval.dtype), v.aval)) for v in e.outputs)
    read: Callable[[Atom], Atom] = lambda a: zeros.get(a, a) if type(a) is Var else a
    equations = [Equation(e.prim, [read(a) for a in e.inputs], e.params, e.outputs, e.source) for e in kept]
    return dead_code(Jaxpr(jaxpr.inputs, equations, [read(a) for a in jaxpr.outputs], jaxpr.name))


def with_inner(program: Program, position: int, old: Jaxpr, new: Jaxpr) -> Program:
    """Return a program in which an equation holds another jaxpr."""
    e = program.jaxpr.equations[position]

    def swap(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(new if v is old else v for v in value)
        return new if value is old else value

    equations = list(program.jaxpr.equations)
    equations[position] = Equation(e.prim, e.inputs, {k: swap(v) for k, v in e.params.items()}, e.outputs, e.source)
    whole = program.jaxpr
    return Program(Jaxpr(whole.inputs, equations, whole.outputs, whole.name), program.args)


def bodies_of(program: Program) -> Iterator[tuple[int, Jaxpr]]:
    """Yield the position of each equation that holds jaxprs, and these."""
    for position, e in enumerate(program.jaxpr.equations):
        for inner in inner_jaxprs(e.params):
            yield position, inner


# ---------------------------------------------------------------------------------------------- sizes
def sizes_of(jaxpr: Jaxpr) -> list[int]:
    """Return the sizes of dimensions in a program, the smallest first."""
    avals = [v.aval for v in jaxpr.inputs] + [v.aval for e in jaxpr.equations for v in e.outputs]
    return sorted({n for a in avals for n in a.shape if n > 1})


def resized(program: Program, old: int, new: int, last: bool = False) -> Program | None:
    """Return a program whose dimensions of one size have another, or None where that does not fit.

    Parameters with that number change, too; the rules of shapes decide whether the result is a program.

    Args:
        program: the program.
        old: the size.
        new: the size in its place.
        last: True to keep the last elements of arguments, rather than the first.
    """

    def swap(value: Any) -> Any:
        if type(value) is tuple:
            return tuple(map(swap, value))
        return new if type(value) is int and value == old else value

    names: dict[Var, Var] = {}

    def renamed(v: Any) -> Any:
        if type(v) is not Var:
            return v
        return names.setdefault(v, Var(ShapedArray(swap(v.aval.shape), v.aval.dtype, v.aval.weak_type)))

    equations: list[Equation] = []
    jaxpr = program.jaxpr
    try:
        for e in jaxpr.equations:
            if any(True for _ in inner_jaxprs(e.params)):
                return None
            inputs, outputs = list(map(renamed, e.inputs)), list(map(renamed, e.outputs))
            params = {k: swap(v) for k, v in e.params.items()}
            avals = abstract_eval(e.prim, [a.aval for a in inputs], params)
            avals = avals if e.prim.multiple_results else (avals,)
            if [a.strong() for a in avals] != [v.aval.strong() for v in outputs]:
                return None
            equations.append(Equation(e.prim, inputs, params, outputs, e.source))
    except (FtError, ValueError, TypeError, IndexError):
        return None
    inputs = [renamed(v) for v in jaxpr.inputs]
    cut = lambda n, m: slice(max(m - n, 0), m) if last else slice(0, n)
    args = [
        x[tuple(cut(n, m) for n, m in zip(v.aval.shape, x.shape, strict=True))]
        for x, v in zip(program.args, inputs, strict=True)
    ]
    if any(x.shape != v.aval.shape for x, v in zip(args, inputs, strict=True)):
        return None
    return Program(Jaxpr(inputs, equations, [renamed(a) for a in jaxpr.outputs], jaxpr.name), args)
