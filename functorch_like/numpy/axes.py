"""Checks of axis arguments (negative ones, tuples, None) and of shapes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from functorch_like.core import Tracer
from functorch_like.errors import AxisError, ConcretizationError, FtError, ShapeError
from functorch_like.foreign.values import axis_facts
from functorch_like.numpy import promotion


def ints_of(given: Any) -> list[int]:
    """Return an int, or several of them in a list, an array, or another library's shape, as a list.

    Raises:
        TypeError: for anything but ints, and for traced values.
    """
    several = hasattr(given, "__iter__") and getattr(given, "ndim", 1) and not issubclass(type(given), Tracer)
    return [operator.index(n) for n in given] if several else [operator.index(given)]


def shape_of(shape: Any, what: str) -> tuple[int, ...]:
    """Return a shape from an int or several of them.

    Raises:
        ConcretizationError: for traced sizes.
        ShapeError: for anything but ints, and for negative sizes.
    """
    try:
        result = tuple(ints_of(shape))
    except (TypeError, FtError):
        result = None
    if result is not None and all(n >= 0 for n in result):
        return result
    sizes = shape if isinstance(shape, (list, tuple)) else (shape,)
    traced = any(isinstance(n, Tracer) for n in sizes)
    raise promotion.error(
        ConcretizationError if traced else ShapeError,
        f"{what} needs a shape of non-negative ints, got {shape!r}",
        "shapes are fixed when a function is traced: use static_argnums, static_argnames or x.shape"
        if traced
        else "give a tuple of ints",
    )


def axis_of(axis: Any, ndim: int, what: str) -> int:
    """Return one axis, counted from 0.

    Raises:
        AxisError: where there is no such axis.
        ShapeError: for anything but an int.
    """
    try:
        d = operator.index(axis)
    except TypeError:
        raise promotion.error(ShapeError, *axis_facts(axis, "axis", what)) from None
    if not -ndim <= d < ndim:
        raise promotion.error(
            AxisError,
            f"{what}: axis {d} is out of bounds for an array of {ndim} dimensions",
            f"use {-ndim} to {ndim - 1}" if ndim else "an array of rank 0 has no axes; leave axis out",
        )
    return d % ndim


def ordered_axes(axis: Any, ndim: int, what: str) -> tuple[int, ...]:
    """Return axes counted from 0, in the order in which they are named; all of them for None.

    Raises:
        AxisError: for axes that do not exist.
        ShapeError: for axes named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, Sequence):
        return (axis_of(axis, ndim, what),)
    result = tuple(axis_of(a, ndim, what) for a in axis)
    if len(set(result)) != len(result):
        raise promotion.error(ShapeError, f"{what}: axis={tuple(axis)} names an axis twice", "name each axis once")
    return result


def axes_of(axis: Any, ndim: int, what: str) -> tuple[int, ...]:
    """Return axes counted from 0 and sorted; all of them for None. Raises as `ordered_axes` does."""
    return tuple(sorted(ordered_axes(axis, ndim, what)))


def hashable(axis: Any) -> Any:
    """Return an axis argument as a hashable one: lists become tuples."""
    return tuple(operator.index(a) for a in axis) if isinstance(axis, (list, tuple, range)) else axis
