"""Exchanging parts of arrays along a named axis, inside `vmap(..., axis_name=...)`.

In the examples position i of the axis "i" holds row i of an array.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

from functorch_like import tree
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError
from functorch_like.lax.axis_groups import AxisGroups, joined
from functorch_like.lax.collectives import axis_size, names_of, summable
from functorch_like.lax.operands import axis_of, error, value
from functorch_like.primitives import structural
from functorch_like.primitives.base.shapes import reduce_sum
from functorch_like.primitives.collectives import exchange

if TYPE_CHECKING:
    from functorch_like.calling.type_variables import T
    from functorch_like.core import Array
    from functorch_like.lax.collectives import Groups
    from functorch_like.typing import ArrayLike, AxisName


def _one_name(axis_name: Any, function: str) -> Any:
    names = names_of(axis_name)
    if len(names) != 1:
        raise error(
            ArgumentError,
            f"lax.{function} exchanges along one axis, got {names}",
            "call it for one name after the other",
        )
    axis_size(names)
    return names[0]


def _each(x: Any, fun: Callable[[Any], Any]) -> Any:
    return tree.map(lambda leaf: fun(value(leaf)), x)


@overload
def all_gather(
    x: ArrayLike, axis_name: AxisName, *, axis_index_groups: Groups = None, axis: int = 0, tiled: bool = False
) -> Array: ...
@overload
def all_gather(
    x: T, axis_name: AxisName, *, axis_index_groups: Groups = None, axis: int = 0, tiled: bool = False
) -> T: ...
def all_gather(x: Any, axis_name: Any, *, axis_index_groups: Any = None, axis: int = 0, tiled: bool = False) -> Any:
    """Collect the values of all positions along a named axis.

    Args:
        x: array, or pytree of arrays.
        axis_name: name, or tuple of names, whose positions are in row-major order.
        axis_index_groups: as for `psum`; exchange within each group.
        axis: the dimension of the result that runs over the positions.
        tiled: concatenate along an existing dimension, instead of stacking along a new one.

    Returns:
        Arrays with equal values at all positions.

    Raises:
        AxisNameError: where no such axis is in scope.
        ShapeError: where there is no such dimension.

    >>> ft.vmap(lambda x: lax.all_gather(x, "i"), axis_name="i", out_axes=None)(fnp.arange(3)).tolist()
    [0, 1, 2]
    """
    axis_size(axis_name)
    groups = None if axis_index_groups is None else AxisGroups(axis_index_groups, axis_name)

    def one(x: Any) -> Any:
        at = axis_of(axis, aval_of(x).ndim + (not tiled))
        if groups is not None:
            return joined(groups.gather(x), at, tiled)
        for name in reversed(names_of(axis_name)):
            x = exchange.all_gather(x, axis_name=name, all_gather_dimension=at, tiled=tiled)
        count = len(names_of(axis_name))
        if tiled or count == 1:
            return x
        shape = aval_of(x).shape
        return structural.reshape(x, shape=(*shape[:at], axis_size(axis_name), *shape[at + count :]))

    return _each(x, one)


@overload
def psum_scatter(
    x: ArrayLike,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Groups = None,
    tiled: bool = False,
) -> Array: ...
@overload
def psum_scatter(
    x: T, axis_name: AxisName, *, scatter_dimension: int = 0, axis_index_groups: Groups = None, tiled: bool = False
) -> T: ...
def psum_scatter(
    x: Any, axis_name: Any, *, scatter_dimension: int = 0, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """Sum over a named axis, and leave one part of the sum at each position.

    Args:
        x: array, or pytree of arrays.
        axis_name: name, or tuple of names, whose positions are in row-major order.
        scatter_dimension: the dimension that is split. Its size is that of the axis; the result lacks it.
        axis_index_groups: as for `psum`; exchange within each group.
        tiled: keep the dimension. Its size must be a multiple of the axis' size; the result has the quotient.

    Returns:
        Arrays in the structure of x, each a part of the sum along the dimension.

    Raises:
        AxisNameError: where no such axis is in scope.
        ShapeError: where the dimension cannot be split into as many parts.

    >>> ft.vmap(lambda x: lax.psum_scatter(x, "i"), axis_name="i")(fnp.asarray([[1, 2], [3, 4]])).tolist()
    [4, 6]
    """
    size = axis_size(axis_name)
    names = names_of(axis_name)
    groups = None if axis_index_groups is None else AxisGroups(axis_index_groups, axis_name)

    def one(x: Any) -> Any:
        x = summable(x)
        shape = aval_of(x).shape
        at = axis_of(scatter_dimension, len(shape), "scatter_dimension")
        if groups is not None:
            return groups.part(groups.reduce(x, lambda x, axes: reduce_sum(x, axes=axes)), at, tiled)
        if len(names) > 1 and not tiled and shape[at] == size:
            x = structural.reshape(x, shape=(*shape[:at], *map(axis_size, names), *shape[at + 1 :]))
        for name in names:
            x = exchange.reduce_scatter(x, axis_name=name, scatter_dimension=at, tiled=tiled)
        return x

    return _each(x, one)


@overload
def all_to_all(
    x: ArrayLike,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Groups = None,
    tiled: bool = False,
) -> Array: ...
@overload
def all_to_all(
    x: T,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Groups = None,
    tiled: bool = False,
) -> T: ...
def all_to_all(
    x: Any, axis_name: Any, split_axis: int, concat_axis: int, *, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """Transpose a named axis with a dimension: position i sends its j-th part to position j.

    Args:
        x: array, or pytree of arrays.
        axis_name: one name.
        split_axis: the dimension that is split into parts. Its size is that of the axis; the result lacks it.
        concat_axis: the dimension along which received parts are stacked, in the order of the senders.
        axis_index_groups: as for `psum`; exchange within each group.
        tiled: keep the dimension. Its size must be a multiple of the axis' size; the result has the quotient, and
            parts are concatenated along concat_axis.

    Returns:
        Arrays in the structure of x, split along one dimension and joined along the other.

    Raises:
        AxisNameError: where no such axis is in scope.
        ShapeError: where the dimension cannot be split into as many parts.

    >>> ft.vmap(lambda x: lax.all_to_all(x, "i", 0, 0), axis_name="i")(fnp.asarray([[1, 2], [3, 4]])).tolist()
    [[1, 3], [2, 4]]
    """
    name = _one_name(axis_name, "all_to_all")
    groups = None if axis_index_groups is None else AxisGroups(axis_index_groups, axis_name)

    def one(x: Any) -> Any:
        ndim = aval_of(x).ndim
        split, concat = axis_of(split_axis, ndim, "split_axis"), axis_of(concat_axis, ndim, "concat_axis")
        if groups is not None:
            return joined(groups.part(groups.gather(x), split + 1, tiled), concat, tiled)
        return exchange.all_to_all(x, axis_name=name, split_axis=split, concat_axis=concat, tiled=tiled)

    return _each(x, one)


@overload
def ppermute(x: ArrayLike, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Array: ...
@overload
def ppermute(x: T, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> T: ...
def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Send the value of each position along a named axis to another.

    Args:
        x: array, or pytree of arrays.
        axis_name: one name.
        perm: pairs (source, destination); each position at most once as either.

    Returns:
        Arrays of the structure, shapes and dtypes of x; zeros at positions that receive nothing.

    Raises:
        ArgumentError: where no such axis is in scope, or perm repeats a position or names one beyond the axis.

    >>> ft.vmap(lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2)]), axis_name="i")(fnp.asarray([5, 6, 7])).tolist()
    [0, 5, 6]
    """
    name = _one_name(axis_name, "ppermute")
    pairs = tuple((operator.index(source), operator.index(destination)) for source, destination in perm)
    return _each(x, lambda x: exchange.ppermute(x, axis_name=name, perm=pairs))


