"""Checks inside of functions with custom rules, which keep their rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functorch_like.checkify.rules import RULES
from functorch_like.checkify.run import checked, run
from functorch_like.checkify.state import State
from functorch_like.core import Primitive, aval_of
from functorch_like.ir.jaxpr import Jaxpr, evaluate
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives.higher_order.custom.custom_jvp import custom_jvp_call
from functorch_like.primitives.higher_order.custom.custom_vjp import custom_vjp_call
from functorch_like.primitives.higher_order.custom.custom_vmap import custom_vmap_call


def _custom(rule: str) -> Any:
    """Make a rule that checks the function. `rule` is the parameter with its custom rule, which gets failures, too."""

    def custom(
        state: State, source: Any, prim: Primitive, operands: Sequence[Any], params: dict[str, Any]
    ) -> list[Any]:
        jaxpr: Jaxpr = params["fun"]
        part = checked(jaxpr, state.checks)
        if part.same:
            return list(prim(*operands, **params))
        count, consts = len(jaxpr.outputs), params["consts"]
        wrap = _with_jvp if rule == "rule" else _with_vjp
        closed = [*part.consts, *operands[:consts]]
        more = lambda args: evaluate(part.jaxpr, [*closed, *args])[count:]
        outs = prim(
            *part.consts, *operands,
            **{**params, "fun": part.jaxpr, "consts": len(closed), rule: wrap(params[rule], more, count)},
        )  # fmt: skip
        state.absorb(part.places, outs[count:])
        return list(outs[:count])

    return custom


def _with_jvp(rule: Any, more: Callable[[Sequence[Any]], list[Any]], count: int) -> Any:
    def with_errors(primals: Sequence[Any], tangents: Sequence[Any], expected: Any) -> tuple[list[Any], list[Any]]:
        some = [t is not None for t in tangents]
        has: list[bool] = []

        def flat(*xs: Any) -> list[Any]:
            rest = iter(xs[len(some) :])
            tangents_in = [next(rest) if s else None for s in some]
            outs, ts = rule(xs[: len(some)], tangents_in, expected and expected[:count])
            has[:] = [t is not None for t in ts]
            return [*outs, *(t for t in ts if t is not None)]

        outs = _silent(flat, [*primals, *(t for t in tangents if t is not None)])
        failures, rest = more(primals), iter(outs[count:])
        return [*outs[:count], *failures], [*(next(rest) if h else None for h in has), *(None for _ in failures)]

    return with_errors


def _with_vjp(fwd: Any, more: Callable[[Sequence[Any]], list[Any]], count: int) -> Any:
    def with_errors(primals: Sequence[Any], perturbed: Sequence[bool], expected: Any) -> Any:
        bwds: list[Any] = []

        def flat(*xs: Any) -> list[Any]:
            outs, residuals, bwd = fwd(xs, perturbed, expected and expected[:count])
            bwds[:] = [bwd]
            return [*outs, *residuals]

        outs = _silent(flat, primals)
        return [*outs[:count], *more(primals)], outs[count:], lambda res, cts: bwds[0](res, cts[:count])

    return with_errors


def _silent(fun: Callable[..., list[Any]], args: Sequence[Any]) -> list[Any]:
    """Return the results of a custom rule without checks: the function reports failures."""
    jaxpr, consts = stage(fun, [aval_of(a) for a in args], name="rule", chain="")
    return run(jaxpr, [*consts, *args], frozenset())[0]


def _inlined(state: State, source: Any, prim: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Inline the function: a custom batch rule returns no failures, so `vmap` outside of `checkify` does not use it."""
    part = checked(params["fun"], state.checks)
    if part.same:
        return list(prim(*operands, **params))
    outs = evaluate(part.jaxpr, [*part.consts, *operands])
    count = len(params["fun"].outputs)
    state.absorb(part.places, outs[count:])
    return outs[:count]


RULES.update({custom_jvp_call: _custom("rule"), custom_vjp_call: _custom("fwd"), custom_vmap_call: _inlined})
