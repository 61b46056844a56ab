"""`vmap`: map a function over axes of its arguments, by the batch rule of every primitive."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import tree
from functorch_like.avals import ExplicitAxes, ShapedArray
from functorch_like.backends import xla
from functorch_like.calling.call_signature import argument_path, flatten_values
from functorch_like.calling.float0 import is_float0, with_axis, without_axis
from functorch_like.calling.pickling import transformation
from functorch_like.calling.traced_function import check_callable, wraps
from functorch_like.calling.type_variables import P, R
from functorch_like.core import ArrayImpl, BatchAxis, Tracer, aval_of, is_value
from functorch_like.errors import ArgumentError, DtypeError, FtError, ShapeError, ShardingTypeError
from functorch_like.interpreters import batching
from functorch_like.primitives.base.shapes import move, widen
from functorch_like.source_info import name_of
from functorch_like.transforms.chunked_vmap import check_chunk_size, in_chunks, piece
from functorch_like.transforms.tangents import error_context

if TYPE_CHECKING:
    from functorch_like.typing import PyTree


#: Default of arguments for which None has a meaning.
_UNSAID: Any = object()


@transformation
def vmap(
    fun: Callable[P, R],
    in_axes: PyTree = 0,
    out_axes: PyTree = 0,
    axis_name: Hashable = None,
    axis_size: int | None = None,
    spmd_axis_name: Hashable = None,
    *,
    in_dims: PyTree = _UNSAID,
    out_dims: PyTree = _UNSAID,
    chunk_size: int | None = None,
    randomness: str = "same",
    buckets: Sequence[int] | bool | None = None,
) -> Callable[P, R]:
    """Map a function over an axis of its arguments, as one computation.

    Args:
        fun: written for one element; takes and returns pytrees of arrays.
        in_axes: which axis of each argument to map over: an int (negative counts from the end), None for arguments
            that are the same for every element, or a tuple with such for each argument; an entry may be a pytree
            that is a prefix of its argument. Keyword arguments are always mapped over axis 0.
        out_axes: where the axis goes in the results; a prefix of the result's pytree. None for results that do not
            depend on the element.
        axis_name: a name for the axis, for collectives such as `lax.psum(x, axis_name)`.
        axis_size: the size of the axis, needed only where no argument has it.
        spmd_axis_name: the mesh axis, or a tuple of them, over which sharding constraints inside of `fun` split the
            mapped axis. Without a mesh it has no effect.
        in_dims: torch.func's name for in_axes.
        out_dims: torch.func's name for out_axes.
        chunk_size: how many elements to take at once, which bounds the memory; all of them if None. The results are
            the same; under jit the chunks are the steps of one loop. Not together with axis_name, whose collectives
            need all elements at once.
        randomness: treatment of draws of `functorch_like.random` from a key that is the same for all elements:
            "same" gives all of them the same numbers, "different" draws for element number i from
            `random.fold_in(key, i)`, "error" raises. Keys that are mapped over differ in any case.
        buckets: sizes to which the axis is padded, or True for powers of two: a program compiled for one number of
            elements serves all of a bucket. Not together with axis_name. Effects, such as `debug.print`, run for the
            padding, too.

    Returns:
        The mapped function.

    Raises:
        ShapeError: where mapped axes have different sizes, or an argument has no such axis.
        ArgumentError: where in_axes or out_axes do not fit the arguments or results.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> ft.vmap(fnp.dot, in_axes=(0, None))(fnp.ones((3, 2)), fnp.ones(2)).tolist()
    [2.0, 2.0, 2.0]
    """
    name = name_of(fun)
    check_callable(fun, "vmap")
    in_axes = _either(in_axes, in_dims, "in", name)
    out_axes = _either(out_axes, out_dims, "out", name)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not isinstance(in_axes, (int, np.integer, tuple, type(None))):
        raise ArgumentError(
            f"in_axes of vmap({name}) must be an int, None, or a tuple with one entry per argument, got {in_axes!r}",
            fix="for a pytree argument write in_axes=({'w': 0},)",
        )
    if axis_size is not None and not isinstance(axis_size, (int, np.integer)):
        raise ArgumentError(
            f"axis_size={axis_size!r:.60} of vmap({name}) is not an int",
            fix="give an int; an argument of jit that is one is static: jit(static_argnums=...)",
        )
    _check_options(name, axis_name, spmd_axis_name, chunk_size, randomness)
    allowed = _bucket_sizes(name, buckets, axis_name, axis_size)

    def again(fun: Any, in_axes: Any, out_axes: Any) -> Any:
        named = (axis_name, axis_size, spmd_axis_name)
        return vmap(fun, in_axes, out_axes, *named, chunk_size=chunk_size, randomness=randomness, buckets=buckets)

    @wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = xla.flatten((args, kwargs))
        flat_axes = _flat_in_axes(in_axes, args, kwargs, leaves, name)
        avals: list[Any] = []
        failed: DtypeError | None = None
        try:
            avals = [_aval(a, d, i, in_tree, name) for i, (a, d) in enumerate(zip(leaves, flat_axes, strict=True))]
        except DtypeError as e:
            failed = e
        if failed is not None:
            from functorch_like.transforms.vmap_refs import mapped_refs  # few functions have Refs

            return mapped_refs(again, failed, fun, (args, kwargs), in_axes, out_axes, flat_axes)
        flat_axes = [_canonical(d, i, in_tree, a, name) for i, (d, a) in enumerate(zip(flat_axes, avals, strict=True))]
        size = _size(flat_axes, avals, axis_size, in_tree, name)
        for i, (leaf, d) in enumerate(zip(leaves, flat_axes, strict=True)):
            if is_float0(leaf) and d is not None:
                leaves[i], flat_axes[i] = without_axis(leaf, d), None
        trees: list[Any] = []
        axes_out: list[int | None] = []

        function: Callable[..., Any] = fun

        def flat(*values: Any) -> list[Any]:
            inner_args, inner_kwargs = in_tree.unflatten(values)
            outs, out_tree = flatten_values(function(*inner_args, **inner_kwargs))
            trees[:] = [out_tree]
            return outs

        flat.traced_aux = lambda: trees[0]  # type: ignore[attr-defined]

        def run(values: Any, start: Any, count: int) -> list[Any]:
            parts = [a if d is None else piece(a, d, start, count) for a, d in zip(values, flat_axes, strict=True)]
            axis = BatchAxis(count, axis_name, randomness, spmd_axis_name, _explicit(parts, flat_axes))
            outs, traced_axes = batching.batch(flat, axis, parts, flat_axes, f"vmap({name})")
            flat_out_axes = _of_results(out_axes, trees[0], len(outs), name)
            moved = [
                _at_out_axis(o, d, w, count, name) for o, d, w in zip(outs, traced_axes, flat_out_axes, strict=True)
            ]
            axes_out[:] = [
                None if w is None else w % aval_of(o).ndim for o, w in zip(moved, flat_out_axes, strict=True)
            ]
            return moved

        def in_all(values: Any, count: int) -> list[Any]:
            return in_chunks(functools.partial(run, values), count, chunk_size, lambda: axes_out)

        flat_outs = (
            in_all(leaves, size) if not buckets else _padded(in_all, leaves, flat_axes, size, allowed, name, axes_out)
        )
        outs = trees[0].unflatten(flat_outs)
        results, out_tree = xla.flatten(outs)
        if not any(map(is_float0, results)):
            return outs
        flat_out_axes = _prefix(out_axes, outs, "out_axes", name)
        return out_tree.unflatten(
            [with_axis(x, p, size) if is_float0(x) else x for x, p in zip(results, flat_out_axes, strict=True)]
        )

    return mapped


def _explicit(args: Sequence[Any], dims: Sequence[int | None]) -> ExplicitAxes | None:
    """Return how Explicit axes of a mesh split the mapped axis, as of a vector.

    Raises:
        ShardingTypeError: where they split it in different ways.
    """
    found: ExplicitAxes | None = None
    for a, d in zip(args, dims, strict=True):
        explicit = None if d is None else aval_of(a).explicit
        if explicit is None or d is None or not explicit.axes[d]:
            continue
        here = ExplicitAxes(explicit.mesh, (explicit.axes[d],))
        if found is not None and found != here:
            raise ShardingTypeError(
                f"the mapped axis is split by {found.axes[0]!r} in one argument, and by {here.axes[0]!r} in another",
                fix="reshard one of them",
            )
        found = here
    return found


def _either(axes: Any, dims: Any, side: str, name: str) -> Any:
    """Return the argument given under JAX's name or under torch.func's."""
    if dims is _UNSAID:
        return axes
    if axes != 0:
        raise ArgumentError(
            f"vmap({name}) got {side}_axes={axes!r} and {side}_dims={dims!r}, two names of one argument",
            fix=f"give {side}_axes alone",
        )
    return dims


def _check_options(name: str, axis_name: Any, spmd_axis_name: Any, chunk_size: Any, randomness: Any) -> None:
    check_chunk_size(chunk_size, f"vmap({name})")
    if randomness not in ("same", "different", "error"):
        raise ArgumentError(
            f"randomness={randomness!r} of vmap({name}) is unknown", fix="use 'same', 'different' or 'error'"
        )
    if chunk_size is not None and axis_name is not None:
        raise ArgumentError(
            f"vmap({name}) has chunk_size={chunk_size} and axis_name={axis_name!r}: a collective over the axis would "
            "cover one chunk of it",
            fix="leave one of them out",
        )
    if chunk_size is not None and randomness == "different":
        raise ArgumentError(
            f"vmap({name}) has chunk_size={chunk_size} and randomness='different': draws depend on "
            "an element's number in the whole axis, and inside of a chunk that number is not available",
            fix="map over keys: in_axes=0 for random.split(key, n)",
        )
    if spmd_axis_name is not None and not isinstance(spmd_axis_name, (str, tuple)):
        raise ArgumentError(
            f"spmd_axis_name={spmd_axis_name!r} of vmap({name}) is not a name of a mesh axis",
            fix="use a string, or a tuple of strings",
        )


def _bucket_sizes(name: str, buckets: Any, axis_name: Any, axis_size: int | None) -> tuple[int, ...] | None:
    if buckets is None or buckets is False:
        return None
    from functorch_like.transforms.buckets import mapped  # few functions need them

    return mapped.check(name, buckets, axis_name, axis_size)


def _padded(
    in_all: Any, leaves: list[Any], axes: Any, size: int, allowed: Any, name: str, axes_out: list[int | None]
) -> list[Any]:
    from functorch_like.transforms.buckets import mapped

    return mapped.padded(in_all, leaves, axes, size, allowed, name, lambda: axes_out)


def _of_results(axes: Any, structure: Any, count: int, name: str) -> list[Any]:
    """Return the axis of each result that is an array, from a prefix of a tree of results."""
    if axes is None or isinstance(axes, (int, np.integer)):  # nodes of users need no values then
        return [axes] * count
    # Objects stand for the results: nodes may check shapes, and the axes are not in their places yet.
    whole = structure.unflatten([object() for _ in range(count)])
    every = zip(_prefix(axes, whole, "out_axes", name), xla.flatten(whole)[0], strict=True)
    return [place for place, leaf in every if not is_float0(leaf)]


def _prefix(axes: Any, whole: Any, what: str, name: str) -> list[Any]:
    """One axis for each leaf, from a prefix tree."""
    if axes is None or isinstance(axes, (int, np.integer)):
        return [axes] * len(xla.flatten(whole)[0])
    result = tree.broadcast_prefix(axes, whole, f"{what} of vmap({name})")
    for axis in result:
        if axis is not None and not isinstance(axis, (int, np.integer)):
            raise ArgumentError(
                f"{what} of vmap({name}) has {axis!r} where an int or None belongs",
                fix="use ints and None",
                **error_context(),
            )
    return result


def _flat_in_axes(
    in_axes: Any, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: list[Any], name: str
) -> list[Any]:
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise ArgumentError(
            f"in_axes={in_axes!r} of vmap({name}) has {len(in_axes)} entries for {len(args)} positional arguments",
            fix="give one entry for each positional argument, or one int for all",
            **error_context(),
        )
    return [*_prefix(in_axes, args, "in_axes", name), *[0] * len(xla.flatten(kwargs)[0])]


def _aval(leaf: Any, axis: Any, position: int, in_tree: Any, name: str) -> Any:
    if axis is None and not is_value(leaf):
        return None  # an argument that is not mapped may be anything
    if is_float0(leaf):
        return ShapedArray(leaf.shape, leaf.dtype)
    try:
        return aval_of(leaf)
    except FtError as e:
        path = argument_path(in_tree, position)
        e.reason = f"argument {path} of vmap({name}): {e.reason}"
        raise e.add_context(**error_context()) from None


def _canonical(axis: Any, position: int, in_tree: Any, aval: Any, name: str) -> int | None:
    if axis is None:
        return None
    ndim = aval.ndim
    if not -ndim <= axis < ndim:
        path = argument_path(in_tree, position)
        raise ShapeError(
            f"vmap({name}) maps over axis {axis} of argument {path}, which is {aval!r} and has {ndim} axes",
            fix="choose an axis it has, or None in in_axes to pass it whole to every element",
            **error_context(),
        )
    return int(axis) % ndim


def _size(axes: list[int | None], avals: list[Any], axis_size: int | None, in_tree: Any, name: str) -> int:
    sizes = {a.shape[d] for a, d in zip(avals, axes, strict=True) if d is not None}
    if axis_size is not None:
        sizes.add(int(axis_size))
    if len(sizes) == 1:
        return sizes.pop()
    if not sizes:
        raise ArgumentError(
            f"vmap({name}) has nothing to map over: in_axes are all None",
            fix="give at least one argument an axis, or say axis_size=",
            **error_context(),
        )
    paths = [argument_path(in_tree, i) for i in range(len(avals))]
    lines = [
        f"{p}: {a!r} has {a.shape[d]} along axis {d}"
        for p, a, d in zip(paths, avals, axes, strict=True)
        if d is not None
    ]
    if axis_size is not None:
        lines.append(f"axis_size={axis_size}")
    raise ShapeError(
        f"vmap({name}) maps over axes of different sizes: " + "; ".join(lines),
        fix="mapped axes must have one size; use None in in_axes for an argument that is the same for every element",
        **error_context(),
    )


def _at_out_axis(out: Any, axis: int | None, out_axis: int | None, size: int, name: str) -> Any:
    if out_axis is None:
        if axis is not None:
            raise ArgumentError(
                f"out_axes of vmap({name}) is None for a result that differs between elements",
                fix="give it an axis, or reduce it with a collective such as lax.psum",
                **error_context(),
            )
        return out
    if axis is None:
        out = widen(_operand(out), size)
        axis = 0
    ndim = aval_of(out).ndim
    if not -ndim <= out_axis < ndim:
        raise ArgumentError(
            f"out_axes of vmap({name}) puts the axis at {out_axis} of a result with {ndim} axes",
            fix=f"use {-ndim} to {ndim - 1}",
            **error_context(),
        )
    return move(out, axis, out_axis % ndim)


def _operand(x: Any) -> Any:
    if isinstance(x, (ArrayImpl, Tracer)):
        return x
    value = np.asarray(x, aval_of(x).dtype)
    return value[()] if aval_of(x).weak_type else value  # a NumPy scalar is weak, an array of rank 0 is not
