"""Flow of values through the steps of a loop: values that all steps share, and dependences after some steps."""

from __future__ import annotations

from collections.abc import Sequence

from functorch_like.ir.jaxpr import Atom, Equation, Jaxpr, Literal, Var, effects


def invariants(jaxpr: Jaxpr, consts: Sequence[Var]) -> set[Var]:
    """The variables that have the same value in all steps."""
    results = set(consts)
    for e in jaxpr.equations:
        if not effects(e) and all(type(a) is Literal or a in results for a in e.inputs):
            results.update(e.outputs)
    return results


def hoist(jaxpr: Jaxpr, num_consts: int, atoms: Sequence[Atom]) -> tuple[Jaxpr, Jaxpr]:
    """Take out of a body the equations that some of its invariants need.

    Returns:
        A jaxpr of the consts that gives the `atoms`, and after them what the rest of the body reads of it; and
        the rest, for which the latter are its first inputs.
    """
    needed = {a for a in atoms if type(a) is Var}
    before: list[Equation] = []
    rest: list[Equation] = []
    for e in reversed(jaxpr.equations):
        if any(v in needed for v in e.outputs):
            before.append(e)
            needed.update(a for a in e.inputs if type(a) is Var)
        else:
            rest.append(e)
    before.reverse()
    rest.reverse()
    made = {v for e in before for v in e.outputs}
    read = {a: None for e in rest for a in e.inputs if a in made} | {a: None for a in jaxpr.outputs if a in made}
    first = Jaxpr(
        jaxpr.inputs[:num_consts],
        before,
        [*atoms, *read],
        f"{jaxpr.name}_before",
        f"shared by all steps of {jaxpr.name}",
    )
    return first, Jaxpr([*read, *jaxpr.inputs], rest, jaxpr.outputs, jaxpr.name, jaxpr.origin)


def reached(jaxpr: Jaxpr, first: int, carries: int, some: Sequence[bool]) -> list[bool]:
    """Return the carries of a body that depend on some of its inputs, at once or after some steps.

    Args:
        jaxpr: the body; its first results are the carries.
        first: which input is the first carry.
        carries: how many there are.
        some: inputs.
    """

    def make() -> list[bool]:
        own = jaxpr.inputs[first : first + carries]
        dependent = {v for v, s in zip(jaxpr.inputs, some, strict=True) if s}
        before = -1
        while len(dependent) != before:
            before = len(dependent)
            for e in jaxpr.equations:
                dependent.update(_dependent(e, dependent))
            dependent.update(v for v, o in zip(own, jaxpr.outputs, strict=False) if type(o) is Var and o in dependent)
        return [v in dependent for v in own]

    return jaxpr.memo(("reached", first, carries, tuple(some)), make)


def _dependent(e: Equation, variables: set[Var]) -> list[Var]:
    """Return the results of an equation that depend on some variables.

    Of a higher-order primitive that was differentiated, results that are primals depend on no tangent.
    """
    some = [type(a) is Var and a in variables for a in e.inputs]
    if not any(some) or e.prim.dce is None:
        return list(e.outputs) if any(some) else []
    dependent: list[Var] = []
    for k, v in enumerate(e.outputs):
        needed = e.prim.dce(tuple(i == k for i in range(len(e.outputs))), **e.params)[0]
        if any(s and n for s, n in zip(some, needed, strict=True)):
            dependent.append(v)
    return dependent
