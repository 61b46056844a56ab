"""`smap`: a function written for the parts along one axis of a mesh, with positions of dimensions in place of specs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from functorch_like import tree
from functorch_like.backends.xla.configuration import current_mesh
from functorch_like.backends.xla.partition_spec import PartitionSpec
from functorch_like.calling import api_boundary
from functorch_like.calling.traced_function import check_callable, wraps
from functorch_like.calling.type_variables import F
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.source_info import name_of
from functorch_like.transforms.shard_map import Mapped

if TYPE_CHECKING:
    from functorch_like.typing import PyTree


@overload
def smap(fun: F, /, *, in_axes: PyTree, out_axes: PyTree, axis_name: str) -> F: ...


@overload
def smap(fun: None = None, /, *, in_axes: PyTree, out_axes: PyTree, axis_name: str) -> Callable[[F], F]: ...


@api_boundary.public
def smap(fun: Callable[..., Any] | None = None, /, *, in_axes: Any, out_axes: Any, axis_name: str) -> Any:
    """Map a function over parts of arrays along one axis of the mesh in force; the compiler splits over the others.

    It is `shard_map` for one axis at a time, with the signature of `vmap`. Dimensions stay: a part has the rank of the
    array. Maps over several axes are nested.

    Args:
        fun: takes and returns pytrees of parts. Left out, `smap` returns a decorator.
        in_axes: the dimension that is split, for all arguments or as a tuple of prefix pytrees, one for each argument.
            None splits nothing: each device along the axis gets a copy. Negative numbers count from the end.
        out_axes: the dimension along which results are put together: a prefix pytree. A result with None must be the
            same along the axis.
        axis_name: the axis, for collectives and of the mesh.

    Returns:
        A function of whole arrays, by position.

    Raises:
        ArgumentError: where no mesh is in force, or it lacks the axis, or `in_axes` is a list.
        ShapeError: for a dimension that an array lacks, or that does not divide.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> from functorch_like import lax
    >>> with ft.use_mesh(ft.make_mesh((1,), ("i",))):
    ...     ft.smap(lambda x: x / lax.psum(x, "i"), in_axes=0, out_axes=0, axis_name="i")(fnp.ones(2)).tolist()
    [1.0, 1.0]
    """
    if fun is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    check_callable(fun, "smap", 'smap(f, in_axes=0, out_axes=0, axis_name="i")(x)')
    name = name_of(fun)
    if not isinstance(axis_name, str):
        raise ArgumentError(
            f"smap({name}) maps over one axis of a mesh, got axis_name={axis_name!r:.60}",
            fix="give the name of one axis; nest smap for several",
        )
    if not (in_axes is None or isinstance(in_axes, (int, tuple))):
        raise ArgumentError(
            f"in_axes of smap({name}) is {in_axes!r:.60} of type {type(in_axes).__name__}",
            fix="give an int, None, or a tuple of one entry for each argument",
        )

    def spec(dim: int | None, ndim: int, what: str) -> PartitionSpec:
        if dim is None:
            return PartitionSpec()
        if not -ndim <= dim < ndim:
            raise ShapeError(
                f"{what} of smap({name}) is {dim}, and the array has {ndim} dimensions",
                fix="choose one of these",
            )
        return PartitionSpec(*(None,) * (dim % ndim), axis_name)

    def out_specs(body: Any) -> Any:
        avals = body.jaxpr.out_avals
        dims = tree.broadcast_prefix(out_axes, body.out_tree.unflatten(range(len(avals))), f"out_axes of smap({name})")
        each = [spec(d, a.ndim, "out_axes") for d, a in zip(dims, avals, strict=True)]
        return body.out_tree.unflatten(each)

    @api_boundary.public
    @wraps(fun)
    def mapped(*args: Any) -> Any:
        mesh = current_mesh.value
        if mesh is None:
            raise ArgumentError(f"smap({name}) needs a mesh, and none is in force", fix="use ft.use_mesh(mesh)")
        leaves, structure = tree.flatten(args)
        dims = tree.broadcast_prefix(in_axes, args, f"in_axes of smap({name})")
        specs = [spec(d, aval_of(x).ndim, "in_axes") for d, x in zip(dims, leaves, strict=True)]
        return Mapped(fun, name, mesh, structure.unflatten(specs), out_specs, axis_name, True)(args)

    return mapped
