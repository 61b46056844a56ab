"""Parts of sparse arrays at positions that arrays give: `bcoo_gather`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import numpy as fnp
from functorch_like.avals import ShapedArray
from functorch_like.core import abstract_eval, aval_of
from functorch_like.errors import UnsupportedError
from functorch_like.experimental.sparse.bcoo import BCOO
from functorch_like.experimental.sparse.checks import known
from functorch_like.experimental.sparse.conversion import is_bcoo
from functorch_like.experimental.sparse.elements import placed
from functorch_like.experimental.sparse.format import method
from functorch_like.experimental.sparse.layouts import bcoo_update_layout
from functorch_like.experimental.sparse.rearranging import bcoo_reshape, bcoo_transpose
from functorch_like.experimental.sparse.slicing import bcoo_slice
from functorch_like.experimental.sparse.sparse_products import sparse_dot
from functorch_like.lax.indexing import GatherDimensionNumbers, GatherScatterMode, numbers_of
from functorch_like.numpy import promotion
from functorch_like.primitives.indexing import gather_and_scatter_add

if TYPE_CHECKING:
    from functorch_like.typing import ArrayLike


@method
def bcoo_gather(
    operand: BCOO, start_indices: ArrayLike, dimension_numbers: GatherDimensionNumbers, slice_sizes: Sequence[int], *,
    unique_indices: bool = False, indices_are_sorted: bool = False, mode: str | GatherScatterMode | None = None,
    fill_value: ArrayLike | None = None,
) -> BCOO:  # fmt: skip
    """Return slices of a BCOO, one for each index vector, as `lax.gather` does of a dense array.

    With known indices, only the elements of the result are stored. With traced ones there is room for each element of
    the operand in each slice.

    Args:
        operand: the BCOO.
        start_indices: integers; the last dimension holds index vectors.
        dimension_numbers: a `lax.GatherDimensionNumbers`, without batching dimensions.
        slice_sizes: the shape of each slice.
        unique_indices: has no effect.
        indices_are_sorted: has no effect.
        mode: a `lax.GatherScatterMode` or its name. By default positions are promised to be in bounds.
        fill_value: with the mode "fill", 0.

    Returns:
        A BCOO without batch and dense dimensions.

    Raises:
        ShapeError: where shapes and dimension numbers do not fit.
        UnsupportedError: for batching dimensions, and where another value than zero may be filled in.

    Example:
        >>> from functorch_like import lax
        >>> from functorch_like.experimental import sparse
        >>> numbers = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
        >>> m = sparse.BCOO.fromdense(fnp.asarray([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]]))
        >>> sparse.bcoo_gather(m, fnp.asarray([[2], [0]]), numbers, (1, 2)).todense().tolist()
        [[3.0, 0.0], [1.0, 0.0]]
    """
    what = "bcoo_gather"
    mat = bcoo_update_layout(is_bcoo(operand, what), n_batch=0, n_dense=0)
    at: Any = start_indices if promotion.is_array(start_indices) else fnp.asarray(start_indices)
    numbers, sizes = numbers_of(dimension_numbers), tuple(int(n) for n in slice_sizes)
    chosen = "clip" if mode is None else GatherScatterMode.from_any(mode).value
    options = {"mode": chosen, "fill_value": None, "indices_are_sorted": False, "unique_indices": False}
    out = abstract_eval(
        gather_and_scatter_add.gather, [ShapedArray(mat.shape, mat.dtype), aval_of(at)],
        {"dimension_numbers": numbers, "slice_sizes": sizes, **options},
    )  # fmt: skip
    if numbers.operand_batching_dims:
        raise promotion.error(
            UnsupportedError, f"{what} with operand_batching_dims={numbers.operand_batching_dims}", "use vmap"
        )
    mapped = numbers.start_index_map
    room = np.array([mat.shape[d] - sizes[d] for d in mapped], np.int64)
    at, inside = _in_bounds(at, room, chosen, fill_value)
    picks = _picks(mat, at, inside, mapped, [sizes[d] for d in mapped])
    batch = aval_of(at).ndim - 1
    rest = [d for d in range(mat.ndim) if d not in mapped]
    if any(sizes[d] != mat.shape[d] for d in rest):
        limits = [n if d in mapped else sizes[d] for d, n in enumerate(mat.shape)]
        mat = bcoo_slice(mat, start_indices=[0] * mat.ndim, limit_indices=limits)
    pairs = [(batch + len(mapped) + k, d) for k, d in enumerate(mapped)]
    result = sparse_dot(picks, mat, pairs, [], None)
    # The axes of the product are those of the index vectors, of the windows in the order of `mapped`, and the rest.
    place = {d: batch + k for k, d in enumerate((*mapped, *rest))}
    inner = iter(place[d] for d in range(len(sizes)) if d not in numbers.collapsed_slice_dims)
    outer = iter(range(batch))
    order = [next(inner) if k in numbers.offset_dims else next(outer) for k in range(out.ndim)]
    gone = [place[d] for d in numbers.collapsed_slice_dims]
    return bcoo_reshape(bcoo_transpose(result, permutation=[*order, *gone]), new_sizes=out.shape)


def _in_bounds(at: Any, room: np.ndarray[Any, Any], mode: str, fill_value: Any) -> tuple[Any, Any]:
    """Return index vectors in bounds, and flags of those that count, or None if all do.

    Raises:
        UnsupportedError: where another value than zero may have to be filled in.
    """
    if not room.size:
        return at, None
    values = known(at)
    if mode == "fill" and (values is None or ((values < 0) | (values > room)).any()):
        zero = None if fill_value is None else known(fill_value)
        if zero is None or zero.any():
            raise promotion.error(
                UnsupportedError, "bcoo_gather in the mode 'fill', of positions that may be out of bounds",
                "pass fill_value=0, or mode='clip'",
            )  # fmt: skip
        wide = at.astype("int64") if aval_of(at).dtype.itemsize > 4 else at.astype("int32")
        flags = fnp.all((wide >= 0) & (wide <= room.astype(aval_of(wide).dtype)), axis=-1)
        return fnp.where(flags[..., None], wide, fnp.zeros_like(wide)), flags
    if values is not None:
        return np.clip(values.astype(np.int64), 0, room), None
    wide = at.astype("int64") if aval_of(at).dtype.itemsize > 4 else at.astype("int32")
    return fnp.clip(wide, 0, room.astype(aval_of(wide).dtype)), None


def _picks(mat: BCOO, at: Any, inside: Any, mapped: Sequence[int], window: Sequence[int]) -> BCOO:
    """Return ones at (*index vector's place, *place in the window, *position), so that a product picks the elements."""
    lead, count = aval_of(at).shape[:-1], len(mapped)
    sparse = (*lead, *window, *(mat.shape[d] for d in mapped))
    dtype = np.dtype("int64" if aval_of(mat.indices).dtype.itemsize > 4 else "int32")
    grid = np.indices((*lead, *window)).astype(dtype)
    places = np.moveaxis(grid, 0, -1)
    steps = places[..., len(lead) :]
    n = math.prod((*lead, *window))
    concrete = known(at)
    if concrete is not None and inside is None:
        first = concrete.reshape(*lead, *(1,) * count, count)
        indices: Any = np.concatenate([places, first + steps], axis=-1).astype(dtype).reshape(n, len(sparse))
        indices = fnp.asarray(indices)
    else:
        first = fnp.reshape(at, (*lead, *(1,) * count, count)).astype(dtype)
        positions = fnp.broadcast_to(first + steps, (*lead, *window, count))
        indices = fnp.reshape(fnp.concatenate([fnp.asarray(places), positions], axis=-1), (n, len(sparse)))
        if inside is not None:
            flags = fnp.broadcast_to(fnp.reshape(inside, (*lead, *(1,) * count)), (*lead, *window))
            indices = placed(indices, fnp.reshape(flags, (n,)), sparse)
    return BCOO._of(fnp.ones(n, mat.dtype), indices, sparse)
