"""Lowering rules of primitives, by platform, and their application."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import core
from functorch_like.compiler.lower import emit
from functorch_like.errors import FtError, UnsupportedError
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.jax_alias.missing import MissingNameError
from functorch_like.jax_alias.modules.lowering_contexts import PLATFORMS, LoweringRuleContext, ModuleContext

#: Rules by primitive and platform; None stands for all platforms without a rule of their own.
lowerings: dict[Any, dict[str | None, Callable[..., Any]]] = {}


def rule_of(prim: Any, platform: str) -> Callable[..., Any] | None:
    """Return the rule of a primitive for a platform; None if it has none."""
    rules = lowerings.get(prim, {})
    return next((rules[name] for name in (*PLATFORMS[platform], None) if name in rules), None)


class Lowering:
    """A lowering that traces a function of arrays: what `mlir.lower_fun` returns."""

    def __init__(self, fun: Callable[..., Any], multiple_results: bool = True) -> None:
        self.fun, self.multiple_results = fun, multiple_results
        self.__name__ = getattr(fun, "__name__", type(fun).__name__)

    def staged(self, avals: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Sequence[Any]]:
        """Return the recorded program for these avals, and its constants."""

        def flat(*args: Any) -> Sequence[Any]:
            out = self.fun(*args, **params)
            return list(out) if self.multiple_results else [out]

        return stage(flat, list(avals), name=self.__name__, parent=core.EVALUATE)

    def __call__(self, ctx: LoweringRuleContext, *operands: Any, **params: Any) -> list[Any]:
        """Write the operations of the function inside of a rule in MLIR; return its values."""
        from functorch_like.backends.xla import mlir_rules  # brings MLIR with it

        e = ctx.module_context.emitter
        jaxpr, consts = self.staged(ctx.avals_in, params)
        with mlir_rules.at_current_point(e):
            return emit(e, jaxpr, [*(e.constant(np.asarray(c)) for c in consts), *mlir_rules.values_in(operands)])


class RuleLacksNameError(UnsupportedError):
    """A lowering rule used a name of JAX that this package lacks."""


def apply_rule(prim: Any, rule: Callable[..., Any], e: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """Write the operations of a rule in MLIR; return a value for each result.

    Raises:
        RuleLacksNameError: if it uses a name of JAX that is missing here.
        CompileError: if the operations are not valid, or the results have other types than the avals.
    """
    from functorch_like.backends.xla import mlir_rules

    what = f"the lowering rule {_name_of(rule)} of the primitive {prim.name}"
    context = ModuleContext.of(e)
    avals = tuple(e.ins), list(e.outs)
    ctx = LoweringRuleContext(context, prim, *avals)
    try:
        return mlir_rules.run(e, lambda *xs: rule(ctx, *xs, **params), operands, avals[1], what)
    except MissingNameError as error:
        raise RuleLacksNameError(
            f"{what} needs a name that is missing: {str(error).splitlines()[0]}",
            fix="use mlir.lower_fun, or give the primitive an implementation by def_impl, which is then traced",
        ) from error
    except Exception as error:
        if not isinstance(error, FtError):
            error.add_note(f"raised in {what}")
        raise
    finally:
        context.settle()


def _name_of(rule: Any) -> str:
    while hasattr(rule, "func"):  # of functools.partial
        rule = rule.func
    return getattr(rule, "__qualname__", type(rule).__name__)
