"""`auto_axes` and `explicit_axes`: parts of a program in which XLA, or the user, chooses how values are split."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from functorch_like import tree
from functorch_like.backends import xla
from functorch_like.backends.xla import explicit_types, named_sharding
from functorch_like.backends.xla.configuration import current_mesh
from functorch_like.backends.xla.mesh import AxisType
from functorch_like.backends.xla.partition_spec import PartitionSpec
from functorch_like.calling import api_boundary
from functorch_like.calling.traced_function import check_callable, wraps
from functorch_like.calling.type_variables import F
from functorch_like.core import ArrayImpl, Tracer, aval_of
from functorch_like.errors import ArgumentError
from functorch_like.primitives.structural.sharding_constraint import retyped
from functorch_like.sharding.constraints import resharded
from functorch_like.source_info import name_of

if TYPE_CHECKING:
    from functorch_like.typing import PyTree


@overload
def auto_axes(fun: F, /, *, axes: str | tuple[str, ...] | None = None, out_sharding: PyTree = None) -> F: ...


@overload
def auto_axes(
    fun: None = None, /, *, axes: str | tuple[str, ...] | None = None, out_sharding: PyTree = None
) -> Callable[[F], F]: ...


@api_boundary.public
def auto_axes(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    axes: str | tuple[str, ...] | None = None,
    out_sharding: Any = None,
) -> Any:
    """Let XLA choose how values inside of a function are split, and give the results a sharding.

    Inside of the function, Explicit axes of the mesh are Auto ones: types of values do not name them, and no operation
    is refused.

    Args:
        fun: any function. Left out, `auto_axes` returns a decorator.
        axes: names of axes of the mesh in force that are Auto inside; all of them if None.
        out_sharding: PartitionSpecs or NamedShardings, as a prefix pytree of the results. It may be given at the call.

    Returns:
        A function of the same arguments and results, and `out_sharding`.

    Raises:
        ArgumentError: without `out_sharding`; for an axis that the mesh lacks; for a spec where no mesh is in force.

    >>> import functorch_like as ft
    >>> from functorch_like.sharding import PartitionSpec as P, auto_axes
    >>> with ft.use_mesh(ft.make_mesh((1,), ("data",))):
    ...     auto_axes(lambda x: x * 2, out_sharding=P("data"))(ft.numpy.ones(2)).sharding.spec
    P('data')
    """
    if fun is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)
    check_callable(fun, "auto_axes", "auto_axes(f, out_sharding=P(...))(x)")
    name, chosen = f"auto_axes({name_of(fun)})", out_sharding

    @api_boundary.public
    @wraps(fun)
    def called(*args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        where = _given(chosen if out_sharding is None else out_sharding, name, "out_sharding")
        mesh = _mesh(axes, (args, kwargs), name)
        if mesh is None or not mesh.explicit_axes:
            out = fun(*args, **kwargs)
        else:
            inside = _with_types(mesh, axes, AxisType.Auto)
            args, kwargs = _on((args, kwargs), inside)
            with current_mesh.held(inside):
                out = fun(*args, **kwargs)
        return _split(out, where, mesh, f"out_sharding of {name}")

    return called


@overload
def explicit_axes(fun: F, /, *, axes: str | tuple[str, ...] | None = None, in_sharding: PyTree = None) -> F: ...


@overload
def explicit_axes(
    fun: None = None, /, *, axes: str | tuple[str, ...] | None = None, in_sharding: PyTree = None
) -> Callable[[F], F]: ...


@api_boundary.public
def explicit_axes(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    axes: str | tuple[str, ...] | None = None,
    in_sharding: Any = None,
) -> Any:
    """Give the arguments of a function a sharding, and have types say how values inside of it are split.

    Inside of the function, Auto axes of the mesh are Explicit ones.

    Args:
        fun: any function. Left out, `explicit_axes` returns a decorator.
        axes: names of axes of the mesh in force that are Explicit inside; all of them if None.
        in_sharding: PartitionSpecs or NamedShardings, as a prefix pytree of the tuple of positional arguments. It may
            be given at the call.

    Returns:
        A function of the same arguments and results, and `in_sharding`.

    Raises:
        ArgumentError: without `in_sharding`; for an axis that the mesh lacks; for a spec where no mesh is in force.
        ShardingTypeError: where types inside do not fit.

    >>> import functorch_like as ft
    >>> from functorch_like.sharding import PartitionSpec as P, explicit_axes
    >>> with ft.use_mesh(ft.make_mesh((1,), ("data",))):
    ...     explicit_axes(lambda x: print(ft.typeof(x)), in_sharding=P("data"))(ft.numpy.ones(2))
    f32[2@data]
    """
    if fun is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)
    check_callable(fun, "explicit_axes", "explicit_axes(f, in_sharding=P(...))(x)")
    name, chosen = f"explicit_axes({name_of(fun)})", in_sharding

    @api_boundary.public
    @wraps(fun)
    def called(*args: Any, in_sharding: Any = None, **kwargs: Any) -> Any:
        where = _given(chosen if in_sharding is None else in_sharding, name, "in_sharding")
        mesh, what = _mesh(axes, args, name), f"in_sharding of {name}"
        if mesh is None:
            return fun(*_split(args, where, mesh, what), **kwargs)
        inside = _with_types(mesh, axes, AxisType.Explicit)
        with current_mesh.held(inside):
            out = fun(*_split(args, where, inside, what), **kwargs)
        return _on(out, mesh)

    return called


def _given(where: Any, name: str, parameter: str) -> Any:
    if where is None:
        raise ArgumentError(f"{name} got no {parameter}", fix=f"give {parameter}=P(...), to it or at the call")
    return where


def _mesh(axes: str | tuple[str, ...] | None, args: Any, name: str) -> Any:
    """Return the mesh in force, or else that of an argument; None if there is neither."""
    mesh = current_mesh.value
    if mesh is None:
        places = (x.sharding for x in tree.leaves(args) if type(x) is ArrayImpl)
        mesh = next((s.mesh for s in places if isinstance(s, named_sharding.NamedSharding)), None)
    if axes is not None and mesh is not None:
        named_sharding.check_axes(mesh, (axes,) if isinstance(axes, str) else tuple(axes), f"axes of {name}")
    return mesh


def _with_types(mesh: Any, axes: str | tuple[str, ...] | None, kind: AxisType) -> Any:
    """Return a mesh of which some axes, or all if None, have another type."""
    chosen = mesh.axis_names if axes is None else (axes,) if isinstance(axes, str) else axes
    pairs = zip(mesh.axis_names, mesh.axis_types, strict=True)
    return mesh.update(axis_types=tuple(kind if name in chosen else t for name, t in pairs))


def _on(x: Any, mesh: Any) -> Any:
    """Return a pytree whose arrays are on a mesh of the same devices, whose axes may have other types."""
    return tree.map(lambda leaf: _leaf_on(leaf, mesh) if isinstance(leaf, (ArrayImpl, Tracer)) else leaf, x)


def _leaf_on(x: Any, mesh: Any) -> Any:
    if isinstance(x, Tracer):
        aval = aval_of(x)
        known = named_sharding.explicit_part(mesh, explicit_types.spec_of(aval.explicit, aval.ndim), aval.ndim)
        return retyped(x, explicit=known)
    there = x.sharding
    same = isinstance(there, named_sharding.NamedSharding) and there.mesh.shape_tuple == mesh.shape_tuple
    return xla.device_put(x, named_sharding.named(mesh, there.spec, there.memory_kind)) if same else x


def _split(x: Any, where: Any, mesh: Any, what: str) -> Any:
    leaves, structure = tree.flatten(x)
    each = tree.broadcast_prefix(where, x, what)
    return structure.unflatten([_leaf(leaf, one, mesh, what) for leaf, one in zip(leaves, each, strict=True)])


def _leaf(x: Any, where: Any, mesh: Any, what: str) -> Any:
    if where is None:
        return x
    if isinstance(where, PartitionSpec) and mesh is not None:
        named_sharding.check_axes(mesh, where.mentioned(), f"{where!r} in {what}")
        where = named_sharding.named(mesh, where)
    return resharded(x, where, what)
