"""Axes that `vmap` maps over: checked, one for each leaf of the arguments, and moved to their places in the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import tree
from functorch_like.avals import ExplicitAxes, ShapedArray
from functorch_like.backends import xla
from functorch_like.calling.call_signature import argument_path
from functorch_like.calling.float0 import is_float0
from functorch_like.core import ArrayImpl, Tracer, aval_of, is_value
from functorch_like.errors import ArgumentError, FtError, ShapeError, ShardingTypeError
from functorch_like.primitives.base.shapes import move, widen
from functorch_like.transforms.tangents import error_context


def checked_in_axes(in_axes: Any, name: str) -> Any:
    """Return `in_axes` with a tuple for a list.

    Raises:
        ArgumentError: for anything but an int, None or a sequence.
    """
    if isinstance(in_axes, list):
        return tuple(in_axes)
    if not isinstance(in_axes, (int, np.integer, tuple, type(None))):
        raise ArgumentError(
            f"in_axes of vmap({name}) must be an int, None, or a tuple with one entry per argument, got {in_axes!r}",
            fix="for a pytree argument write in_axes=({'w': 0},)",
        )
    return in_axes


def of_results(axes: Any, structure: Any, count: int, name: str) -> list[Any]:
    """Return the axis of each result that is an array, from a prefix of a tree of results."""
    if axes is None or isinstance(axes, (int, np.integer)):  # nodes of users need no values then
        return [axes] * count
    # Objects stand for the results: nodes may check shapes, and the axes are not in their places yet.
    whole = structure.unflatten([object() for _ in range(count)])
    every = zip(prefix(axes, whole, "out_axes", name), xla.flatten(whole)[0], strict=True)
    return [place for place, leaf in every if not is_float0(leaf)]


def prefix(axes: Any, whole: Any, what: str, name: str) -> list[Any]:
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


def flat_in_axes(in_axes: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> list[Any]:
    """Return the axis of each leaf of the arguments; those by name are mapped over axis 0.

    Raises:
        ArgumentError: for axes that do not fit the arguments.
    """
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise ArgumentError(
            f"in_axes={in_axes!r} of vmap({name}) has {len(in_axes)} entries for {len(args)} positional arguments",
            fix="give one entry for each positional argument, or one int for all"
            + ("; arguments with names are mapped along axis 0: pass the others by position" if kwargs else ""),
            **error_context(),
        )
    return [*prefix(in_axes, args, "in_axes", name), *[0] * len(xla.flatten(kwargs)[0])]


def mapped_aval(leaf: Any, axis: Any, position: int, in_tree: Any, name: str) -> Any:
    """Return the aval of a leaf; None for one that is not mapped and no array.

    Raises:
        FtError: with the leaf's path, for a mapped one that is no array.
    """
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


def canonical(axis: Any, position: int, in_tree: Any, aval: Any, name: str) -> int | None:
    """Return an axis, counted from 0.

    Raises:
        ShapeError: for an axis that the leaf lacks.
    """
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


def size_along(axes: list[int | None], avals: list[Any], axis_size: int | None, in_tree: Any, name: str) -> int:
    """Return the size of the mapped axis.

    Raises:
        ShapeError: where arguments differ in it.
        ArgumentError: if no argument is mapped.
    """
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


def at_out_axis(out: Any, axis: int | None, out_axis: int | None, size: int, name: str) -> Any:
    """Return a result with its batch axis moved to `out_axis`.

    Raises:
        ArgumentError: where it has no such place, or differs between elements and has none.
    """
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


def explicit_axes(args: Sequence[Any], dims: Sequence[int | None]) -> ExplicitAxes | None:
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
