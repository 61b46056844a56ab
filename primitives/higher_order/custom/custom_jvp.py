"""custom_jvp_call: a function with a rule of the user's for forward mode, of which reverse mode is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import core
from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, SampleInput
from functorch_like.interpreters import forward
from functorch_like.interpreters.batching import BatchTrace
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives.elementwise.arithmetic import mul
from functorch_like.primitives.elementwise.transcendental import sin
from functorch_like.primitives.higher_order.custom.base import Fun, Mapped, custom_primitive, explicit, out_avals
from functorch_like.source_info import name_of

#: `(primals, tangents, expected) -> (results, their tangents)`: tangents that are zero are None, and `expected` are
#: the avals of the results, where they are known.
Rule = Callable[[Sequence[Any], Sequence[Any], Any], tuple[Sequence[Any], Sequence[Any]]]


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, fun: Fun, rule: Rule, consts: int
) -> tuple[Sequence[Any], Sequence[Any]]:
    return rule(*explicit(primals, tangents, consts, fun), out_avals(fun))


def _batch(
    over: BatchTrace | BatchAxis, args: Sequence[Any], dims: Sequence[int | None], *, fun: Fun, rule: Rule, consts: int
) -> tuple[Sequence[Any], Sequence[int | None]]:
    mapped = Mapped(over, dims)
    both = {"fun": mapped.function(fun, dims), "rule": _mapped_rule(mapped, rule, dims[consts:])}
    outs = custom_jvp_call(*args, **both, consts=consts)
    assert mapped.where is not None
    return outs, mapped.where


def _mapped_rule(mapped: Mapped, rule: Rule, dims: Sequence[int | None]) -> Rule:
    def mapped_rule(primals: Sequence[Any], tangents: Sequence[Any], expected: Any) -> tuple[list[Any], list[Any]]:
        some = [t is not None for t in tangents]
        has: list[bool] = []

        def flat(*xs: Any) -> list[Any]:
            rest = iter(xs[len(dims) :])
            directions = [next(rest) if s else None for s in some]
            outs, ts = rule(xs[: len(dims)], directions, mapped.element(expected))
            has[:] = [t is not None for t in ts]
            return [*outs, *(t for t in ts if t is not None)]

        args = [*primals, *(t for t in tangents if t is not None)]
        results, where = mapped.run(flat, args, [*dims, *(d for d, s in zip(dims, some, strict=True) if s)])
        n = len(has)
        outs = mapped.results(results[:n], where[:n])
        assert mapped.where is not None
        rest = iter(zip(results[n:], where[n:], strict=True))
        return outs, [mapped.place(*next(rest), w) if h else None for h, w in zip(has, mapped.where, strict=True)]

    mapped_rule.__name__ = name_of(rule)
    return mapped_rule


def _samples() -> list[SampleInput]:
    vector = ShapedArray((3,), np.dtype("float32"))
    fun = lambda x, y: [mul(sin(x), y), sin(y)]
    jaxpr, _ = stage(fun, [vector, vector], name="f", parent=core.EVALUATE)

    def derived(primals: Sequence[Any], tangents: Sequence[Any], expected: Any) -> tuple[list[Any], list[Any]]:
        return forward.jvp(fun, primals, tangents)

    return [SampleInput((vector, vector), {"fun": jaxpr, "rule": derived, "consts": 0})]


custom_jvp_call = custom_primitive("custom_jvp_call", jvp=_jvp, batch=_batch, samples=_samples)