@overload
def pshuffle(x: ArrayLike, axis_name: AxisName, perm: Sequence[int]) -> Array: ...
@overload
def pshuffle(x: T, axis_name: AxisName, perm: Sequence[int]) -> T: ...
def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Reorder the values along a named axis: position i gets the value of position perm[i].

    Args:
        x: array, or pytree of arrays.
        axis_name: name of an axis of `vmap` or `shard_map`.
        perm: for each position, the position whose value it gets; a permutation of range(size).

    Returns:
        Arrays of the structure, shapes and dtypes of x.

    Raises:
        ArgumentError: for anything but a permutation.

    >>> ft.vmap(lambda x: lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(fnp.asarray([5, 6, 7])).tolist()
    [7, 5, 6]
    """
    size = axis_size(axis_name)
    if sorted(perm) != list(range(size)):
        raise error(ArgumentError, f"perm={perm} is not a permutation of 0..{size - 1}", "name each position once")
    return ppermute(x, axis_name, [(source, k) for k, source in enumerate(perm)])


@overload
def pswapaxes(x: ArrayLike, axis_name: AxisName, axis: int, *, axis_index_groups: Groups = None) -> Array: ...
@overload
def pswapaxes(x: T, axis_name: AxisName, axis: int, *, axis_index_groups: Groups = None) -> T: ...
def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """Swap a named axis with a dimension of the same size.

    Args:
        x: array, or pytree of arrays.
        axis_name: name of an axis of `vmap` or `shard_map`.
        axis: int: the dimension, of the size of the named axis.
        axis_index_groups: as for `psum`; exchange within each group.

    Returns:
        Arrays in the structure of x, with the named axis exchanged for a dimension.

    >>> ft.vmap(lambda x: lax.pswapaxes(x, "i", 0), axis_name="i")(fnp.asarray([[1, 2], [3, 4]])).tolist()
    [[1, 3], [2, 4]]
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)
