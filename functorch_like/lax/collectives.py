"""Sums and extremes over a named axis, inside `vmap(..., axis_name=...)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from functorch_like import dtypes, tree
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, FtError
from functorch_like.lax.axis_groups import AxisGroups
from functorch_like.lax.operands import error, value
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.base.shapes import reduce_sum
from functorch_like.primitives.collectives import reduce_over_axis, shared_values
from functorch_like.primitives.reductions import reductions
from functorch_like.primitives.reductions.makers import highest, lowest

if TYPE_CHECKING:
    from functorch_like.calling.type_variables import T
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, AxisName


Groups = Sequence[Sequence[int]] | None


def names_of(axis_name: Any) -> tuple[Any, ...]:
    """Return a name, or several, as a tuple."""
    return axis_name if isinstance(axis_name, (tuple, list)) else (axis_name,)  # type: ignore[return-value]


def summable(x: Any) -> Any:
    """Convert booleans to a dtype that can be summed."""
    return structural.convert_element_type(x, new_dtype=dtypes.narrow_int()) if aval_of(x).dtype == dtypes.bool_ else x


def _over(primitive: Callable[..., Any], x: Any, axis_name: Any, axis_index_groups: Any) -> Any:
    axis_size(axis_name)
    groups = None if axis_index_groups is None else AxisGroups(axis_index_groups, axis_name, equal=False)

    def reduce(leaf: Any) -> Any:
        leaf = summable(value(leaf)) if primitive is reduce_over_axis.psum else value(leaf)
        if groups is not None:
            combine, neutral = _COMBINE[primitive]
            return groups.reduce(leaf, combine, neutral(aval_of(leaf).dtype)[()])
        for name in names_of(axis_name):
            leaf = primitive(leaf, axis_name=name)
        return leaf

    return tree.map(reduce, x)


#: The function that combines the values of a group, and its identity by dtype.
_COMBINE: dict[Any, tuple[Callable[..., Any], Callable[..., Any]]] = {
    reduce_over_axis.psum: (lambda x, axes: reduce_sum(x, axes=axes), lambda dtype: dtype.type(0)),
    reduce_over_axis.pmax: (lambda x, axes: reductions.reduce_max(x, axes=axes), lowest),
    reduce_over_axis.pmin: (lambda x, axes: reductions.reduce_min(x, axes=axes), highest),
}


def axis_size(axis_name: AxisName) -> int:
    """The size of a named axis, as a Python int; of several, their product.

    Args:
        axis_name: name of an axis of `vmap` or `shard_map`, or a tuple of names.

    Returns:
        An int.

    Raises:
        AxisNameError: where no such axis is in scope.

    >>> ft.vmap(lambda x: x / lax.axis_size("i"), axis_name="i")(fnp.ones(2)).tolist()
    [0.5, 0.5]
    """
    size = 1
    for name in names_of(axis_name):
        try:
            size *= reduce_over_axis.axis_size(name)
        except FtError as e:
            raise error(type(e), e.reason, e.fix) from None
    return size


@overload
def pcast(x: ArrayLike, axis_name: AxisName, *, to: Literal["varying"]) -> Array: ...
@overload
def pcast(x: T, axis_name: AxisName, *, to: Literal["varying"]) -> T: ...
def pcast(x: Any, axis_name: Any, *, to: Any) -> Any:
    """Return values as each device's own, though they are the same along a named axis.

    In `shard_map` with `check_vma=True`, a gradient by a value that is the same on all devices along an axis is summed
    over it. The gradient by `pcast(x, axis_name, to="varying")` is that of the device's own part.

    Args:
        x: array, or pytree of arrays.
        axis_name: name of an axis of `shard_map` or `vmap`, or a tuple of names.
        to: "varying".

    Returns:
        Arrays of the structure, shapes and values of x.

    Raises:
        AxisNameError: where no such axis is in scope.
        ArgumentError: for another `to`.

    >>> from functorch_like.sharding import PartitionSpec as P
    >>> mesh = ft.make_mesh((1,), ("i",))
    >>> own = lambda w, x: ft.grad(lambda w: (w * x).sum())(lax.pcast(w, "i", to="varying"))[None]
    >>> ft.shard_map(own, mesh=mesh, in_specs=(P(), P("i")), out_specs=P("i"))(2.0, fnp.asarray([3.0])).tolist()
    [3.0]
    """
    if to != "varying":
        raise error(ArgumentError, f"pcast has no to={to!r:.40}", 'use to="varying"')
    axis_size(axis_name)

    def marked(leaf: Any) -> Any:
        for name in names_of(axis_name):
            leaf = shared_values.pvary(value(leaf), axis_name=name)
        return leaf

    return tree.map(marked, x)


def axis_index(axis_name: AxisName) -> Array:
    """The position along a named axis, int32; along several, the position in row-major order.

    Args:
        axis_name: name of an axis of `vmap` or `shard_map`, or a tuple of names.

    Returns:
        int32, a scalar.

    Raises:
        AxisNameError: where no such axis is in scope.

    >>> ft.vmap(lambda x: x + lax.axis_index("i"), axis_name="i")(fnp.zeros(3)).tolist()
    [0.0, 1.0, 2.0]
    """
    axis_size(axis_name)
    out: Any = None
    for name in names_of(axis_name):
        in_grid = getattr(reduce_over_axis.axis_size(name), "position", None)  # of an axis of a Pallas kernel's grid
        index = reduce_over_axis.axis_index(axis_name=name) if in_grid is None else in_grid
        out = (
            index
            if out is None
            else elementwise.add(elementwise.mul(out, structural.full_like(out, axis_size(name))), index)
        )
    return np.zeros((), np.int32) if out is None else out  # pyright: ignore[reportReturnType]


@overload
def psum(x: ArrayLike, axis_name: AxisName, *, axis_index_groups: Groups = None) -> Array: ...
@overload
def psum(x: T, axis_name: AxisName, *, axis_index_groups: Groups = None) -> T: ...
def psum(x: Any, axis_name: Any, *, axis_index_groups: Groups = None) -> Any:
    """Sum over a named axis.

    Args:
        x: array, or pytree of arrays.
        axis_name: name, or tuple of names.
        axis_index_groups: lists that together hold each position once; each group is summed separately.

    Returns:
        Arrays like x, with equal values at all positions of the axis, or of a group. For a Python number, a Python
        number, unless groups differ in size.

    Raises:
        AxisNameError: where no such axis is in scope.

    >>> ft.vmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(fnp.asarray([1.0, 3.0])).tolist()
    [0.25, 0.75]
    """
    if isinstance(x, (int, float, complex)):
        count = _count(axis_name, axis_index_groups)
        return x * count if isinstance(count, int) else _times(count, x)
    return _over(reduce_over_axis.psum, x, axis_name, axis_index_groups)


def _times(count: Any, number: complex) -> Any:
    """Return a number of positions times a number, in the default dtype of the number."""
    dtype = aval_of(number).dtype
    count = structural.convert_element_type(count, new_dtype=dtype)
    return elementwise.mul(count, structural.full_like(count, number))


def _count(axis_name: Any, axis_index_groups: Any) -> Any:
    """Return the number of positions that are reduced together; an array where groups differ in size."""
    if axis_index_groups is None:
        return axis_size(axis_name)
    groups = AxisGroups(axis_index_groups, axis_name, equal=False)
    return groups.size if groups.equal else groups.members()


@overload
def pmean(x: ArrayLike, axis_name: AxisName, *, axis_index_groups: Groups = None) -> Array: ...
@overload
def pmean(x: T, axis_name: AxisName, *, axis_index_groups: Groups = None) -> T: ...
def pmean(x: Any, axis_name: Any, *, axis_index_groups: Groups = None) -> Any:
    """Mean over a named axis.

    Args:
        x: array, or pytree of arrays.
        axis_name: name of an axis of `vmap` or `shard_map`, or a tuple of names.
        axis_index_groups: lists that together hold each position once; each group is reduced separately.

    Returns:
        Arrays of the structure and shapes of x, with equal values at all positions of the axis, or of a group;
        integers become floats.

    >>> ft.vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")(fnp.asarray([1.0, 3.0])).tolist()
    [-1.0, 1.0]
    """
    size = _count(axis_name, axis_index_groups)

    def mean(total: Any) -> Any:
        total = value(total)
        if not dtypes.is_inexact(aval_of(total).dtype):
            total = structural.convert_element_type(total, new_dtype=dtypes.inexact_dtype(aval_of(total).dtype))
        return elementwise.div(total, _like(total, size))

    return tree.map(mean, psum(x, axis_name, axis_index_groups=axis_index_groups))


def _like(x: Any, count: Any) -> Any:
    """Return a number of positions, with the shape and dtype of x."""
    if isinstance(count, int):
        return structural.full_like(x, count)
    count = structural.convert_element_type(count, new_dtype=aval_of(x).dtype)
    return structural.broadcast_in_dim(count, shape=aval_of(x).shape, broadcast_dimensions=())


@overload
def pmax(x: ArrayLike, axis_name: AxisName, *, axis_index_groups: Groups = None) -> Array: ...
@overload
def pmax(x: T, axis_name: AxisName, *, axis_index_groups: Groups = None) -> T: ...
def pmax(x: Any, axis_name: Any, *, axis_index_groups: Groups = None) -> Any:
    """Maximum over a named axis.

    Args:
        x: array, or pytree of arrays.
        axis_name: name of an axis of `vmap` or `shard_map`, or a tuple of names.
        axis_index_groups: lists that together hold each position once; each group is reduced separately.

    Returns:
        Arrays like x, with equal values at all positions of the axis, or of a group.

    >>> ft.vmap(lambda x: lax.pmax(x, "i"), axis_name="i")(fnp.asarray([1.0, 3.0])).tolist()
    [3.0, 3.0]
    """
    return _over(reduce_over_axis.pmax, x, axis_name, axis_index_groups)


@overload
def pmin(x: ArrayLike, axis_name: AxisName, *, axis_index_groups: Groups = None) -> Array: ...
@overload
def pmin(x: T, axis_name: AxisName, *, axis_index_groups: Groups = None) -> T: ...
def pmin(x: Any, axis_name: Any, *, axis_index_groups: Groups = None) -> Any:
    """Minimum over a named axis.

    Args:
        x: array, or pytree of arrays.
        axis_name: name of an axis of `vmap` or `shard_map`, or a tuple of names.
        axis_index_groups: lists that together hold each position once; each group is reduced separately.

    Returns:
        Arrays like x, with equal values at all positions of the axis, or of a group.

    >>> ft.vmap(lambda x: lax.pmin(x, "i"), axis_name="i")(fnp.asarray([1.0, 3.0])).tolist()
    [1.0, 1.0]
    """
    return _over(reduce_over_axis.pmin, x, axis_name, axis_index_groups)


@overload
def pbroadcast(x: ArrayLike, axis_name: AxisName, source: int) -> Array: ...
@overload
def pbroadcast(x: T, axis_name: AxisName, source: int) -> T: ...
def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """Send one position's value along a named axis to all positions.

    Args:
        x: array, or pytree of arrays.
        axis_name: name, or tuple of names.
        source: the position that sends.

    Returns:
        Arrays of the structure, shapes and dtypes of x.

    Raises:
        ArgumentError: where no such axis is in scope, or the position is not on it.

    >>> ft.vmap(lambda x: lax.pbroadcast(x, "i", 1), axis_name="i")(fnp.asarray([5.0, 7.0])).tolist()
    [7.0, 7.0]
    """
    size = axis_size(axis_name)
    if not 0 <= source < size:
        raise error(
            ArgumentError, f"lax.pbroadcast got source={source} for an axis of {size} positions", f"use 0 to {size - 1}"
        )
    here = axis_index(axis_name)
    chosen = elementwise.eq(here, structural.full_like(here, source))

    def one(leaf: Any) -> Any:
        leaf = value(leaf)
        mask = structural.broadcast_in_dim(chosen, shape=aval_of(leaf).shape, broadcast_dimensions=())
        total = psum(elementwise.select_n(mask, structural.full_like(leaf, 0), leaf), axis_name)
        return structural.convert_element_type(total, new_dtype=aval_of(leaf).dtype)

    return tree.map(one, x)
