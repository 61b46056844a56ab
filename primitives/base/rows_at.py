"""Elements of an array at places along one dimension, for `lower` rules."""

from __future__ import annotations

from typing import Any

from functorch_like.avals import ShapedArray


def rows_at(e: Any, x: Any, places: Any, aval: ShapedArray, index: ShapedArray, dimension: int) -> Any:
    """Elements of x at places along a dimension; dimensions that `index`, the aval of places, lacks are kept whole."""
    column = e.op("stablehlo.reshape", [places], [index.update(shape=(*index.shape, 1))])
    others = [d for d in range(index.ndim) if d != dimension]
    whole = aval.shape[index.ndim :]
    numbers = e.attr(
        f"#stablehlo.gather<offset_dims = {list(range(index.ndim, aval.ndim))}, collapsed_slice_dims = [{dimension}], "
        f"operand_batching_dims = {others}, start_indices_batching_dims = {others}, "
        f"start_index_map = [{dimension}], index_vector_dim = {index.ndim}>"
    )
    attrs = {
        "dimension_numbers": numbers,
        "slice_sizes": e.i64s([1] * index.ndim + list(whole)),
        "indices_are_sorted": e.flag(False),
    }
    return e.op("stablehlo.gather", [x, column], [aval.update(shape=(*index.shape, *whole))], attrs=attrs)
