"""`custom_gradient`: a function that returns its result together with the rule for its cotangent."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from functorch_like import dtypes
from functorch_like.backends import xla
from functorch_like.calling import api_boundary
from functorch_like.calling.traced_function import check_callable, wraps
from functorch_like.calling.type_variables import P, R
from functorch_like.core import aval_of
from functorch_like.errors import TreeError
from functorch_like.ir.jaxpr import Jaxpr, evaluate
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.source_info import name_of
from functorch_like.transforms.custom.custom_vjp import custom_vjp
from functorch_like.transforms.custom.rule_checks import Report, summary
from functorch_like.transforms.custom.symbolic_zeros import instantiate, tangent_aval
from functorch_like.transforms.tangents import Fun


@dataclasses.dataclass(eq=False)
class _Pullback:
    """A rule that was staged, without its closed-over values."""

    jaxpr: Jaxpr
    inexact: list[bool]
    out_tree: Any


@api_boundary.public
def custom_gradient(fun: Callable[P, tuple[R, Callable[..., Any]]]) -> custom_vjp[P, R]:
    """Define a function's derivative in reverse mode by a rule that it returns beside its result.

    The rule may close over any value of the function; it is traced once, when the function runs.

    Args:
        fun: gives `(result, rule)`. The rule takes the cotangent of the result and gives a tuple with the cotangent
            of each argument. For a single argument it may give the cotangent alone.

    Returns:
        The function without the rule, as a `custom_vjp` function: forward mode cannot differentiate it.

    Raises:
        TreeError: at the call, where `fun` returns something else than a pair of result and rule.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> @ft.custom_gradient
    ... def square(x):
    ...     return x * x, lambda g: 2 * g * x
    >>> float(ft.grad(square)(3.0))
    6.0
    """
    check_callable(fun, "custom_gradient")

    @wraps(fun)
    def result(*args: Any, **kwargs: Any) -> Any:
        return _pair(fun, fun(*args, **kwargs))[0]

    def fwd(*args: P.args, **kwargs: P.kwargs) -> Any:
        out, rule = _pair(fun, fun(*args, **kwargs))
        leaves, out_tree = xla.flatten(out)
        Report(fun, fun, [aval_of(a) for a in xla.flatten(args)[0]]).check_values(leaves, out_tree)
        avals = [aval_of(x) for x in leaves]
        inexact = [dtypes.is_inexact(a.dtype) for a in avals]
        trees: list[Any] = []

        def flat(*cts: Any) -> list[Any]:
            rest = iter(cts)
            filled = [next(rest) if i else instantiate(None, a) for i, a in zip(inexact, avals, strict=True)]
            back = rule(out_tree.unflatten(filled))
            if len(args) == 1 and not isinstance(back, (tuple, list)):
                back = (back,)
            cotangents, treedef = xla.flatten(back)
            trees[:] = [treedef]
            Report(rule, fun, avals).check_values(cotangents, treedef)
            return cotangents

        flat.traced_aux = lambda: trees[0]  # type: ignore[attr-defined]
        ct_avals = [tangent_aval(a) for a, i in zip(avals, inexact, strict=True) if i]
        name = name_of(rule)
        jaxpr, consts = stage(flat, ct_avals, name=name, origin="traced by custom_gradient", chain=name)
        return out, (_Pullback(jaxpr, inexact, trees[0]), consts)

    def bwd(residuals: Any, cotangent: Any) -> Any:
        pullback, consts = residuals
        cts = [ct for ct, i in zip(xla.flatten(cotangent)[0], pullback.inexact, strict=True) if i]
        return pullback.out_tree.unflatten(evaluate(pullback.jaxpr, [*consts, *cts]))

    fwd.__name__ = bwd.__name__ = name_of(fun)
    fwd.__wrapped__ = bwd.__wrapped__ = fun  # type: ignore[attr-defined]  # whose line errors quote
    made = custom_vjp(result)
    made.defvjp(fwd, bwd)
    return made


def _pair(fun: Fun, pair: Any) -> Any:
    if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not callable(pair[1]):
        raise Report(fun, fun, ()).error(
            TreeError,
            f"{name_of(fun)}, a function for custom_gradient, returned {summary(pair)}",
            "return (result, rule), where rule is a function of the cotangent",
        )
    return pair
