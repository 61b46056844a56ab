"""Groups of positions along a named axis, for collectives within each group.

Members of a group pass their values around in a ring, so that no value leaves its group. This holds under
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
from functorch_like.primitives.indexing.dimension_numbers import GatherDimensionNumbers
from functorch_like.primitives.indexing.gather_and_scatter_add import gather


class AxisGroups:
    """Groups along an axis.

    Args:
        groups: lists of positions, in which each position occurs once.
        axis_name: one name.
        equal: True if the lists must have one length, because the shape of a result depends on it.

    Attributes:
        size: of each group; of the largest, where they differ.
        equal: whether all are of that size.

    Raises:
        ArgumentError: for other groups, several names, or an axis that is not in scope.
    """

    def __init__(self, groups: Any, axis_name: Any, *, equal: bool = True) -> None:
        names = axis_name if isinstance(axis_name, (tuple, list)) else (axis_name,)
        if len(names) != 1:
            raise error(ArgumentError, f"axis_index_groups go along one axis, got {names}", "give one name")
        (self._name,) = names
        try:
            count = reduce_over_axis.axis_size(self._name)
        except FtError as e:
            raise error(type(e), e.reason, e.fix) from None
        self._groups = _checked(groups, count, self._name, equal)
        self._count = count
        self.size = max(map(len, self._groups))
        self.equal = all(len(group) == self.size for group in self._groups)

    def position(self) -> Any:
        """Return the place of this position in its group, int32."""
        table = np.zeros(self._count, np.int32)
        for group in self._groups:
            table[group] = np.arange(len(group))
        return self._here(table)

    def members(self) -> Any:
        """Return the size of this position's group, int32."""
        table = np.zeros(self._count, np.int32)
        for group in self._groups:
            table[group] = len(group)
        return self._here(table)

    def _here(self, table: np.ndarray[Any, Any]) -> Any:
        """Return the row of a table that belongs to this position."""
        return slicing.dynamic_index_in_dim(table, reduce_over_axis.axis_index(axis_name=self._name), keepdims=False)

    def _around(self, x: Any) -> list[Any]:
        """Return the values of the members that are 0, 1, ... places ahead; zeros beyond the last of a small group."""
        around = [x]
        for step in range(1, self.size):
            pairs = [
                (group[(k + step) % len(group)], group[k])
                for group in self._groups
                if step < len(group)
                for k in range(len(group))
            ]
            around.append(exchange.ppermute(x, axis_name=self._name, perm=tuple(sorted(pairs))))
        return around

    def gather(self, x: Any) -> Any:
        """Return the values of the group, stacked along a new first dimension in the order of the group."""
        around = self._around(x)
        rows = [shapes.expand_dims(value, (0,)) for value in (*around, *around[:-1])]
        both = shapes.concatenate(rows, 0)  # the value of member j is in row (j - position) % size
        position = self.position()
        start = structural.full_like(position, self.size)
        begin = (start - position) % start
        return slicing.dynamic_slice_in_dim(both, begin, self.size, 0)

    def reduce(self, x: Any, combine: Callable[[Any, tuple[int, ...]], Any], neutral: Any = 0) -> Any:
        """Return the values of the group combined along the first dimension by `combine`.

        In groups of different sizes, rows beyond the last member hold `neutral`. All members combine in one order,
        so that their sums are equal, rounding included.
        """
        if self.equal:
            return combine(self.gather(x), (0,))
        order = np.full((self._count, self.size), self.size, np.int32)  # the last row is the neutral one
        for group in self._groups:
            for place, position in enumerate(group):
                order[position, : len(group)] = (np.arange(len(group)) - place) % len(group)
        rows = [shapes.expand_dims(value, (0,)) for value in (*self._around(x), structural.full_like(x, neutral))]
        index = shapes.expand_dims(self._here(order), (1,))
        return combine(rows_of(shapes.concatenate(rows, 0), index), (0,))

    def part(self, x: Any, axis: int, tiled: bool) -> Any:
        """Return the part of a dimension that belongs to this position; each member of the group has one."""
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


def rows_of(x: Any, index: Any) -> Any:
    """Return the rows of x that a column of indices selects."""
    rest = aval_of(x).shape[1:]
    dims = GatherDimensionNumbers(tuple(range(1, len(rest) + 1)), (0,), (0,))
    return gather(
        x, index, dimension_numbers=dims, slice_sizes=(1, *rest), mode="promise_in_bounds", fill_value=None,
        indices_are_sorted=False, unique_indices=False,
    )  # fmt: skip


def joined(stacked: Any, axis: int, tiled: bool) -> Any:
    """Return stacked values with their first dimension at `axis`, or joined along the dimension there."""
    ndim = aval_of(stacked).ndim
    order = [*range(1, axis + 1), 0, *range(axis + 1, ndim)]
    moved = structural.transpose(stacked, permutation=tuple(order))
    if not tiled:
        return moved
    shape = aval_of(moved).shape
    return structural.reshape(moved, shape=(*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))


def _checked(groups: Any, count: int, name: Any, equal: bool) -> list[list[int]]:
    try:
        listed = [[operator.index(position) for position in group] for group in groups]
    except TypeError:
        listed = []
    members = sorted(position for group in listed for position in group)
    if members != list(range(count)) or (equal and len({len(group) for group in listed}) != 1):
        raise error(
            ArgumentError,
            f"axis_index_groups={groups!r:.80} do not divide the {count} positions of the axis {name!r} into groups",
            f"give lists {'of one length ' if equal else ''}that hold each of 0 to {count - 1} once, e.g. "
            f"{np.arange(count).reshape(-1, 2 if count % 2 == 0 else 1).tolist()!r:.60}",
        )
    return [group for group in listed if group]
