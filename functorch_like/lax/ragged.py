"""ragged_dot: products of groups of rows, each with a matrix of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from functorch_like.backends.precision_names import canonical
from functorch_like.core import aval_of
from functorch_like.errors import ShapeError, UnsupportedError
from functorch_like.lax.contract import dtype_of, of_one_dtype
from functorch_like.lax.operands import error, value
from functorch_like.primitives.contractions import ragged_dot as ragged

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike, PrecisionLike


def ragged_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
) -> Array:
    """Multiply groups of rows, each by a matrix of its own, as in a mixture of experts.

    Args:
        lhs: array (m, k); the rows of a group follow each other.
        rhs: array (g, k, n), a matrix for each group; where dtypes differ, `lhs` and `rhs` are converted to the dtype
            that they promote to.
        group_sizes: integers (g,): how many rows each group has.
        precision: precision of the products, as for `dot_general`.
        preferred_element_type: dtype of the result.
        group_offset: None; others are not supported.

    Returns:
        An array (m, n); rows beyond the last group are zero.

    Raises:
        ShapeError: where shapes do not fit.
        DtypeError: where group sizes are not integers.

    >>> lhs, rhs = fnp.ones((3, 2)), fnp.asarray([[[1.0], [1.0]], [[5.0], [5.0]]])
    >>> lax.ragged_dot(lhs, rhs, fnp.asarray([1, 2])).tolist()
    [[2.0], [10.0], [10.0]]
    """
    refuse_offset(group_offset)
    lhs, rhs = of_one_dtype(lhs, rhs)
    group_sizes = value(group_sizes)
    if aval_of(lhs).ndim != 2:
        raise error(
            ShapeError, f"lhs {aval_of(lhs)!r} of lax.ragged_dot is not a matrix", "use vmap for batches of them"
        )
    preferred = dtype_of(preferred_element_type)
    return ragged.ragged_dot(lhs, rhs, group_sizes, precision=canonical(precision), preferred_element_type=preferred)


def refuse_offset(offset: Any) -> None:
    """Raise if an offset of groups is given."""
    if offset is not None:
        raise error(UnsupportedError, "group_offset is not supported", "slice rhs and group_sizes instead")
