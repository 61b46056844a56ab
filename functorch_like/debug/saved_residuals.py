"""List of the residuals that reverse mode would keep of a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from functorch_like import dtypes, source_info
from functorch_like.avals import ShapedArray
from functorch_like.calling import api_boundary
from functorch_like.calling.call_signature import FlatCall, Static, argument_path
from functorch_like.ir.jaxpr import Jaxpr, Literal
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives.effects.checkpoint_name import name as named
from functorch_like.primitives.higher_order.call import call
from functorch_like.primitives.higher_order.checkpoint.checkpoint import checkpoint
from functorch_like.primitives.higher_order.jaxpr_jvp_and_batch import jvp_jaxpr
from functorch_like.primitives.higher_order.partial_eval import partial_eval_jaxpr

if TYPE_CHECKING:
    from functorch_like.typing import PyTree


def saved_residuals(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[ShapedArray, str]]:
    """List the residuals of a function, each with its origin. Nothing is computed."""
    call = FlatCall(Static((), ()), args, kwargs, abstract=True)
    flat, _ = call.flatten_function(fun)
    jaxpr, consts = stage(flat, call.avals, name=source_info.name_of(fun), chain="print_saved_residuals")
    some = [False] * len(consts) + [dtypes.is_inexact(a.dtype) for a in call.avals]
    derived, more, _ = jvp_jaxpr(jaxpr, some)
    known = len(derived.inputs) - sum(some)
    parts = partial_eval_jaxpr(derived, [False] * known + [True] * sum(some))
    closed_over = len(parts.consts) + len(more) + len(consts)
    result: list[tuple[ShapedArray, str]] = []
    for kind, k in sorted(parts.residuals):  # arguments first
        if kind == "out":
            result.append((parts.known.out_avals[k].strong(), _origin(parts.known, k)))
        elif k < closed_over:
            result.append((parts.known.in_avals[k].strong(), "from a value that is closed over"))
        else:
            path = argument_path(call.tree, k - closed_over)
            result.append((parts.known.in_avals[k].strong(), f"from the argument {path}"))
    return result


@api_boundary.public
def print_saved_residuals(fun: Callable[..., object], *args: PyTree, **kwargs: PyTree) -> None:
    """Print the residuals that reverse mode would keep between the call of a function and its derivative.

    Args:
        fun: as for `grad`, though its result may be anything.
        args: arrays, numbers or `ShapeDtypeStruct`s.
        kwargs: likewise.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> ft.print_saved_residuals(lambda w, x: fnp.tanh(w * x), 2.0, 3.0)  # doctest: +ELLIPSIS
    f32[] from the argument args[0]
    f32[] from the argument args[1]
    f32[] from tanh at ...
    >>> ft.print_saved_residuals(ft.checkpoint(lambda w, x: fnp.tanh(w * x)), 2.0, 3.0)
    f32[] from the argument args[0]
    f32[] from the argument args[1]
    """
    for aval, origin in saved_residuals(fun, *args, **kwargs):
        print(f"{aval!r} {origin}")


def _origin(jaxpr: Jaxpr, position: int) -> str:
    """Describe the equation that makes an output, with the user's line."""
    atom = jaxpr.outputs[position]
    if isinstance(atom, Literal):
        return "from a constant"
    for e in jaxpr.equations:
        if atom not in e.outputs:
            continue
        inner = e.params.get("jaxpr")
        if (e.prim is call or e.prim is checkpoint) and isinstance(inner, Jaxpr):
            return _origin(inner, list(e.outputs).index(atom))
        line = source_info.user_line(e.source) if e.source is not None else None
        at = f" at {line}" if line else ""
        return f"named {e.params['name']!r}{at}" if e.prim is named else f"from {e.prim.name}{at}"
    return "from an argument"
