"""custom_vmap_call: a function with a rule of the user's for batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import core, dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, SampleInput, aval_of
from functorch_like.errors import ArgumentError, ConcretizationError
from functorch_like.interpreters import batching, forward
from functorch_like.interpreters.batching import BatchTrace
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives import structural
from functorch_like.primitives.elementwise.arithmetic import mul
from functorch_like.primitives.elementwise.transcendental import sin
from functorch_like.primitives.higher_order.custom.base import (
    Fun,
    Mapped,
    custom_primitive,
    explicit,
    out_avals,
    run,
)
from functorch_like.source_info import name_of

#: `(axis size, which arguments are batched, arguments, expected) -> (results, which are batched)`. The axis is the
#: leading one everywhere, and `expected` are the avals of one element's results, where they are known.
Rule = Callable[[int, Sequence[bool], Sequence[Any], Any], tuple[Sequence[Any], Sequence[bool]]]


def _batch(
    over: BatchTrace | BatchAxis, args: Sequence[Any], dims: Sequence[int | None], *, fun: Fun, rule: Rule, consts: int
) -> tuple[Sequence[Any], Sequence[int | None]]:
    batched = [d is not None for d in dims]
    if any(batched[:consts]):
        aval = next(aval_of(a) for a, b in zip(args, batched, strict=True) if b)
        raise ArgumentError(
            f"{name_of(fun)}, a custom_vmap function, closes over a value that vmap maps over, here {aval!r}, and its "
            "rule is given arguments only",
            fix="pass the value as an argument",
            operation=name_of(fun),
        )
    if not any(batched):  # it may close over values of the map
        mapped = Mapped(over, dims)
        return mapped.run(lambda *xs: run(fun, xs), args, dims)
    size = over.size if isinstance(over, BatchAxis) else over.axis.size
    leading = [a if d is None else structural.move(a, d, 0) for a, d in zip(args[consts:], dims[consts:], strict=True)]
    outs, out_batched = rule(size, batched[consts:], leading, _expected(fun, args, dims))
    return outs, [0 if b else None for b in out_batched]


def _expected(fun: Fun, args: Sequence[Any], dims: Sequence[int | None]) -> Sequence[ShapedArray] | None:
    """The avals of one element's results; None where the function only runs on values, not traced."""
    known = out_avals(fun)
    if known is not None:
        return known
    shapes = [(aval_of(a), d) for a, d in zip(args, dims, strict=True)]
    avals = [a if d is None else a.without_dimension(d) for a, d in shapes]
    try:
        return stage(lambda *xs: run(fun, xs), avals, name=name_of(fun))[0].out_avals
    except ConcretizationError:
        return None


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, fun: Fun, rule: Rule, consts: int
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Make the function with its tangents a custom_vmap function, too; its rule is the rule with its tangents."""
    some = tuple(t is not None for t in tangents)
    inexact: list[bool] = []

    def pushed(of: Callable[..., Sequence[Any]], xs: Sequence[Any], directions: Sequence[Any]) -> list[Any]:
        """Results, and the tangents of those that have any, zeros written out."""
        outs, ts = forward.jvp(of, xs, directions)
        avals = [aval_of(o) for o in outs]
        inexact[:] = [dtypes.is_inexact(a.dtype) for a in avals]
        whole = [structural.zeros(a.strong()) if t is None else t for a, t in zip(avals, ts, strict=True)]
        return [*outs, *(t for t, i in zip(whole, inexact, strict=True) if i)]

    def derived(*flat: Any) -> list[Any]:
        return pushed(lambda *ys: run(fun, ys), *_dealt(flat, some, consts))

    def derived_rule(size: int, batched: Sequence[bool], args: Sequence[Any], expected: Any) -> Any:
        explicit(primals, tangents, consts, fun)
        # An argument and its tangent have the axis both, or neither.
        given_some = some[consts:]
        own, of_tangents = _dealt(batched, given_some)
        both = [b or bool(t) for b, t in zip(own, of_tangents, strict=True)]
        xs, directions = (
            [
                structural.widen(x, size) if x is not None and w and not b else x
                for x, b, w in zip(part, has, both, strict=True)
            ]
            for part, has in zip(_dealt(args, given_some), (own, of_tangents), strict=True)
        )
        out_batched: list[bool] = []

        def of(*ys: Any) -> Sequence[Any]:
            outs, out_batched[:] = rule(size, both, ys, None)
            return outs

        outs = pushed(of, xs, directions)
        return outs, [*out_batched, *(b for b, i in zip(out_batched, inexact, strict=True) if i)]

    derived.__name__, derived_rule.__name__ = name_of(fun), name_of(rule)
    closed = [t for t in tangents[:consts] if t is not None]
    operands = [*primals[:consts], *closed, *primals[consts:], *(t for t in tangents[consts:] if t is not None)]
    outs = custom_vmap_call(*operands, fun=derived, rule=derived_rule, consts=consts + len(closed))
    rest = iter(outs[len(inexact) :])
    return outs[: len(inexact)], [next(rest) if i else None for i in inexact]


def _dealt(flat: Sequence[Any], some: Sequence[bool], consts: int = 0) -> tuple[list[Any], list[Any]]:
    """Primals, and tangents or None, of operands in the order: consts, tangents of consts, args, tangents of args."""
    closed = consts + sum(some[:consts])
    first, last = iter(flat[consts:closed]), iter(flat[closed + len(some) - consts :])
    primals = [*flat[:consts], *flat[closed : closed + len(some) - consts]]
    return primals, [(next(first) if k < consts else next(last)) if s else None for k, s in enumerate(some)]


def _samples() -> list[SampleInput]:
    vector = ShapedArray((3,), np.dtype("float32"))
    jaxpr, _ = stage(lambda x, y: [mul(sin(x), y), sin(y)], [vector, vector], name="f", parent=core.EVALUATE)

    def derived(size: int, batched: Sequence[bool], args: Sequence[Any], expected: Any) -> tuple[list[Any], list[bool]]:
        dims = [0 if b else None for b in batched]
        outs, where = batching.batch(lambda *xs: run(jaxpr, xs), BatchAxis(size), args, dims)
        return [o if d is None else structural.move(o, d, 0) for o, d in zip(outs, where, strict=True)], [
            d is not None for d in where
        ]

    return [SampleInput((vector, vector), {"fun": jaxpr, "rule": derived, "consts": 0})]


custom_vmap_call = custom_primitive("custom_vmap_call", jvp=_jvp, batch=_batch, samples=_samples)
