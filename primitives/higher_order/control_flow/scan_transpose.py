"""The transpose of a scan: a scan over the steps in the opposite order, which hands cotangents of carries on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from functorch_like.avals import ShapedArray
from functorch_like.core import UndefinedPrimal, aval_of
from functorch_like.ir import passes
from functorch_like.ir.jaxpr import Equation, Jaxpr, Var
from functorch_like.primitives.base.accumulating import widened
from functorch_like.primitives.base.elementwise_makers import add
from functorch_like.primitives.base.shapes import zeros
from functorch_like.primitives.higher_order.control_flow.loop_invariants import invariants
from functorch_like.primitives.higher_order.control_flow.scan_batched_products import Product, products, worthwhile
from functorch_like.primitives.higher_order.control_flow.scan_jvp_and_partial_eval import drop, pick
from functorch_like.primitives.higher_order.control_flow.scan_operands import groups
from functorch_like.primitives.higher_order.jaxpr_transpose import transposed
from functorch_like.primitives.structural import convert_element_type


class Transposed(NamedTuple):
    """The body of a transposed scan.

    Its consts are known ones. Its carries are the cotangents of consts so far, then the cotangents of carries. Its
    slices are the cotangents of stacked results, then known ones. It gives carries, the cotangents of slices, and
    factors of products that are summed after the loop.

    Attributes:
        jaxpr: the body.
        consts: the values of its first consts.
        carries: which carries have cotangents.
        has: which inputs of the scan's body have cotangents.
        summed: of the consts that have, which are summed in the loop.
        sums: for the others, the terms: a product, and where its factors are.
        known_consts, known_slices: which of the known ones are read.
    """

    jaxpr: Jaxpr
    consts: list[Any]
    carries: list[bool]
    has: list[bool]
    summed: list[bool]
    sums: list[list[tuple[Product, Any, Any]]]
    known_consts: list[bool]
    known_slices: list[bool]


def transposed_form(
    jaxpr: Jaxpr, num_consts: int, num_carry: int, linear: Sequence[bool], some: Sequence[bool]
) -> Transposed:
    """The body that pulls cotangents back.

    Args:
        jaxpr: linear in all its carries.
        num_consts: how many consts it has.
        num_carry: how many carries.
        linear: which inputs it is linear in.
        some: which results have cotangents; those of carries by the end of the loop.
    """
    key = ("scan transpose", num_consts, num_carry, tuple(linear), tuple(some))
    return jaxpr.memo(key, lambda: _transposed_form(jaxpr, num_consts, num_carry, linear, some))


def _transposed_form(
    jaxpr: Jaxpr, num_consts: int, num_carry: int, linear: Sequence[bool], some: Sequence[bool]
) -> Transposed:
    c, _, x = groups(linear, num_consts, num_carry)
    carries, ys = list(some[:num_carry]), list(some[num_carry:])
    while True:
        instantiate = [*[False] * num_consts, *carries, *[False] * len(x)]
        body, consts, has = transposed(jaxpr, linear, [*carries, *ys], instantiate)
        grown = has[num_consts : num_consts + num_carry]
        if grown == carries:
            break
        carries = grown
    n, known = len(consts), len(linear) - sum(linear)
    known_consts, _, known_slices = groups(body.inputs[n : n + known], num_consts - sum(c), 0)
    ct_carries, _, ct_ys = groups(body.inputs[n + known :], sum(carries), 0)
    outs = groups(body.outputs, sum(has[:num_consts]), sum(carries))
    same = invariants(body, [*body.inputs[:n], *known_consts])
    values = [*ct_ys, *known_slices]
    stacked: list[Any] = list(outs.slices)
    sums: list[Any] = []
    for weight in outs.consts:
        terms = products(body, weight, same)
        if terms is None or not worthwhile(terms, {*values, *stacked}, weight):
            sums.append(None)
        else:
            sums.append([(t, _place(t.left, values, stacked), _place(t.right, values, stacked)) for t in terms])
    weights = [w for w, s in zip(outs.consts, sums, strict=True) if s is None]
    before = [Var(widened(w.aval.strong())) for w in weights]
    after = [Var(v.aval) for v in before]
    added = [e for b, w, a in zip(before, weights, after, strict=True) for e in _adding(b, w, a)]
    whole = [*body.inputs[:n], *known_consts, *before, *ct_carries, *ct_ys, *known_slices]
    outputs = [*after, *outs.carries, *stacked]
    made = passes.dead_code(Jaxpr(whole, [*body.equations, *added], outputs, body.name, body.origin))
    read = dict(zip(whole, passes.used_inputs(made), strict=True))
    read_consts, read_slices = [read[v] for v in known_consts], [read[v] for v in known_slices]
    inputs = [*body.inputs[:n], *pick(known_consts, read_consts), *before, *ct_carries, *ct_ys]
    return Transposed(
        Jaxpr([*inputs, *pick(known_slices, read_slices)], made.equations, outputs, body.name, body.origin),
        consts,
        carries,
        has,
        [s is None for s in sums],
        [s for s in sums if s is not None],
        read_consts,
        read_slices,
    )


def _adding(total: Var, term: Any, out: Var) -> list[Equation]:
    """Equations that add a term to a sum, which may be of a wider dtype."""
    if term.aval.dtype == total.aval.dtype:
        return [Equation(add, [total, term], {}, [out], None)]
    wide = Var(term.aval.strong().update(dtype=total.aval.dtype))
    converted = Equation(convert_element_type, [term], {"new_dtype": wide.aval.dtype}, [wide], None)
    return [converted, Equation(add, [total, wide], {}, [out], None)]


def _place(v: Var, values: list[Any], stacked: list[Any]) -> tuple[bool, int]:
    """Position of a value stacked after the loop: among the slices it takes (True), or those it gives."""
    if v in values:
        return True, values.index(v)
    if v not in stacked:
        stacked.append(v)
    return False, stacked.index(v)


def pulled(
    cts: Sequence[Any], args: Sequence[Any], *, jaxpr: Jaxpr, num_consts: int, num_carry: int
) -> tuple[list[Any], dict[str, Any], Callable[[Sequence[Any]], list[Any]]]:
    """Operands and parameters of the transposed scan, and a function from its results to cotangents of all operands."""
    grouped = groups(args, num_consts, num_carry)
    flags = groups([type(a) is UndefinedPrimal for a in args], num_consts, num_carry)
    linear = [*flags.consts, *[True] * num_carry, *flags.slices]
    form = transposed_form(jaxpr, num_consts, num_carry, linear, [c is not None for c in cts])
    ends = [
        zeros(aval_of(x).strong()) if ct is None else ct
        for x, ct, h in zip(grouped.carries, cts, form.carries, strict=False)
        if h
    ]
    weights = pick(grouped.consts, form.has[:num_consts])
    consts = [*form.consts, *pick(drop(grouped.consts, flags.consts), form.known_consts)]
    kept = [aval_of(w).strong() for w in pick(weights, form.summed)]
    carries = [*(zeros(widened(aval)) for aval in kept), *ends]
    slices, known = [ct for ct in cts[num_carry:] if ct is not None], drop(grouped.slices, flags.slices)
    operands = [*consts, *carries, *slices, *pick(known, form.known_slices)]

    def finish(outs: Sequence[Any]) -> list[Any]:
        sums, back, stacked = groups(outs, sum(form.summed), sum(form.carries))
        sums = [_as(x, aval) for x, aval in zip(sums, kept, strict=True)]
        stacks = {True: [*slices, *known], False: stacked}
        in_loop, after = iter(sums), iter(form.sums)
        cotangents = iter(
            [
                *(next(in_loop) if s else _total(next(after), stacks) for s in form.summed),
                *back,
                *stacked[: sum(form.has[num_consts + num_carry :])],
            ]
        )
        whole = [next(cotangents) if h else None for h in form.has]
        return [f if type(a) is UndefinedPrimal else None for f, a in zip(whole, args, strict=True)]

    return operands, {"jaxpr": form.jaxpr, "num_consts": len(consts), "num_carry": len(carries)}, finish


def _as(x: Any, aval: ShapedArray) -> Any:
    return x if aval_of(x).dtype == aval.dtype else convert_element_type(x, new_dtype=aval.dtype)


def _total(terms: Sequence[tuple[Product, Any, Any]], stacks: dict[bool, list[Any]]) -> Any:
    total: Any = None
    for product, (taken, i), (also_taken, j) in terms:
        value = product.of_all_steps(stacks[taken][i], stacks[also_taken][j])
        total = value if total is None else add(total, value)
    return total
