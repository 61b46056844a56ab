"""`closure_convert`: closed-over values become arguments, so that derivatives reach them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from functorch_like import dtypes
from functorch_like.backends import xla
from functorch_like.calling import api_boundary
from functorch_like.calling.traced_function import arguments, check_callable
from functorch_like.core import Tracer, argument_aval
from functorch_like.errors import ArgumentError, TreeError
from functorch_like.ir.jaxpr import evaluate
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.source_info import name_of
from functorch_like.transforms.tangents import error_context

if TYPE_CHECKING:
    from functorch_like.calling.type_variables import P, R


@api_boundary.public
def closure_convert(fun: Callable[P, R], *example_args: Any) -> tuple[Callable[..., R], list[Any]]:
    """Convert a closure to a function that takes the traced values it closes over as arguments.

    A function with custom rules is differentiated with respect to its arguments only. So a solver with custom rules
    converts the function that the user gives it, and takes the closed-over values as further arguments of its own.

    Args:
        fun: takes and returns pytrees of arrays; it is traced here.
        example_args: arguments like those of later calls; only structure, shapes and dtypes count.

    Returns:
        `(converted, values)`: `converted(*args, *values)` gives `fun(*args)`. `values` are the traced float and complex
        values that `fun` closes over; plain arrays and integers stay inside.

    Raises:
        ArgumentError: from the converted function, for another number of arguments.
        TreeError: from it, for arguments of another structure, shape or dtype.

    >>> import functorch_like as ft
    >>> def call(f, x):
    ...     converted, values = ft.closure_convert(f, x)
    ...     return converted(x, *values), len(values)
    >>> def product(c, x):
    ...     out, count = call(lambda y: c * y, x)
    ...     return out * count  # c is closed over, and being transformed by grad
    >>> float(ft.grad(product)(3.0, 2.0))
    2.0
    """
    check_callable(fun, "closure_convert")
    call = arguments(example_args)
    flat, trees = call.flatten_function(fun)
    name = name_of(fun)
    jaxpr, consts = stage(
        flat, call.avals, name=name, origin="traced by closure_convert", chain=name, hosts=call.hosts()
    )
    moved = [isinstance(c, Tracer) and dtypes.is_inexact(c.aval.dtype) for c in consts]
    values = [c for c, m in zip(consts, moved, strict=True) if m]
    in_tree, out_tree, avals, captured = call.tree, trees[0], call.avals, consts

    @api_boundary.public
    def converted(*args: Any) -> Any:
        count = len(args) - len(values)
        if count != len(example_args):
            raise ArgumentError(
                f"{name}, converted with {len(example_args)} arguments and {len(values)} closed-over values, was "
                f"given {len(args)}",
                fix="call converted(*args, *values)",
                **error_context(),
            )
        leaves, treedef = xla.flatten((args[:count], {}))
        actual = [argument_aval(x).strong() for x in leaves]
        if treedef != in_tree or actual != [a.strong() for a in avals]:
            raise TreeError(
                f"{name} was converted for {avals} in {in_tree}, and is given {actual} in {treedef}",
                fix="convert it with arguments like those it is called with",
                **error_context(),
            )
        rest = iter(args[count:])
        operands = [next(rest) if m else c for c, m in zip(captured, moved, strict=True)]
        return out_tree.unflatten(evaluate(jaxpr, [*operands, *leaves]))

    return converted, values
