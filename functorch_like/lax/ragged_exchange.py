"""ragged_all_to_all: exchanging slices of different lengths along a named axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.lax import slicing
from functorch_like.lax.axis_groups import AxisGroups, rows_of
from functorch_like.lax.collectives import axis_index, axis_size
from functorch_like.lax.exchange import all_gather
from functorch_like.lax.operands import error, value
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.reductions import reductions

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.lax.collectives import Groups
    from functorch_like.typing import ArrayLike, AxisName


def ragged_all_to_all(
    operand: ArrayLike,
    output: ArrayLike,
    input_offsets: ArrayLike,
    send_sizes: ArrayLike,
    output_offsets: ArrayLike,
    recv_sizes: ArrayLike,
    *,
    axis_name: AxisName,
    axis_index_groups: Groups = None,
) -> Array:
    """Send slices of rows to the positions of a named axis, and write those received into an array.

    With p positions and n slices at each, slice i goes to position i // (n / p). It has the `send_sizes[i]` rows of
    `operand` from `input_offsets[i]` on, which become rows of the receiver's result from `output_offsets[i]` on. All
    operands are gathered first, so that each position needs memory for those of all.

    Args:
        operand: array of rows, (m, ...).
        output: array of rows, (j, ...), that the result begins with; of the operand's dtype.
        input_offsets: integers (n,): the first row of each slice. n is a multiple of p.
        send_sizes: integers (n,): the rows of each slice.
        output_offsets: integers (n,): the first row of each slice in the receiver's result.
        recv_sizes: integers (n,): the rows of each slice received, which follow from the sizes sent; not used.
        axis_name: name, or tuple of names, whose positions are in row-major order.
        axis_index_groups: as for `psum`, with groups of one size; p is that of a group, and positions are those in it.

    Returns:
        An array of the shape of `output`. Rows that are received twice are those of the later slice.

    Raises:
        AxisNameError: where no such axis is in scope.
        ShapeError: where shapes do not fit.
        DtypeError: where dtypes differ, or offsets and sizes are not integers.

    >>> rows = fnp.asarray([[1, 2, 2], [3, 3, 4]])  # position 0 sends 1 row to itself and 2 to position 1
    >>> sizes = fnp.asarray([[1, 2], [2, 1]])
    >>> starts, places = fnp.asarray([[0, 1], [0, 2]]), fnp.asarray([[0, 0], [1, 2]])
    >>> exchange = lambda *args: lax.ragged_all_to_all(*args, axis_name="i")
    >>> ft.vmap(exchange, axis_name="i")(rows, fnp.zeros_like(rows), starts, sizes, places, sizes.T).tolist()
    [[1, 3, 3], [2, 2, 4]]
    """
    groups = None if axis_index_groups is None else AxisGroups(axis_index_groups, axis_name)
    count = axis_size(axis_name) if groups is None else groups.size
    collected = (lambda x: all_gather(x, axis_name)) if groups is None else groups.gather
    position = axis_index(axis_name) if groups is None else groups.position()
    data, result = value(operand), value(output)
    lists = [value(x) for x in (input_offsets, send_sizes, output_offsets, recv_sizes)]
    _check(data, result, lists, count)
    each = aval_of(lists[0]).shape[0] // count
    slices, rows = count * each, aval_of(result).shape[0]
    if not slices or not rows:
        return result
    first = elementwise.mul(position, structural.full_like(position, each))

    def received(x: Any) -> Any:
        columns = slicing.dynamic_slice_in_dim(collected(x), first, each, 1)
        return structural.convert_element_type(structural.reshape(columns, shape=(slices,)), new_dtype=dtypes.int32)

    starts, sizes, places = (received(x) for x in lists[:3])
    grid = (slices, rows)
    spread = lambda x: structural.broadcast_in_dim(x, shape=grid, broadcast_dimensions=(0,))
    row = structural.iota(dtype=dtypes.int32, shape=grid, dimension=1)
    within = elementwise.sub(row, spread(places))
    inside = elementwise.and_(
        elementwise.ge(within, structural.full_like(within, 0)), elementwise.lt(within, spread(sizes))
    )
    # The later of two slices counts: the greatest number of those that have a row.
    number = structural.iota(dtype=dtypes.int32, shape=grid, dimension=0)
    last = reductions.reduce_max(elementwise.select_n(inside, structural.full_like(number, -1), number), axes=(0,))
    chosen = elementwise.eq(number, structural.broadcast_in_dim(last, shape=grid, broadcast_dimensions=(1,)))
    sender = elementwise.div(number, structural.full_like(number, each))
    height = aval_of(data).shape[0]
    source = elementwise.add(
        elementwise.add(within, spread(starts)), elementwise.mul(sender, structural.full_like(sender, height))
    )
    source = structural.reduce_sum(elementwise.select_n(chosen, structural.full_like(source, 0), source), axes=(0,))
    everything = collected(data)
    everything = structural.reshape(everything, shape=(count * height, *aval_of(data).shape[1:]))
    taken = rows_of(everything, structural.reshape(source, shape=(rows, 1)))
    found = elementwise.ge(last, structural.full_like(last, 0))
    mask = structural.broadcast_in_dim(found, shape=aval_of(result).shape, broadcast_dimensions=(0,))
    return elementwise.select_n(mask, result, taken)


def _check(operand: Any, output: Any, lists: list[Any], count: int) -> None:
    data, result = aval_of(operand), aval_of(output)
    if data.ndim < 1 or data.shape[1:] != result.shape[1:]:
        raise error(ShapeError, f"operand {data!r} and output {result!r} have different rows", "give equal row shapes")
    if data.dtype != result.dtype:
        raise error(DtypeError, f"operand {data!r} and output {result!r}", "convert one of them with astype")
    avals = [aval_of(x) for x in lists]
    if not all(dtypes.is_integer(aval.dtype) for aval in avals):
        raise error(DtypeError, f"offsets and sizes {avals!r} are no integers", "convert them with astype('int32')")
    lengths = {aval.shape for aval in avals}
    if len(lengths) != 1 or avals[0].ndim != 1 or avals[0].shape[0] % count:
        raise error(ShapeError, f"offsets and sizes {avals!r} along an axis of size {count}", f"give {count} k of each")
    if not data.shape[0] and avals[0].shape[0]:
        raise error(ArgumentError, f"operand {data!r} has no rows to send", "send at least one row")
