"""`shard_map`: a function written for the part of each device."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from functorch_like import tree
from functorch_like.avals import ShapeDtypeStruct
from functorch_like.backends import xla
from functorch_like.backends.xla import named_sharding
from functorch_like.backends.xla.configuration import current_mesh
from functorch_like.backends.xla.mesh import AbstractMesh, AxisType, Mesh
from functorch_like.backends.xla.named_sharding import NamedSharding
from functorch_like.backends.xla.partition_spec import UNCONSTRAINED, PartitionSpec
from functorch_like.caches import Cache
from functorch_like.calling import api_boundary, traced_function
from functorch_like.calling.call_signature import FlatCall, Static, argument_path
from functorch_like.calling.traced_function import check_callable, wraps
from functorch_like.core import ArrayImpl
from functorch_like.errors import ArgumentError
from functorch_like.primitives.higher_order.shard_map.replication import varying
from functorch_like.primitives.higher_order.shard_map.shard_map import (
    axes_in_scope,
    local,
    varied,
    without_placeholders,
)
from functorch_like.primitives.higher_order.shard_map.shard_map import shard_map as primitive
from functorch_like.source_info import name_of

_STAGED: weakref.WeakKeyDictionary[Any, Cache[Any, Any]] = weakref.WeakKeyDictionary()
_NOTHING_STATIC = Static((), ())


@api_boundary.public
def shard_map(
    fun: Callable[..., Any] | None = None,
    *,
    mesh: Any = None,
    in_specs: Any = ...,
    out_specs: Any,
    axis_names: Collection[str] = (),
    check_vma: bool = True,
) -> Any:
    """Map a function over the parts of arrays, one on each device of a mesh.

    Inside, arrays are the parts of one device, and the collectives of `lax` (`psum`, `all_gather`, `ppermute`, ...)
    exchange data along the axes of the mesh. They mean the same as under `vmap(axis_name=...)`.

    Args:
        fun: takes and returns pytrees of parts. Left out, `shard_map` returns a decorator.
        mesh: a Mesh; that of `ft.use_mesh` if None. An AbstractMesh is enough inside of jit, or where a mesh of its
            axes is in force.
        in_specs: how arguments are split: a prefix pytree of PartitionSpecs for the tuple of arguments. An axis that a
            spec leaves out splits nothing: each device along it gets a copy. Without `in_specs`, types of arguments say
            it, on a mesh of Explicit axes.
        out_specs: how results are put together: a prefix pytree. A result whose spec leaves an axis out must be the
            same along it.
        axis_names: the axes whose parts the function is written for; the compiler splits over the others. All if empty.
        check_vma: refuse results that may differ along an axis that their spec leaves out. For gradients that `fun`
            takes, a value that is the same on all devices along an axis then counts as one, as in JAX: the gradient by
            it is summed over the axis, and a loss that `psum` or `pmean` made counts once. With False, and under
            `vmap`, each device's copy is a value of its own.

    Returns:
        A function of whole arrays.

    Raises:
        ArgumentError: for an axis that the mesh lacks, or a result that may differ along an axis its spec leaves out;
            without `in_specs`, on a mesh that has Auto axes.
        ShapeError: where a dimension does not divide, or a spec is longer than the rank.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> from functorch_like import lax
    >>> from functorch_like.sharding import PartitionSpec as P
    >>> mesh = ft.make_mesh((1,), ("i",))
    >>> total = ft.shard_map(lambda x: lax.psum(x.sum(), "i"), mesh=mesh, in_specs=P("i"), out_specs=P())
    >>> float(total(fnp.arange(4.0)))
    6.0
    """
    if fun is None:
        return functools.partial(
            shard_map, mesh=mesh, in_specs=in_specs, out_specs=out_specs, axis_names=axis_names, check_vma=check_vma
        )
    check_callable(fun, "shard_map", "shard_map(f, ...)(x)")
    name = name_of(fun)
    if mesh is not None and not isinstance(mesh, AbstractMesh):
        raise ArgumentError(
            f"shard_map({name}) takes a mesh, got {mesh!r:.60} of type {type(mesh).__name__}", fix="ft.make_mesh(...)"
        )
    if isinstance(in_specs, list):
        in_specs = tuple(in_specs)

    @api_boundary.public
    @wraps(fun)
    def mapped(*args: Any) -> Any:
        in_force = current_mesh.value
        where = in_force if mesh is None or _is_without_devices(mesh, in_force) else mesh
        if where is None:
            raise ArgumentError(
                f"shard_map({name}) got no mesh, and none is in force", fix="give mesh=, or use ft.use_mesh(mesh)"
            )
        return Mapped(fun, name, where, in_specs, out_specs, axis_names, check_vma)(args)

    return mapped


def _is_without_devices(mesh: AbstractMesh, in_force: Any) -> bool:
    """Return True for an abstract mesh of the mesh in force, which has its devices."""
    return not isinstance(mesh, Mesh) and isinstance(in_force, Mesh) and in_force.abstract_mesh == mesh


class Mapped:
    """A `shard_map` over one mesh; `out_specs` may be a function of the traced body."""

    def __init__(
        self, fun: Any, name: str, mesh: Any, in_specs: Any, out_specs: Any, axis_names: Any, check: bool
    ) -> None:
        self.fun, self.name, self.mesh, self.check = fun, name, mesh, check
        self.in_specs, self.out_specs = in_specs, out_specs
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        named_sharding.check_axes(mesh, names, f"axis_names of shard_map({name})")
        self.axes = tuple(a for a in mesh.axis_names if a in names) if names else mesh.axis_names

    def __call__(self, args: tuple[Any, ...]) -> Any:
        call = traced_function.arguments(args)
        specs = self._typed(call) if self.in_specs is ... else self._specs(self.in_specs, args, "in_specs")
        for i, (spec, aval) in enumerate(zip(specs, call.avals, strict=True)):
            where = NamedSharding(self.mesh, spec)
            what = f"argument {argument_path(call.tree, i)} of shard_map({self.name}), {aval!r},"
            named_sharding.check_divides(where, aval.shape, what)
        body, out_specs = self._staged(call, specs)
        outs = primitive(
            *body.consts,
            *self._operands(call, specs),
            jaxpr=body.jaxpr,
            mesh=self.mesh,
            axes=self.axes,
            in_specs=self._of_inputs(body, specs),
            out_specs=out_specs,
            check=self.check,
        )
        return body.out_tree.unflatten(outs)

    def _operands(self, call: FlatCall, specs: Sequence[Any]) -> list[Any]:
        """The arguments; those that Python has are put where they are needed, part by part."""
        result = traced_function.operands(call)
        if not isinstance(self.mesh, Mesh) or call.traced():
            return result
        places = [NamedSharding(self.mesh, spec) for spec in specs]
        return [
            xla.device_put(x, place) if isinstance(x, np.ndarray) or not (type(x) is ArrayImpl and x._committed) else x
            for x, place in zip(result, places, strict=True)
        ]

    def _typed(self, call: FlatCall) -> tuple[Any, ...]:
        """Return the spec of each argument's type."""
        auto = [name for name in self.axes if name not in self.mesh.explicit_axes]
        if auto:
            raise ArgumentError(
                f"shard_map({self.name}) got no in_specs, and types do not say how {auto[0]!r} splits arguments",
                fix="give in_specs, or make a mesh of Explicit axes",
            )
        from functorch_like.backends.xla.explicit_types import spec_of  # few programs have such axes

        return tuple(spec_of(aval.explicit, aval.ndim) for aval in call.avals)

    def _specs(self, prefix: Any, whole: Any, what: str) -> tuple[Any, ...]:
        """One spec for each leaf."""
        entries = [
            PartitionSpec() if s is None else s
            for s in tree.broadcast_prefix(prefix, whole, f"{what} of shard_map({self.name})")
        ]
        for spec in entries:
            title = f"{what} of shard_map({self.name})"
            if not isinstance(spec, PartitionSpec) or UNCONSTRAINED in tuple(spec):
                raise ArgumentError(
                    f"{title} has {spec!r:.60} of type {type(spec).__name__}", fix="use PartitionSpecs of axis names"
                )
            named_sharding.check_axes(self.mesh, spec.mentioned(), f"{spec!r} in {title}")
            for axis in spec.mentioned():
                if axis not in self.axes:
                    raise ArgumentError(
                        f"{spec!r} in {title} names {axis!r}, and the function is written by the parts of {self.axes}",
                        fix=f"add {axis!r} to axis_names, or leave the split by it to the arguments' shardings",
                    )
        return tuple(entries)

    # --------------------------------------------------------------------------------------------------------- staging
    def _staged(self, call: FlatCall, specs: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """The function, traced for parts, and a spec for each of its results."""
        try:
            cache = _STAGED.setdefault(self.fun, Cache())
        except TypeError:  # not hashable, or no weak references to it
            cache = Cache()
        parts = [
            ShapeDtypeStruct(part.shape, part.dtype, part.weak_type)
            for part in (local(aval, spec, self.mesh) for aval, spec in zip(call.avals, specs, strict=True))
        ]
        args, kwargs = call.tree.unflatten(parts)
        # Types of parts name no axes.
        inside = self.mesh.update(axis_types=AxisType.Auto) if self.mesh.explicit_axes else self.mesh
        with axes_in_scope(self.mesh, self.axes, self.check), current_mesh.held(inside):
            inner = FlatCall(_NOTHING_STATIC, args, kwargs, abstract=True)
            body = traced_function.staged(self.fun, inner, "shard_map", cache)
            whole = body.out_tree.unflatten(range(len(body.jaxpr.outputs)))
            out_specs = self.out_specs(body) if callable(self.out_specs) else self.out_specs
            out_specs = self._specs(out_specs, whole, "out_specs")
            in_specs = self._of_inputs(body, specs)
            jaxpr = without_placeholders(body.jaxpr, in_specs, self.mesh, self.axes, self.check)
            body = body._replace(jaxpr=jaxpr)
            self._check(body, in_specs, out_specs)
        return body, out_specs

    def _of_inputs(self, body: Any, specs: tuple[Any, ...]) -> tuple[Any, ...]:
        """The specs of all inputs of the body: what the function closes over is whole on each device."""
        return (*(PartitionSpec() for _ in body.consts), *specs)

    def _check(self, body: Any, in_specs: tuple[Any, ...], out_specs: Sequence[Any]) -> None:
        paths = tree.leaf_paths(body.out_tree)
        for path, spec, aval in zip(paths, out_specs, body.jaxpr.out_avals, strict=True):
            named_sharding.check_rank(spec, aval.ndim, f"result{path} of shard_map({self.name}), {aval!r}")
        if not self.check:
            return
        ins = tuple(varied(in_specs))
        result = body.jaxpr.memo(("varying", ins), lambda: varying(body.jaxpr, ins))
        for path, spec, axes in zip(paths, out_specs, result, strict=True):
            missing = [a for a in self.axes if a in axes and a not in spec.mentioned() and self.mesh.shape[a] > 1]
            if missing:
                listed = ", ".join(map(repr, missing))
                raise ArgumentError(
                    f"result{path} of shard_map({self.name}) may differ along the axis {listed}, which its spec "
                    f"{spec!r} leaves out",
                    fix=f"reduce it, e.g. by lax.psum or lax.pmean(x, {missing[0]!r}); or "
                    "name the axis in out_specs; or, if it is the same on all devices, say check_vma=False",
                )
