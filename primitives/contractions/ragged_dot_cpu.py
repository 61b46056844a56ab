"""Products of groups of rows on CPUs: a loop over groups, and in it over tiles of the group's rows.

The standard forms multiply all rows for each group, so that 32 groups take 32 times as long as one product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import SampleInput
from functorch_like.primitives.base.accumulating import widened
from functorch_like.primitives.base.counted_loop import FLAG, INDEX, counted_loop, piece
from functorch_like.primitives.base.lowering import Alternative
from functorch_like.primitives.contractions.precision import emit_dot

#: Most rows of a tile.
_MOST = 256


def bounds_of_groups(e: Any, sizes: Any, counts: ShapedArray) -> tuple[Any, Any]:
    """Emit the first row of each group, and the row after its last, (..., g) of int32."""
    b, g = counts.ndim - 1, counts.shape[-1]
    index = counts.update(dtype=dtypes.int32)
    sizes = e.convert(sizes, index)
    # The sum of all sizes up to each. g is small, so a square of comparisons will do.
    square = index.update(shape=(*counts.shape, g))
    i, j = (e.op("stablehlo.iota", [], [square], {"iota_dimension": e.i64(b + d)}) for d in (0, 1))
    spread = e.broadcast_in_dim(sizes, square, [*range(b), b + 1])
    flags = e.compare("LE", j, i, square.update(dtype=dtypes.bool_), "SIGNED")
    earlier = e.op("stablehlo.select", [flags, spread, e.full(0, square)], [square])
    ends = e.reduce("add", earlier, 0, [b + 1], index)
    return e.op("stablehlo.subtract", [ends, sizes], [index]), ends


class _Tiles(NamedTuple):
    """The rows of all batches, one after the other, in tiles.

    Attributes:
        batches: how many batches there are.
        rows: rows of all of them.
        groups: groups of all of them.
        height: rows of a tile.
    """

    batches: int
    rows: int
    groups: int
    height: int

    def bounds(self, e: Any, sizes: Any, counts: ShapedArray) -> tuple[list[Any], ShapedArray]:
        """Emit the first row and the end of each group of all batches."""
        index = counts.update(dtype=dtypes.int32)
        flat = index.update(shape=(self.groups,))
        each = self.rows // self.batches
        batch = e.op("stablehlo.iota", [], [flat], {"iota_dimension": e.i64(0)})
        per_batch = e.full(self.groups // self.batches, flat)
        before = e.op(
            "stablehlo.multiply", [e.op("stablehlo.divide", [batch, per_batch], [flat]), e.full(each, flat)], [flat]
        )
        # Sizes may add up to more rows than there are.
        limit = lambda x: e.op("stablehlo.clamp", [e.full(0, INDEX), x, e.full(each, INDEX)], [index])
        shift = lambda x: e.op("stablehlo.add", [e.reshape(limit(x), index, flat), before], [flat])
        return [shift(x) for x in bounds_of_groups(e, sizes, counts)], flat

    def each_group(
        self,
        e: Any,
        bounds: Sequence[Any],
        flat: ShapedArray,
        operands: Sequence[Any],
        avals: Sequence[ShapedArray],
        step: Callable[..., Any],
    ) -> Any:
        """Emit a loop over groups.

        Args:
            e: the emitter.
            bounds: of the groups.
            flat: aval of each of the two.
            operands: the first value of the result, then the values that the steps read.
            avals: of the operands.
            step: `(e, group, start, end, result, *read) -> result`.

        Returns:
            The last result.
        """

        def body(f: Any, i: Any, result: Any, starts: Any, ends: Any, *read: Any) -> list[Any]:
            start, end = (f.reshape(piece(f, x, [i], flat.update(shape=(1,))), flat, INDEX) for x in (starts, ends))
            return [step(f, i, start, end, result, *read), starts, ends, *read]

        result, *read = operands
        of_result, *of_read = avals
        return counted_loop(e, self.groups, [result, *bounds, *read], [of_result, flat, flat, *of_read], body)

    def each_tile(
        self,
        e: Any,
        start: Any,
        end: Any,
        operands: Sequence[Any],
        avals: Sequence[ShapedArray],
        step: Callable[..., Any],
    ) -> Any:
        """Emit a loop over the tiles of one group.

        Args:
            e: the emitter.
            start: the group's first row.
            end: the row after its last.
            operands: the first value of the result, then the values that the steps read.
            avals: of the operands.
            step: `(e, row, inside, result, *read) -> result`: `row` is the tile's first row, `inside` the mask of the
                rows that are the group's and not yet used. A tile at the end of the array begins before the row due.
        """
        height = ShapedArray((self.height,), dtypes.int32)

        def more(f: Any, row: Any, end: Any, *_: Any) -> list[Any]:
            return [f.compare("LT", row, end, FLAG, "SIGNED")]

        def body(f: Any, row: Any, end: Any, result: Any, *read: Any) -> list[Any]:
            at = f.op("stablehlo.minimum", [row, f.full(self.rows - self.height, INDEX)], [INDEX])
            spread = lambda x: f.broadcast_in_dim(x, height, ())
            own = f.op(
                "stablehlo.add",
                [f.op("stablehlo.iota", [], [height], {"iota_dimension": f.i64(0)}), spread(at)],
                [height],
            )
            flags = height.update(dtype=dtypes.bool_)
            after = f.compare("GE", own, spread(row), flags, "SIGNED")
            before = f.compare("LT", own, spread(end), flags, "SIGNED")
            made = step(f, at, f.op("stablehlo.and", [after, before], [flags]), result, *read)
            return [f.op("stablehlo.add", [row, f.full(self.height, INDEX)], [INDEX]), end, made, *read]

        return e.loop([start, end, *operands], [INDEX, INDEX, *avals], more, body)[2]


def _put(e: Any, x: Any, update: Any, at: Any, aval: ShapedArray) -> Any:
    places = [at, *[e.full(0, INDEX)] * (aval.ndim - 1)]
    return e.op("stablehlo.dynamic_update_slice", [x, update, *places], [aval])


def _only(e: Any, inside: Any, x: Any, other: Any, aval: ShapedArray) -> Any:
    """Emit the rows of `x` that are inside, and `other` in the place of the rest."""
    mask = e.broadcast_in_dim(inside, aval.update(dtype=dtypes.bool_), (0,))
    return e.op("stablehlo.select", [mask, x, other], [aval])


def _tiles(left: ShapedArray, counts: ShapedArray, least: int) -> _Tiles:
    """Return tiles of half of the mean rows of a group, which were the fastest; `least` is measured, too."""
    batches, m, g = math.prod(left.shape[:-2]), left.shape[-2], counts.shape[-1]
    half = max(1, m // (2 * g))
    height = min(max(1 << (half - 1).bit_length(), least), _MOST)
    return _Tiles(batches, batches * m, batches * g, min(height, batches * m))


def _takes(ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], **_: Any) -> bool:
    return all(aval.size for aval in (*ins, *outs))


def _dot(e: Any, lhs: Any, rhs: Any, sizes: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    left, right, counts = e.ins
    (out,) = e.outs
    tiles = _tiles(left, counts, 8)
    (k, n), narrow = right.shape[-2:], out.update(shape=(tiles.rows, right.shape[-1]))
    rows, matrices = left.update(shape=(tiles.rows, k)), right.update(shape=(tiles.groups, k, n))
    one, matrix = right.update(shape=(1, k, n)), right.update(shape=(k, n))
    tile, made = rows.update(shape=(tiles.height, k)), narrow.update(shape=(tiles.height, n))

    def of_tile(f: Any, row: Any, inside: Any, result: Any, rows: Any, matrix_: Any) -> Any:
        y = emit_dot(
            f, piece(f, rows, [row], tile), matrix_, tile, matrix, widened(made), ((1,), (0,)), ((), ()), precision
        )
        return _put(f, result, _only(f, inside, f.convert(y, made), piece(f, result, [row], made), made), row, narrow)

    def of_group(f: Any, group: Any, start: Any, end: Any, result: Any, lhs: Any, rhs: Any) -> Any:
        own = f.reshape(piece(f, rhs, [group], one), one, matrix)
        return tiles.each_tile(f, start, end, [result, lhs, own], [narrow, rows, matrix], of_tile)

    operands = [e.full(0, narrow), e.reshape(lhs, left, rows), e.reshape(rhs, right, matrices)]
    y = tiles.each_group(e, *tiles.bounds(e, sizes, counts), operands, [narrow, rows, matrices], of_group)
    return e.reshape(y, narrow, out)


def _contract(
    e: Any, lhs: Any, rhs: Any, sizes: Any, *, precision: Any = None, preferred_element_type: Any = None
) -> Any:
    left, right, counts = e.ins
    (out,) = e.outs
    tiles = _tiles(left, counts, 16)
    k, n = out.shape[-2:]
    rows, others = left.update(shape=(tiles.rows, k)), right.update(shape=(tiles.rows, n))
    tile, other = rows.update(shape=(tiles.height, k)), others.update(shape=(tiles.height, n))
    sums, narrow = widened(out.update(shape=(k, n))), out.update(shape=(tiles.groups, k, n))
    one = narrow.update(shape=(1, k, n))

    def of_tile(f: Any, row: Any, inside: Any, total: Any, lhs: Any, rhs: Any) -> Any:
        # Both: 0 times what is not finite in another group's row would be NaN.
        own = lambda x, aval: _only(f, inside, piece(f, x, [row], aval), f.full(0, aval), aval)
        y = emit_dot(f, own(lhs, tile), own(rhs, other), tile, other, sums, ((0,), (0,)), ((), ()), precision)
        return f.op("stablehlo.add", [total, y], [sums])

    def of_group(f: Any, group: Any, start: Any, end: Any, result: Any, lhs: Any, rhs: Any) -> Any:
        total = tiles.each_tile(f, start, end, [f.full(0, sums), lhs, rhs], [sums, rows, others], of_tile)
        made = f.convert(total, sums.update(dtype=out.dtype))
        return _put(f, result, f.reshape(made, sums, one), group, narrow)

    operands = [e.full(0, narrow), e.reshape(lhs, left, rows), e.reshape(rhs, right, others)]
    y = tiles.each_group(e, *tiles.bounds(e, sizes, counts), operands, [narrow, rows, others], of_group)
    return e.reshape(y, narrow, out)


def _alternative(lower: Callable[..., Any], edges: Callable[[], list[tuple[SampleInput, bool]]]) -> Alternative:
    return Alternative("tiles of each group's rows", "no size is 0", _takes, lower, edges, conditional=True)


def dot_by_tiles(sample: Callable[..., SampleInput]) -> Alternative:
    """Multiply tiles of each group's rows. `sample` takes shapes, sizes, a dtype and parameters."""
    return _alternative(
        _dot,
        lambda: [
            (sample((5, 3), (2, 3, 4), [2, 3]), True),
            (sample((100, 3), (2, 3, 4), [63, 30]), True),  # several tiles, one of which begins before the row due
            (sample((2, 40, 3), (2, 3, 3, 2), [[17, 0, 20], [1, 39, 30]]), True),
            (sample((40, 3), (3, 3, 2), [17, 3, 20], "bfloat16"), True),
            (sample((0, 3), (2, 3, 4), [0, 0]), False),
        ],
    )


def contract_by_tiles(sample: Callable[..., SampleInput]) -> Alternative:
    """Contract tiles of each group's rows. `sample` takes shapes, sizes, a dtype and parameters."""
    return _alternative(
        _contract,
        lambda: [
            (sample((5, 3), (5, 4), [2, 3]), True),
            (sample((100, 3), (100, 4), [63, 30]), True),
            (sample((2, 40, 3), (2, 40, 2), [[17, 0, 20], [1, 39, 30]]), True),
            (sample((40, 3), (40, 2), [17, 3, 20], "bfloat16"), True),
            (sample((0, 3), (0, 4), [0, 0]), False),
        ],
    )
