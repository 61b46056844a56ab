"""`pmap`: a function mapped over an axis, one element on each device; a thin form of `shard_map`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import tree
from functorch_like.backends import xla
from functorch_like.backends.xla.mesh import make_mesh
from functorch_like.backends.xla.partition_spec import PartitionSpec
from functorch_like.calling import api_boundary
from functorch_like.calling.call_signature import as_tuple
from functorch_like.core import ArrayImpl, Tracer, aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.primitives.base.shapes import reshape
from functorch_like.source_info import name_of
from functorch_like.transforms.jit import jit
from functorch_like.transforms.shard_map import Mapped


@api_boundary.public
def pmap(
    fun: Callable[..., Any] | None = None,
    axis_name: str | None = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Any] | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> Any:
    """Map a function over an axis of its arguments, one element on each device.

    It serves existing code. New code should split arrays by shardings, or use `shard_map`, on which `pmap` is built.

    Args:
        fun: takes and returns pytrees of arrays. Left out, `pmap` returns a decorator.
        axis_name: name of the axis for collectives.
        in_axes: as for `vmap`: an int or None for each argument, or one for all. Keyword arguments map over axis 0.
        out_axes: as for `vmap`; None takes the result of one device.
        static_broadcasted_argnums: positions of arguments that are compiled in.
        devices: the devices to use, in order; `ft.devices()` if None.
        axis_size: the expected size of the axis; None takes that of the arguments.
        donate_argnums: positions of arguments whose memory the results may take.

    Returns:
        The mapped function, compiled.

    Raises:
        ArgumentError: for positions that count from the end.
        ShapeError: where mapped axes have different sizes.
        DeviceError: where the axis is longer than there are devices.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> from functorch_like import lax
    >>> ft.pmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(fnp.asarray([2.0])).tolist()
    [1.0]
    """
    if fun is None:
        return functools.partial(
            pmap,
            axis_name=axis_name,
            in_axes=in_axes,
            out_axes=out_axes,
            static_broadcasted_argnums=static_broadcasted_argnums,
            devices=devices,
            axis_size=axis_size,
            donate_argnums=donate_argnums,
        )
    name = name_of(fun)
    axis = axis_name if isinstance(axis_name, str) else "pmap"
    static, donated = as_tuple(static_broadcasted_argnums), as_tuple(donate_argnums)
    for what, positions in (("static_broadcasted_argnums", static), ("donate_argnums", donated)):
        if any(n < 0 for n in positions):
            raise ArgumentError(f"{what}={positions} of pmap({name}) counts from the end", fix="count from 0")

    def mapped(*args: Any, **named: Any) -> Any:
        dynamic = tuple(a for i, a in enumerate(args) if i not in static)
        leaves, structure = xla.flatten((dynamic, named))
        prefixes = _over(in_axes, dynamic, static, f"in_axes of pmap({name})") + [0] * len(xla.flatten(named)[0])
        dims = [d if d is None else _axis_of(x, d, name) for d, x in zip(prefixes, leaves, strict=True)]
        size = _size(leaves, dims, axis_size, name)
        mesh = make_mesh((size,), (axis,), devices=devices)

        trees: list[Any] = []
        places: list[int | None] = []

        def one(*parts: Any) -> Any:
            flat = [x if d is None else _without(x, d) for x, d in zip(parts, dims, strict=True)]
            rest, keywords = structure.unflatten(flat)
            rest = iter(rest)
            out = fun(*(a if i in static else next(rest) for i, a in enumerate(args)), **keywords)
            outs, tree_of_outs = xla.flatten(out)
            out_dims = tree.broadcast_prefix(out_axes, out, f"out_axes of pmap({name})")
            trees[:] = [tree_of_outs]
            places[:] = [None if d is None else d % (aval_of(o).ndim + 1) for d, o in zip(out_dims, outs, strict=True)]
            return [o if d is None else _with(o, d) for o, d in zip(outs, places, strict=True)]

        one.traced_aux = lambda: (trees[0], tuple(places))  # type: ignore[attr-defined]
        specs = tuple(_spec(d, axis) for d in dims)
        outs = Mapped(one, name, mesh, specs, lambda _: [_spec(d, axis) for d in places], (), False)(tuple(leaves))
        return trees[0].unflatten(outs)

    compiled = jit(mapped, static_argnums=tuple(sorted(set(static))) or None, donate_argnums=donated or None)

    @api_boundary.public
    @functools.wraps(compiled)
    def run(*args: Any, **named: Any) -> Any:
        args = tuple(a if i in static else tree.map(_unbound, a) for i, a in enumerate(args))
        return compiled(*args, **tree.map(_unbound, named))

    for name_ in ("lower", "trace", "eval_shape", "clear_cache"):
        setattr(run, name_, getattr(compiled, name_))
    return run


def _unbound(x: Any) -> Any:
    """Return an uncommitted copy of an array that is committed to one device, so that the map can move it."""
    if type(x) is ArrayImpl and x._committed and len(x.devices()) == 1:
        return xla.device_put(np.asarray(x), None)
    return x


def _over(prefix: Any, dynamic: tuple[Any, ...], static: Sequence[int], what: str) -> list[Any]:
    if isinstance(prefix, (tuple, list)):
        prefix = tuple(d for i, d in enumerate(prefix) if i not in static)
    return tree.broadcast_prefix(prefix, dynamic, what)


def _axis_of(x: Any, axis: int, name: str) -> int:
    """Return an axis of an argument, counted from the front.

    Raises:
        ShapeError: if the argument has no such axis.
    """
    ndim = aval_of(x).ndim
    if not -ndim <= axis < ndim:
        raise ShapeError(
            f"pmap({name}) maps over axis {axis} of an argument {aval_of(x)!r}, which has {ndim} axes",
            fix="choose an axis it has, or None in in_axes to pass it whole to every device",
        )
    return axis % ndim


def _size(leaves: Sequence[Any], dims: Sequence[int | None], axis_size: int | None, name: str) -> int:
    sizes = {aval_of(x).shape[d] for x, d in zip(leaves, dims, strict=True) if d is not None}
    if axis_size is not None:
        sizes.add(axis_size)
    if len(sizes) != 1:
        shown = f"axes of different sizes: {sorted(sizes)}" if sizes else "nothing: in_axes are all None"
        raise ShapeError(f"pmap({name}) maps over {shown}", fix="give all mapped axes one size")
    return sizes.pop()


def _spec(dim: int | None, axis: str) -> PartitionSpec:
    return PartitionSpec() if dim is None else PartitionSpec(*(None,) * dim, axis)


def _without(x: Any, dim: int) -> Any:
    shape = aval_of(x).shape
    return reshape(x, shape=(*shape[:dim], *shape[dim + 1 :]))


def _with(x: Any, dim: int) -> Any:
    x = x if isinstance(x, (ArrayImpl, Tracer)) else np.asarray(x, aval_of(x).dtype)
    shape = aval_of(x).shape
    return reshape(x, shape=(*shape[:dim], 1, *shape[dim:]))
