"""The `linear_solve` primitive: the solution of `matvec(x) = b`, by any method, differentiated implicitly.

Its derivative is another solution for the same map, and its transpose one for the transposed map (Giles, "An extended
collection of matrix derivative results", 2008). So the solver's own steps are never differentiated.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import core
from functorch_like.avals import ShapedArray, fit
from functorch_like.backends import xla
from functorch_like.compiler.lower import emit
from functorch_like.core import BatchAxis, Primitive, SampleInput, aval_of
from functorch_like.errors import DifferentiationError, ShapeError
from functorch_like.ir import passes
from functorch_like.ir.jaxpr import Jaxpr, evaluate
from functorch_like.ir.reference import reference
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.higher_order.call import CallSpec, call
from functorch_like.primitives.higher_order.jaxpr_jvp_and_batch import (
    ANYWHERE,
    batch_jaxpr,
    jvp_jaxpr,
    rearranged,
)

#: The four functions, in the order in which their closed-over values come among the operands.
Functions = tuple[Jaxpr, "Jaxpr | None", Jaxpr, "Jaxpr | None"]


class _Operands:
    """Operands taken apart: the closed-over values of each function, and the right-hand side."""

    def __init__(self, values: Sequence[Any], counts: Sequence[int]) -> None:
        ends = np.cumsum([0, *counts]).tolist()
        self.groups = [list(values[a:b]) for a, b in itertools.pairwise(ends)]
        self.matvec, self.vecmat, self.solve, self.transpose_solve = self.groups
        self.b = list(values[ends[-1] :])

    def flat(self) -> list[Any]:
        return [v for group in (*self.groups, self.b) for v in group]


# ------------------------------------------------------------------------------------------------------------- rules
def _shape(*avals: ShapedArray, functions: Functions, counts: tuple[int, ...]) -> tuple[ShapedArray, ...]:
    groups = _Operands(avals, counts)
    solve = functions[2]
    if not fit([*groups.solve, *groups.b], solve.in_avals):
        raise ShapeError(
            f"the solver takes {solve.in_avals}, got {[*groups.solve, *groups.b]}",
            fix="pass operands with the avals it was traced with",
        )
    return tuple(a.strong() for a in solve.out_avals)


def _operands_of_solve(values: Sequence[Any], counts: tuple[int, ...]) -> list[Any]:
    groups = _Operands(values, counts)
    return [*groups.solve, *groups.b]


def _lower(e: xla.Emitter, *values: Any, functions: Functions, counts: tuple[int, ...]) -> list[Any]:
    solve = functions[2]
    simple = solve.memo("simple", lambda: passes.simplify(solve))
    return emit(e, simple, _operands_of_solve(values, counts), inlined=True)


def _evaluate(args: Sequence[Any], params: dict[str, Any]) -> Any:
    operands = _operands_of_solve(args, params["counts"])
    assert call.evaluate is not None
    return call.evaluate(operands, {"jaxpr": params["functions"][2], "spec": CallSpec("linear_solve")})


def _alone(jaxpr: Jaxpr | None, count: int) -> Jaxpr | None:
    """A solver without its results besides the solution."""
    if jaxpr is None or len(jaxpr.outputs) == count:
        return jaxpr
    make = lambda: passes.dead_code(rearranged(jaxpr, range(len(jaxpr.inputs)), range(count)))
    return jaxpr.memo(("alone", count), make)


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, functions: Functions, counts: tuple[int, ...]
) -> tuple[list[Any], list[Any]]:
    matvec, vecmat, solve, transpose_solve = functions
    groups, moved = _Operands(primals, counts), _Operands(tangents, counts)
    outs = linear_solve(*primals, functions=functions, counts=counts)
    n = len(groups.b)
    right: list[Any] = moved.b
    if any(t is not None for t in moved.matvec):
        some = [t is not None for t in moved.matvec] + [False] * n
        derived, consts, has = jvp_jaxpr(matvec, some)
        products = evaluate(derived, [*consts, *groups.matvec, *outs[:n], *(t for t in moved.matvec if t is not None)])
        rest = iter(products[len(has) :])
        pushed = [next(rest) if h else None for h in has]
        right = [_minus(t, p) for t, p in zip(right, pushed, strict=True)]
    if all(t is None for t in right):
        return outs, [None] * len(outs)
    groups.b = [structural.zeros(aval_of(x).strong()) if t is None else t for t, x in zip(right, groups.b, strict=True)]
    alone = (matvec, vecmat, _alone(solve, n), _alone(transpose_solve, n))
    solution = linear_solve(*groups.flat(), functions=alone, counts=counts)
    return outs, [*solution, *[None] * (len(outs) - n)]


def _minus(a: Any, b: Any) -> Any:
    if b is None:
        return a
    return elementwise.neg(b) if a is None else elementwise.sub(a, b)


def _transpose(cts: Sequence[Any], args: Sequence[Any], *, functions: Functions, counts: tuple[int, ...]) -> list[Any]:
    matvec, vecmat, solve, transpose_solve = functions
    groups = _Operands(args, counts)
    if vecmat is None or transpose_solve is None:
        raise DifferentiationError(
            "the solution of a linear system has a reverse-mode derivative only if the transposed system can be solved",
            fix="give custom_linear_solve a transpose_solve, or pass symmetric=True where the map is its own transpose",
        )
    n = len(groups.b)
    groups.b = [structural.zeros(a.aval.strong()) if c is None else c for c, a in zip(cts[:n], groups.b, strict=True)]
    groups.groups = [groups.vecmat, groups.matvec, groups.transpose_solve, groups.solve]
    swapped = (vecmat, matvec, _alone(transpose_solve, n), _alone(solve, n))
    order = (counts[1], counts[0], counts[3], counts[2])
    back = linear_solve(*groups.flat(), functions=swapped, counts=order)
    return [*[None] * sum(counts), *back]


def _batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any], *, functions: Functions, counts: tuple[int, ...]
) -> tuple[list[Any], list[Any]]:
    groups, at = _Operands(args, counts), _Operands(dims, counts)
    n = len(groups.b)
    # One map or one right-hand side for each element: either way there is one solution for each.
    groups.b = [
        structural.widen(x, axis.size) if d is None else structural.move(x, d, 0)
        for x, d in zip(groups.b, at.b, strict=True)
    ]
    mapped: list[Any] = []
    where: list[Any] = []
    for k, jaxpr in enumerate(functions):
        if jaxpr is None:
            mapped.append(None)
            continue
        rest = [ANYWHERE] * (len(jaxpr.outputs) - n)
        derived, consts, out_dims = batch_jaxpr(jaxpr, axis, [*at.groups[k], *[0] * n], [*[0] * n, *rest])
        mapped.append(derived)
        groups.groups[k] = [*consts, *groups.groups[k]]
        if k == 2:
            where = out_dims
    wider = tuple(len(group) for group in groups.groups)
    return linear_solve(*groups.flat(), functions=tuple(mapped), counts=wider), where


# ------------------------------------------------------------------------------------------------------------ samples
def _samples() -> list[SampleInput]:
    """The cyclic system 2 x[i] + x[i + 1] = b[i] of three unknowns, whose inverse is (4 - 2 turn + turn turn) / 9."""
    vector = ShapedArray((3,), np.float32)

    def turned(x: Any, by: int) -> Any:
        part = lambda start, end: structural.slice(x, start_indices=(start,), limit_indices=(end,), strides=None)
        return structural.concatenate(part(by, 3), part(0, by), dimension=0)

    times = lambda x, c: elementwise.mul(x, structural.full((3,), c, np.dtype(np.float32)))
    matvec = lambda by: lambda x: [elementwise.add(times(x, 2), turned(x, by))]
    solve = lambda by: (
        lambda b: [
            times(elementwise.add(elementwise.sub(times(b, 4), times(turned(b, by), 2)), turned(b, 3 - by)), 1 / 9),
            structural.reduce_sum(b, axes=(0,)),
        ]
    )
    functions = [matvec(1), matvec(2), solve(1), solve(2)]
    staged = tuple(stage(f, [vector], name=f"f{k}", parent=core.EVALUATE)[0] for k, f in enumerate(functions))
    return [
        SampleInput((vector,), {"functions": (*staged[:2], *(_alone(f, 1) for f in staged[2:])), "counts": (0,) * 4})
    ]


linear_solve = Primitive(
    "linear_solve",
    shape=_shape,
    ref=lambda *xs, functions, counts: tuple(reference(functions[2], _operands_of_solve(xs, counts))),
    lower=_lower,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    samples=_samples,
    partial_eval=lambda tape, args, params: tape.record(linear_solve, args, params),  # only b is unknown: it is linear
    evaluate=_evaluate,
    effects=lambda *, functions, counts: functions[2].effects,
    multiple_results=True,
)
