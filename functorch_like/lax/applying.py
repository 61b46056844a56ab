"""scatter_apply: a function applied to chosen elements of an array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from functorch_like import core, source_info
from functorch_like.avals import ShapedArray
from functorch_like.core import aval_of
from functorch_like.errors import UnsupportedError
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.lax.indexing import mode_of, numbers_of
from functorch_like.lax.operands import error, ints, value
from functorch_like.primitives import structural
from functorch_like.primitives.higher_order.user_reductions import scatter_apply as higher
from functorch_like.primitives.indexing.dimension_numbers import ScatterDimensionNumbers

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[Array], ArrayLike],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | None = None,
) -> Array:
    """Apply a function to windows of an array, once for each index vector that selects them.

    Args:
        operand: array.
        scatter_indices: integers; the last dimension holds index vectors.
        func: maps a scalar of the operand's dtype to another. Derivatives need `unique_indices=True`.
        dimension_numbers: the roles of the dimensions.
        update_shape: the shape that updates would have: a window for each index vector.
        indices_are_sorted: a promise that the index vectors increase.
        unique_indices: a promise that no two windows overlap.
        mode: a `GatherScatterMode` or its name; by default windows out of bounds are skipped.

    Returns:
        An array of the operand's shape and dtype.

    Raises:
        ShapeError: where shapes and dimension numbers do not fit.
        ArgumentError: where the function does not return a scalar of the operand's dtype.
        UnsupportedError: where the function closes over arrays; derivatives without `unique_indices`.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> places = fnp.asarray([[2], [3], [2]])
    >>> lax.scatter_apply(fnp.arange(4.0), places, lambda x: -2 * x, numbers, update_shape=(3,)).tolist()
    [0.0, 1.0, 8.0, -6.0]
    """
    operand = value(operand)
    scalar = ShapedArray((), aval_of(operand).dtype)
    name = source_info.name_of(func)
    jaxpr, consts = stage(lambda x: [value(func(x))], [scalar], name=name, parent=core.EVALUATE, chain="scatter_apply")
    if consts:
        raise error(
            UnsupportedError,
            f"the function of lax.scatter_apply closes over {aval_of(consts[0])!r}",
            "gather, apply and scatter: x.at[index].apply(func, unique_indices=True), if no index occurs twice",
        )
    updates = structural.full(ints(update_shape, "update_shape"), 0, scalar.dtype)
    return higher.scatter_apply(
        operand, value(scatter_indices), updates, jaxpr=jaxpr, dimension_numbers=numbers_of(dimension_numbers),
        mode=mode_of(mode), indices_are_sorted=bool(indices_are_sorted), unique_indices=bool(unique_indices),
    )  # fmt: skip
