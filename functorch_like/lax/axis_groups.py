"""Groups of positions along a named axis, for collectives within each group.

Members of a group pass their values around in a ring, so that nothing crosses the border of a group. This holds under
`vmap` and in `shard_map` alike.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, FtError, ShapeError
from functorch_like.lax import shapes, slicing
from functorch_like.lax.operands import error
from functorch_like.primitives import structural
from functorch_like.primitives.collectives import exchange, reduce_over_axis


class AxisGroups:
    """Groups along an axis.

    Args:
        groups: lists of positions, of one length, in which each position is once.
        axis_name: one name.

    Attributes:
        size: of each group.

    Raises:
        ArgumentError: for other groups, several names, or an axis that is not in scope.
    """

    def __init__(self, groups: Any, axis_name: Any) -> None:
        names = axis_name if isinstance(axis_name, (tuple, list)) else (axis_name,)
        if len(names) != 1:
            raise error(ArgumentError, f"axis_index_groups go along one axis, got {names}", "give one name")
        (self._name,) = names
        try:
            count = reduce_over_axis.axis_size(self._name)
        except FtError as e:
            raise error(type(e), e.reason, e.fix) from None
        self._groups = _checked(groups, count, self._name)
        self.size = len(self._groups[0])

    def position(self) -> Any:
        """Return the place of this position in its group, int32."""
        table = np.zeros(sum(map(len, self._groups)), np.int32)
        for group in self._groups:
            table[group] = np.arange(self.size)
        return slicing.dynamic_index_in_dim(table, reduce_over_axis.axis_index(axis_name=self._name), keepdims=False)

    def gather(self, x: Any) -> Any:
        """Return the values of the group, stacked along a new first dimension in the order of the group."""
        around = [x]
        for step in range(1, self.size):  # from the member that is `step` places ahead
            pairs = [(group[(k + step) % self.size], group[k]) for group in self._groups for k in range(self.size)]
            around.append(exchange.ppermute(x, axis_name=self._name, perm=tuple(sorted(pairs))))
        rows = [shapes.expand_dims(value, (0,)) for value in (*around, *around[:-1])]
        both = shapes.concatenate(rows, 0)  # the value of member j is in row (j - position) % size
        position = self.position()
        start = structural.full_like(position, self.size)
        begin = (start - position) % start
        return slicing.dynamic_slice_in_dim(both, begin, self.size, 0)

    def reduce(self, x: Any, combine: Callable[[Any, tuple[int, ...]], Any]) -> Any:
        """Return what `combine` makes of the values of the group, along the first dimension."""
        return combine(self.gather(x), (0,))

    def part(self, x: Any, axis: int, tiled: bool) -> Any:
        """Return the part of a dimension that belongs to this position: one of as many as the group has members."""
        size = aval_of(x).shape[axis]
        if size % self.size or not (tiled or size == self.size):
            raise error(
                ShapeError,
                f"dimension {axis} of {aval_of(x)!r} does not split into {self.size} parts, one for each of the group",
                "give it the size of the group" + (", or a multiple" if tiled else ", or say tiled=True"),
            )
        if not tiled:
            return slicing.dynamic_index_in_dim(x, self.position(), axis, keepdims=False)
        part = size // self.size
        position = self.position()
        return slicing.dynamic_slice_in_dim(x, position * structural.full_like(position, part), part, axis)


def joined(stacked: Any, axis: int, tiled: bool) -> Any:
    """Return stacked values with their first dimension at `axis`, or joined along the dimension there."""
    ndim = aval_of(stacked).ndim
    order = [*range(1, axis + 1), 0, *range(axis + 1, ndim)]
    moved = structural.transpose(stacked, permutation=tuple(order))
    if not tiled:
        return moved
    shape = aval_of(moved).shape
    return structural.reshape(moved, shape=(*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))


def _checked(groups: Any, count: int, name: Any) -> list[list[int]]:
    try:
        listed = [[operator.index(position) for position in group] for group in groups]
    except TypeError:
        listed = []
    members = sorted(position for group in listed for position in group)
    if members != list(range(count)) or len({len(group) for group in listed}) != 1:
        raise error(
            ArgumentError,
            f"axis_index_groups={groups!r:.80} for the axis {name!r} of {count} positions",
            f"give lists of one length that hold each of 0 to {count - 1} once, e.g. "
            f"{np.arange(count).reshape(-1, 2 if count % 2 == 0 else 1).tolist()!r:.60}",
        )
    return listed
