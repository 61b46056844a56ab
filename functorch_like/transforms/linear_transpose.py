"""`linear_transpose`: the transpose of a linear function, which is traced and not evaluated."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from functorch_like import dtypes, source_info, tree
from functorch_like.avals import ShapedArray, ShapeDtypeStruct
from functorch_like.backends import xla
from functorch_like.calling import api_boundary
from functorch_like.calling.pickling import transformation
from functorch_like.calling.traced_function import check_callable
from functorch_like.calling.type_variables import R
from functorch_like.core import UndefinedPrimal, aval_of, new_trace, state, transform_stack
from functorch_like.errors import DifferentiationError, FtError
from functorch_like.interpreters.reverse import LinearMap, TapeTrace
from functorch_like.ir.jaxpr import Equation
from functorch_like.transforms.linearity import nonlinear, surely_not_zero
from functorch_like.transforms.tangents import (
    FlatFunction,
    cotangent_leaves,
    error_context,
    gradient_of,
    is_strengthened,
)

if TYPE_CHECKING:
    from functorch_like.typing import PyTree


@transformation
def linear_transpose(fun: Callable[..., R], *primals: PyTree) -> Callable[[R], tuple[Any, ...]]:
    """The transpose of a linear function, as a function of cotangents.

    Args:
        fun: linear in all arguments together; takes and returns pytrees of float or complex arrays.
        primals: arrays, numbers, `ShapeDtypeStruct`s or avals. Only their shapes and dtypes count.

    Returns:
        A function that takes a cotangent like the result of `fun` and gives a tuple of cotangents, one for each
        argument. Nothing is conjugated: for complex arrays it is the plain transpose.

    Raises:
        DifferentiationError: where `fun` is not linear, with the primitive and the line that are not; an added
            constant that is known not to be zero counts.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> back = ft.linear_transpose(lambda x: 3 * x[::2], ft.ShapeDtypeStruct((4,), "float32"))
    >>> back(fnp.asarray([1.0, 2.0]))[0].tolist()
    [3.0, 0.0, 6.0, 0.0]
    """
    check_callable(fun, "linear_transpose")
    leaves, in_tree = xla.flatten(primals)
    avals = [_aval(a) for a in leaves]
    for k, aval in enumerate(avals):
        if not dtypes.is_inexact(aval.dtype):
            raise DifferentiationError(
                f"linear_transpose is of functions of float or complex arrays, got {aval!r} at "
                f"args{tree.leaf_paths(in_tree)[k]}",
                fix="close over arguments of other dtypes",
                **error_context(),
            )
    function = FlatFunction(lambda args: fun(*args), in_tree, False)
    tape = TapeTrace(state.trace)
    tape.name = "linear_transpose"
    with new_trace(tape):
        inputs = [tape.input(a.strong()) for a in avals]
        outs = function.flat(*inputs)
    variables = [tape.var(o) for o in outs]
    for out, var in zip(outs, variables, strict=True):
        if var is None and surely_not_zero(out):
            raise _nonlinear(f"it has a constant result {aval_of(out)!r} that is not zero", None)
    linear = LinearMap([t._var for t in inputs], tape.equations, variables)
    linear.keep()
    reason = nonlinear(linear.equations, set(linear.inputs), {})
    if reason is not None:
        raise _nonlinear(*reason)
    out_avals = [aval_of(o) for o in outs]

    @api_boundary.public
    def transposed(cotangent: Any) -> Any:
        """Cotangents of the arguments."""
        cts = cotangent_leaves(function.out_tree, cotangent, out_avals)
        back = linear.transpose(cts)
        strong = is_strengthened([a.update(weak_type=True) for a in out_avals], xla.flatten(cotangent)[0])
        return in_tree.unflatten(
            [gradient_of(ct, UndefinedPrimal(a), True, strong) for ct, a in zip(back, avals, strict=True)]
        )

    return transposed


def _nonlinear(what: str, e: Equation | None) -> FtError:
    line = source_info.user_line(e.source) if e is not None and e.source is not None else source_info.user_line()
    return DifferentiationError(
        f"the function given to linear_transpose is not linear: {what}",
        fix="for the derivative of a nonlinear function at a point use vjp",
        chain=transform_stack(state.trace),
        at=str(line or ""),
    )


def _aval(x: Any) -> ShapedArray:
    if isinstance(x, ShapedArray):
        return x
    return x.aval if isinstance(x, ShapeDtypeStruct) else aval_of(x)
