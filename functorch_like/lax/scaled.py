"""scaled_dot: products of arrays whose elements have one scale for each block along the contracted dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.lax import contract
from functorch_like.lax.operands import error, ints, value
from functorch_like.primitives import elementwise, structural

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike


def scaled_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    lhs_scale: ArrayLike | None = None,
    rhs_scale: ArrayLike | None = None,
    dimension_numbers: contract.DotDimensionNumbers | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Multiply both operands by the scales of their blocks, then contract them, in float32.

    Args:
        lhs: array, such as of float8_e4m3fn.
        rhs: array, of the same dtype or another.
        lhs_scale: array with the sizes of lhs, but a divisor of it in contracted dimensions: one scale for each block.
            None for no scales.
        rhs_scale: likewise for rhs.
        dimension_numbers: as for `dot_general`; by default those of a product of matrices, or of batches of them.
        preferred_element_type: dtype of the result, bfloat16 by default.

    Returns:
        An array: the batch dimensions, then the remaining ones of lhs, then those of rhs.

    Raises:
        ShapeError: where shapes do not fit, or a scale's size does not divide that of its operand.
        ArgumentError: for other ranks than 2 and 3 without dimension numbers.

    >>> lhs, rhs = fnp.ones((1, 4)), fnp.ones((4, 1))
    >>> lax.scaled_dot(lhs, rhs, lhs_scale=fnp.asarray([[2.0, 10.0]])).tolist()
    [[24.0]]
    """
    lhs, rhs = value(lhs), value(rhs)
    if dimension_numbers is None:
        ndim = aval_of(lhs).ndim
        if ndim not in (2, 3):
            raise error(ArgumentError, f"lax.scaled_dot of lhs {aval_of(lhs)!r}", "give dimension_numbers")
        batch = tuple(range(ndim - 2))
        dimension_numbers = (((ndim - 1,), (ndim - 2,)), (batch, batch))
    (lc, rc), batches = dimension_numbers
    left = _scaled(lhs, lhs_scale, ints(lc, "dimension_numbers"), "lhs")
    right = _scaled(rhs, rhs_scale, ints(rc, "dimension_numbers"), "rhs")
    y = contract.dot_general(left, right, ((lc, rc), batches))
    return structural.convert_element_type(y, new_dtype=dtypes.as_dtype(preferred_element_type or "bfloat16"))


def _scaled(x: Any, scale: Any, contracted: tuple[int, ...], name: str) -> Any:
    """Return elements times the scales of their blocks, in float32."""
    wide = lambda v: structural.convert_element_type(v, new_dtype=dtypes.float32)
    if scale is None:
        return wide(x)
    scale = value(scale)
    shape, blocks = aval_of(x).shape, aval_of(scale).shape
    fits = len(shape) == len(blocks) and all(
        (d in contracted and b and n % b == 0) or n == b for d, (n, b) in enumerate(zip(shape, blocks, strict=True))
    )
    if not fits:
        raise error(
            ShapeError,
            f"{name} {aval_of(x)!r} with scales {aval_of(scale)!r} in lax.scaled_dot, which contracts {contracted}",
            "give a scale for each block: sizes that divide those of contracted dimensions, and are equal in others",
        )
    split = [(b, n // b) for n, b in zip(shape, blocks, strict=True)]
    spread = structural.broadcast_in_dim(
        wide(scale),
        shape=tuple(size for pair in split for size in pair),
        broadcast_dimensions=tuple(range(0, 2 * len(shape), 2)),
    )
    return elementwise.mul(wide(x), structural.reshape(spread, shape=shape))
