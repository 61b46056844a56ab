"""Bodies of a scan under derivatives.

Residuals of reverse mode that are the same in all steps are computed once, before the loop; those that are slices
already are passed on as they are; only residuals that vary and are not stacked yet are stacked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from functorch_like.ir.jaxpr import Jaxpr, Literal
from functorch_like.primitives.higher_order.control_flow.loop_invariants import hoist, invariants
from functorch_like.primitives.higher_order.control_flow.scan_operands import Groups, groups
from functorch_like.primitives.higher_order.jaxpr_jvp_and_batch import jvp_jaxpr, rearranged
from functorch_like.primitives.higher_order.partial_eval import partial_eval_jaxpr


class Form(NamedTuple):
    """A body: its jaxpr, the values of its first consts, its numbers of consts and carries, facts of its results."""

    jaxpr: Jaxpr
    consts: list[Any]
    num_consts: int
    num_carry: int
    out_info: Any

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of a scan that describe this body."""
        return {"jaxpr": self.jaxpr, "num_consts": self.num_consts, "num_carry": self.num_carry}


def pick(values: Sequence[Any], some: Sequence[bool]) -> list[Any]:
    """The values that are marked."""
    return [v for v, s in zip(values, some, strict=True) if s]


def drop(values: Sequence[Any], some: Sequence[bool]) -> list[Any]:
    """The values that are not marked."""
    return [v for v, s in zip(values, some, strict=True) if not s]


# ----------------------------------------------------------------------------------------------------------- forward
def tangent_form(jaxpr: Jaxpr, num_consts: int, num_carry: int, some: Sequence[bool]) -> Form:
    """The body on primals and tangents; within each group of operands and results, primals come first.

    `out_info` marks which carries have tangents, and which stacked results.
    """

    def make() -> Form:
        c, carries, x = groups(some, num_consts, num_carry)
        free = [False] * (len(jaxpr.outputs) - num_carry)
        while True:
            body, consts, has = jvp_jaxpr(jaxpr, [*c, *carries, *x], [*carries, *free])
            if has[:num_carry] == carries:
                break
            carries = has[:num_carry]
        n, t = len(consts), len(consts) + len(some)  # where primals and tangents start
        primals = groups(range(n, t), num_consts, num_carry)
        tangents = groups(range(t, len(body.inputs)), sum(c), sum(carries))
        inputs = Groups(*(p + q for p, q in zip(primals, tangents, strict=True)))
        outs = groups(range(len(has)), 0, num_carry)
        out_tangents = groups(range(len(has), len(body.outputs)), 0, sum(carries))
        outputs = [*outs.carries, *out_tangents.carries, *outs.slices, *out_tangents.slices]
        made = rearranged(body, [*range(n), *inputs.consts, *inputs.carries, *inputs.slices], outputs)
        return Form(made, consts, n + len(inputs.consts), len(inputs.carries), (carries, has[num_carry:]))

    return jaxpr.memo(("scan jvp", num_consts, num_carry, tuple(some)), make)


# ------------------------------------------------------------------------------------------------------------ halves
class BodyPartialEval(NamedTuple):
    """The halves of a body, each a body.

    Attributes:
        carries: which are unknown.
        before: takes the consts of the known half; gives the values that all steps share: first residuals, then the
            first inputs of the known half.
        shared: how many residuals that is.
        known: its stacked results are those of the whole, then stacked residuals.
        linear: its first consts, and first slices, are the residuals.
        residuals: where they come from: ("const", k), a const of the known half; ("before", k), a result of `before`;
            ("slice", k), a stacked operand of the known half; ("stack", k), a stacked result of it.
        constant: how many of the residuals are consts of the linear half.
        unknown_out: which results of the whole are unknown.
    """

    carries: list[bool]
    before: Jaxpr
    shared: int
    known: Form
    linear: Form
    residuals: list[tuple[str, int]]
    constant: int
    unknown_out: list[bool]


def partial_eval_body(jaxpr: Jaxpr, num_consts: int, num_carry: int, unknown: Sequence[bool]) -> BodyPartialEval:
    """Partially evaluate a body: a known half to run now, and a half that is linear in the unknown operands."""
    key = ("scan partial_eval", num_consts, num_carry, tuple(unknown))
    return jaxpr.memo(key, lambda: _partial_eval_body(jaxpr, num_consts, num_carry, unknown))


def _partial_eval_body(jaxpr: Jaxpr, num_consts: int, num_carry: int, unknown: Sequence[bool]) -> BodyPartialEval:
    c, carries, x = groups(unknown, num_consts, num_carry)
    free = [False] * (len(jaxpr.outputs) - num_carry)
    while True:
        parts = partial_eval_jaxpr(jaxpr, [*c, *carries, *x], [*carries, *free])
        if parts.unknown_out[:num_carry] == carries:
            break
        carries = parts.unknown_out[:num_carry]
    known = parts.known
    num_known, num_kept = len(parts.consts) + num_consts - sum(c), num_carry - sum(carries)
    inputs = groups(known.inputs, num_known, num_kept)
    same = invariants(known, inputs.consts)
    shared: list[Any] = []
    outputs = list(known.outputs[: len(parts.unknown_out) - sum(parts.unknown_out)])
    stacked = outputs[num_kept:]

    def source(kind: str, k: int) -> tuple[str, int]:
        atom = known.inputs[k] if kind == "in" else known.outputs[k]
        if atom in inputs.consts:
            return "const", inputs.consts.index(atom)
        if type(atom) is Literal or atom in same:
            return "before", _position(shared, atom)
        if atom in inputs.slices:
            return "slice", inputs.slices.index(atom)
        return "stack", _position(stacked, atom)

    sources = [source(kind, k) for kind, k in parts.residuals]
    order = sorted(range(len(sources)), key=lambda i: sources[i][0] in ("slice", "stack"))
    constant = sum(kind in ("const", "before") for kind, _ in sources)
    whole = Jaxpr(known.inputs, known.equations, [*outputs[:num_kept], *stacked], known.name, known.origin)
    before, body = hoist(whole, num_known, shared)
    mine = groups(range(len(sources), len(parts.linear.inputs)), sum(c), sum(carries))
    linear = [*order[:constant], *mine.consts, *mine.carries, *order[constant:], *mine.slices]
    return BodyPartialEval(
        carries,
        before,
        len(shared),
        Form(body, parts.consts, len(body.inputs) - len(known.inputs) + num_known, num_kept, None),
        Form(rearranged(parts.linear, linear), [], constant + sum(c), sum(carries), None),
        [sources[i] for i in order],
        constant,
        parts.unknown_out,
    )


def _position(atoms: list[Any], atom: Any) -> int:
    """Return the position of an atom in a list; append it if it was not there."""
    if atom not in atoms:
        atoms.append(atom)
    return atoms.index(atom)
