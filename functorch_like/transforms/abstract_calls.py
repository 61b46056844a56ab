"""`make_jaxpr`, `eval_shape` and `typeof`: programs and types, without computing."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from functorch_like import tree
from functorch_like.avals import ShapedArray, ShapeDtypeStruct, is_symbolic
from functorch_like.calling import api_boundary
from functorch_like.calling.call_signature import (
    FlatCall,
    Static,
    resolve_argnums,
)
from functorch_like.calling.pickling import transformation
from functorch_like.calling.traced_function import check_callable
from functorch_like.core import argument_aval, named_axis, state
from functorch_like.errors import DtypeError
from functorch_like.ir.jaxpr import Jaxpr
from functorch_like.ir.trace_to_jaxpr import CapturedRefs
from functorch_like.primitives.higher_order.call import CallSpec
from functorch_like.primitives.structural import zeros
from functorch_like.source_info import name_of
from functorch_like.transforms.jit_stages import Traced

if TYPE_CHECKING:
    from functorch_like.typing import ArrayLike, PyTree


@transformation
def make_jaxpr(
    fun: Callable[..., object],
    static_argnums: int | Sequence[int] | None = None,
    axis_env: Sequence[tuple[Hashable, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """Return a function that returns the jaxpr of `fun` for given arguments.

    Args:
        fun: takes and returns pytrees of arrays.
        static_argnums: positions of arguments that are not traced.
        axis_env: names and sizes of axes that collectives in `fun` name and no `vmap` in it binds.
        return_shape: return shapes and dtypes of the results too.

    Returns:
        A function of `fun`'s arguments giving a `Jaxpr`, or a pair with the tree of `ShapeDtypeStruct`s.

    Raises:
        ConcretizationError: at the call, where `fun` needs the value of a traced argument.
        DtypeError: at the call, for arguments that are not arrays.

    >>> import functorch_like.numpy as fnp
    >>> print(make_jaxpr(fnp.sin)(1.0))  # doctest: +ELLIPSIS
    def sin(a: f32[]):  # traced by make_jaxpr
        b: f32[] = sin(a)...
        return b
    """
    check_callable(fun, "make_jaxpr")
    static = resolve_argnums(fun, static_argnums, None)
    name = name_of(fun)

    @api_boundary.public
    def made(*args: Any, **kwargs: Any) -> Jaxpr | tuple[Jaxpr, Any]:
        call = FlatCall(static, args, kwargs, abstract=True)
        with ExitStack() as stack:
            for axis_name, size in axis_env or ():
                stack.enter_context(named_axis(axis_name, operator.index(size)))
            traced = Traced(fun, call, CallSpec(name), origin="traced by make_jaxpr", trace_name=f"make_jaxpr({name})")
            traced = traced.under(state.trace)
        return (traced.jaxpr, traced.out_info) if return_shape else traced.jaxpr

    return made


@api_boundary.public
def typeof(x: ArrayLike | ShapeDtypeStruct) -> ShapedArray:
    """The type of an array, traced or not, or of a number: its shape, dtype and whether it is weakly typed.

    Args:
        x: an array, a NumPy array or a number; or an `ft.Ref`.

    Returns:
        A `ShapedArray`; of a Ref, an `ft.ref.AbstractRef`.

    Raises:
        DtypeError: for anything else.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> ft.typeof(fnp.ones(3)), ft.typeof(1).weak_type
    (f32[3], True)
    """
    described: Any = x
    known = isinstance(x, ShapeDtypeStruct) or hasattr(x, "is_reference")
    return described.aval if known else argument_aval(x)


def _instance(x: Any) -> Any:
    """Return zeros for a `ShapeDtypeStruct` among the results of a function, and any other result as it is."""
    return zeros(x.aval) if isinstance(x, ShapeDtypeStruct) else x


@api_boundary.public
def eval_shape(fun: Callable[..., object], *args: PyTree, **kwargs: PyTree) -> Any:
    """Shapes and dtypes of the results of `fun`, without computing.

    Args:
        fun: takes and returns pytrees of arrays.
        args: arrays, numbers or `ShapeDtypeStruct`s. With symbolic dimensions, `fun` is traced at some of the sizes.
        kwargs: likewise.

    Returns:
        The results' pytree, of `ShapeDtypeStruct`.

    Raises:
        ConcretizationError: where `fun` needs the value of an argument.
        DtypeError: for arguments that are not arrays.
        UnsupportedError: where a size of the results is no polynomial of symbolic dimensions.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> ft.eval_shape(fnp.matmul, ft.ShapeDtypeStruct((3, 4), "float32"), ft.ShapeDtypeStruct((4,), "float32"))
    ShapeDtypeStruct(shape=(3,), dtype=float32)
    """
    if any(map(is_symbolic, tree.leaves((args, kwargs)))):
        from functorch_like.exporting.shapes import symbolic_results  # few shapes are symbolic

        return symbolic_results(eval_shape, fun, args, kwargs)
    name = name_of(fun)

    def described(*args: Any, **kwargs: Any) -> Any:
        return tree.map(_instance, fun(*args, **kwargs))

    try:
        call = FlatCall(Static((), ()), args, kwargs, abstract=True)
        return Traced(described, call, CallSpec(name), trace_name=f"eval_shape({name})").out_info
    except (CapturedRefs, DtypeError) as e:
        failed = e
    from functorch_like.transforms.jit_refs import shapes_with_refs  # few functions have Refs

    return shapes_with_refs(eval_shape, failed, fun, args, kwargs)
