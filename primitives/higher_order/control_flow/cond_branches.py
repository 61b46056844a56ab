"""Shared parts of the branches of a `cond`: operands for the values each closes over, and slots for residuals."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import core
from functorch_like.avals import ShapedArray
from functorch_like.core import aval_of
from functorch_like.ir import passes
from functorch_like.ir.jaxpr import Jaxpr, Var, evaluate
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives.base.shapes import zeros
from functorch_like.primitives.higher_order.jaxpr_jvp_and_batch import Derived
from functorch_like.primitives.higher_order.partial_eval import PartialEval, partial_eval_jaxpr
from functorch_like.primitives.structural import convert_element_type

Branches = tuple[Jaxpr, ...]


#: Combinations with one first branch that are remembered; the oldest is dropped first.
_MOST = 32


def branches_memo(branches: Sequence[Jaxpr], key: Any, make: Callable[[], Any]) -> Any:
    """Return the value derived from branches together; make it at the first request.

    The memo is kept on the first branch. That may live for ever while others are made anew for each call, so the number
    of kept values is bounded.
    """
    combinations: dict[Any, dict[Any, Any]] = branches[0].memo("branches", dict)
    rest = tuple(branches[1:])
    memo = combinations.get(rest)
    if memo is None:
        while len(combinations) >= _MOST:
            combinations.pop(next(iter(combinations)), None)
        memo = combinations[rest] = {}
    try:
        return memo[key]
    except KeyError:
        made = memo[key] = make()
        return made


def united(parts: Sequence[Any]) -> tuple[list[Any], Branches]:
    """Branches that all take the values that any of them closes over.

    Args:
        parts: of each branch its jaxpr and the values of its first inputs (and anything after).

    Returns:
        The values, each once, and the branches, whose first inputs they are.
    """
    values: dict[int, Any] = {id(c): c for _, consts, *_ in parts for c in consts}
    branches: list[Jaxpr] = []
    for jaxpr, consts, *_ in parts:
        own = dict(zip(map(id, consts), jaxpr.inputs, strict=False))
        first = [own.get(key) or Var(aval_of(c)) for key, c in values.items()]
        rest = jaxpr.inputs[len(consts) :]
        branches.append(Jaxpr([*first, *rest], jaxpr.equations, jaxpr.outputs, jaxpr.name, jaxpr.origin))
    return list(values.values()), tuple(branches)


def passed_through(branches: Branches) -> list[int | None]:
    """Return for each result the position of the operand that every branch returns there; None if there is none."""
    at = [{v: k for k, v in enumerate(b.inputs)} for b in branches]
    places = [
        [known.get(o) if type(o) is Var else None for o in b.outputs] for known, b in zip(at, branches, strict=True)
    ]
    return [column[0] if len(set(column)) == 1 else None for column in zip(*places, strict=True)]


def as_array(out: Any, aval: ShapedArray) -> Any:
    """Return a result as an array: an operand that a branch returns unchanged may be a number of the host."""
    if not isinstance(out, (np.ndarray, np.generic)):
        return out
    return convert_element_type(out, new_dtype=aval.dtype, weak_type=aval.weak_type)


def agreeing(
    branches: Branches, derive: Callable[[Jaxpr, Sequence[bool]], Derived]
) -> tuple[list[Derived], list[bool]]:
    """Derive branches that give the same results: one that is not zero in some branch is there in all of them.

    Args:
        branches: the branches to derive from.
        derive: `(branch, instantiate) -> Derived`, with the results that are there; those of `instantiate` always are.
    """
    parts = [derive(b, ()) for b in branches]
    has = [any(column) for column in zip(*(p.out_info for p in parts), strict=True)]
    return [p if p.out_info == has else derive(b, has) for b, p in zip(branches, parts, strict=True)], has


@dataclasses.dataclass(frozen=True)
class BranchesPartialEval:
    """The branches of a cond taken apart, as `PartialEval`; `known` and `linear` have a jaxpr for each branch.

    The residuals that no other branch has share slots by aval: of each aval there are as many as the branch that
    needs most of it has.
    """

    known: Branches
    consts: list[Any]
    linear: Branches
    residuals: list[tuple[str, int]]
    unknown_out: list[bool]


def partial_eval_branches(branches: Branches, unknown: Sequence[bool]) -> BranchesPartialEval:
    """Partially evaluate branches; all halves take the same operands and give the same results."""
    parts = [partial_eval_jaxpr(b, unknown) for b in branches]
    unknown_out = [any(column) for column in zip(*(p.unknown_out for p in parts), strict=True)]
    results = [k for k, u in enumerate(unknown_out) if not u]  # of the whole: known in all branches
    consts, wide = united([(p.known, p.consts) for p in parts])
    slots: dict[tuple[ShapedArray, int], int] = {}  # by aval, and how many of that aval come before
    sources: list[list[tuple[str, int]]] = []  # of each branch's residuals, in terms of the united operands and results
    private: list[dict[int, int]] = []  # of each branch: the slot, and which result of its known half fills it
    for branch, p in zip(wide, parts, strict=True):
        known_out = [k for k, u in enumerate(p.unknown_out) if not u]
        at: dict[Any, int] = {v: k for k, v in enumerate(branch.inputs)}
        seen: dict[ShapedArray, int] = {}
        fills: dict[int, int] = {}
        slot_of: dict[int, int] = {}
        where: list[tuple[str, int]] = []
        for kind, k in p.residuals:
            if kind == "in":
                where.append(("in", at[p.known.inputs[k]]))
            elif k < len(known_out) and known_out[k] in results:
                where.append(("out", results.index(known_out[k])))
            else:
                if k not in slot_of:
                    aval = p.known.out_avals[k].strong()
                    seen[aval] = seen.get(aval, 0) + 1
                    slot_of[k] = slots.setdefault((aval, seen[aval]), len(slots))
                    fills[slot_of[k]] = k
                where.append(("out", len(results) + slot_of[k]))
        sources.append(where)
        private.append(fills)
    residuals = list(dict.fromkeys(source for where in sources for source in where))
    slot_avals = [aval for aval, _ in slots]
    known = [_known(b, p, results, slot_avals, fills) for b, p, fills in zip(wide, parts, private, strict=True)]
    avals = [(wide[0].in_avals if kind == "in" else known[0].out_avals)[k].strong() for kind, k in residuals]
    out_avals = [a.strong() if u else None for a, u in zip(branches[0].out_avals, unknown_out, strict=True)]
    linear = [
        _linear(p, [residuals.index(s) for s in where], avals, out_avals)
        for p, where in zip(parts, sources, strict=True)
    ]
    return BranchesPartialEval(tuple(known), consts, tuple(linear), residuals, unknown_out)


def _known(
    branch: Jaxpr, p: PartialEval, results: Sequence[int], slots: Sequence[ShapedArray], fills: dict[int, int]
) -> Jaxpr:
    """The known half of a branch: results that are known in all branches, then the slots."""
    known_out = [k for k, u in enumerate(p.unknown_out) if not u]

    def fun(*xs: Any) -> list[Any]:
        outs = evaluate(branch, xs)
        padded = [outs[fills[k]] if k in fills else zeros(aval) for k, aval in enumerate(slots)]
        return [*(outs[known_out.index(k)] for k in results), *padded]

    return _again(branch, fun, branch.in_avals)


def _linear(
    p: PartialEval, reads: Sequence[int], residuals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray | None]
) -> Jaxpr:
    """The linear half of a branch: of the residuals of all branches it reads those at `reads`."""

    def fun(*xs: Any) -> list[Any]:
        own = iter(evaluate(p.linear, [*(xs[k] for k in reads), *xs[len(residuals) :]]))
        cotangents = [next(own) if u else None for u in p.unknown_out]
        return [
            zeros(aval) if f is None else f for f, aval in zip(cotangents, out_avals, strict=True) if aval is not None
        ]

    return _again(p.linear, fun, [*residuals, *p.linear.in_avals[len(reads) :]])


def _again(jaxpr: Jaxpr, fun: Callable[..., list[Any]], avals: Sequence[ShapedArray]) -> Jaxpr:
    made, _ = stage(fun, avals, name=jaxpr.name, origin=jaxpr.origin, parent=core.EVALUATE, chain="")
    return passes.dead_code(made)
