"""`linear_call`: a linear function with a transpose that the user defines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functorch_like import dtypes
from functorch_like.avals import ShapeDtypeStruct
from functorch_like.backends import xla
from functorch_like.calling import api_boundary, traced_function
from functorch_like.calling.call_signature import FlatCall, Static
from functorch_like.calling.traced_function import check_callable
from functorch_like.core import aval_of
from functorch_like.errors import DifferentiationError, TreeError
from functorch_like.primitives.higher_order.control_flow.cond_branches import united
from functorch_like.primitives.higher_order.custom import linear_call as higher
from functorch_like.transforms.tangents import error_context


@api_boundary.public
def linear_call(
    fun: Callable[[Any, Any], Any], fun_transpose: Callable[[Any, Any], Any], residual_args: Any, linear_args: Any
) -> Any:
    """Call a linear function with a given transpose.

    Nothing checks that `fun_transpose` is the transpose of `fun`, or that `fun` is linear. The transpose of the call is
    a call of `fun_transpose`, whose transpose in turn is `fun`. Forward mode applies `fun` to tangents. With respect to
    the residuals, `fun` itself is differentiated.

    Args:
        fun: `(residuals, linear) -> result`, linear in its second argument.
        fun_transpose: `(residuals, cotangent) -> cotangent of linear_args`, linear in its second argument, which is
            like the result of `fun`.
        residual_args: pytree of arrays, in which neither function need be linear.
        linear_args: pytree of arrays of floats.

    Returns:
        The result of `fun`.

    Raises:
        DifferentiationError: for linear arguments that are not floats.
        TreeError: where `fun_transpose` gives something else than cotangents of the linear arguments.

    >>> import functorch_like as ft
    >>> divide = lambda r, x: x / r
    >>> f = lambda x: x + ft.custom_derivatives.linear_call(divide, divide, 3.0, x)
    >>> float(f(9.0)), float(ft.grad(f)(9.0))  # doctest: +ELLIPSIS
    (12.0, 1.333...)
    """
    check_callable(fun, "linear_call")
    check_callable(fun_transpose, "linear_call")
    call = traced_function.arguments((residual_args, linear_args))
    count = len(xla.flatten(residual_args)[0])
    for leaf in call.leaves[count:]:
        if not dtypes.is_inexact(aval_of(leaf).dtype):
            raise DifferentiationError(
                f"a linear argument of linear_call is a {aval_of(leaf)!r}",
                fix="pass it as a residual",
                **error_context(),
            )
    forth = traced_function.staged(fun, call, "linear_call")
    results = forth.out_tree.unflatten([ShapeDtypeStruct(a.shape, a.dtype) for a in forth.jaxpr.out_avals])
    back = traced_function.staged(
        fun_transpose, FlatCall(Static((), ()), (residual_args, results), {}, abstract=True), "linear_call"
    )
    expected = [a.strong() for a in call.avals[count:]]
    actual = [a.strong() for a in back.jaxpr.out_avals]
    if back.out_tree != xla.structure(linear_args) or actual != expected:
        raise TreeError(
            f"fun_transpose of linear_call returned {back.out_tree} of {actual}, "
            f"but linear_args are {xla.structure(linear_args)} of {expected}",
            fix="return cotangents of the structure, shapes and dtypes of linear_args",
            **error_context(),
        )
    consts, (f, t) = [], (forth.jaxpr, back.jaxpr)
    if forth.consts or back.consts:
        consts, (f, t) = united([(forth.jaxpr, forth.consts), (back.jaxpr, back.consts)])
    outs = higher.linear_call(*consts, *traced_function.operands(call), fun=f, transpose=t, count=len(consts) + count)
    return forth.out_tree.unflatten(outs)
