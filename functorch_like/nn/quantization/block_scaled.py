"""Products of arrays whose elements have one scale for each block, as in the formats MX and NVFP4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from functorch_like import lax
from functorch_like.core import aval_of
from functorch_like.errors import ShapeError
from functorch_like.numpy import promotion

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike


def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: DTypeLike = "float32",
) -> Array:
    """The product of two batches of matrices, each with one scale for each block of a row.

    Operands are multiplied by their scales in float32, and the rows of one by the rows of the other. B. D. Rouhani et
    al., "Microscaling data formats for deep learning", arXiv:2310.10537.

    Args:
        lhs: (B, M, K) array, of any dtype, such as float8_e4m3fn or float4_e2m1fn.
        rhs: (B, N, K) array.
        lhs_scales: (B, M, K / block) array, such as of float8_e8m0fnu.
        rhs_scales: (B, N, K / block) array; its blocks may have another size.
        preferred_element_type: dtype of the result.

    Returns:
        (B, M, N) array.

    Raises:
        ShapeError: where shapes do not fit, or blocks do not divide a row.

    >>> a, b = fnp.asarray([[[1, 2, 3, 4]]]), fnp.asarray([[[1, 1, 1, 1]]])
    >>> nn.scaled_matmul(a, b, fnp.asarray([[[0.5, 2.0]]]), fnp.asarray([[[1.0]]])).tolist()
    [[[15.5]]]
    """
    a, b = _checked(lhs, lhs_scales, "lhs"), _checked(rhs, rhs_scales, "rhs")
    if a[0] != b[0] or a[2] != b[2]:
        raise promotion.error(
            ShapeError, f"nn.scaled_matmul of shapes {a} and {b}", "give (B, M, K) and (B, N, K): both are rows"
        )
    return lax.scaled_dot(
        lhs,
        rhs,
        lhs_scale=lhs_scales,
        rhs_scale=rhs_scales,
        dimension_numbers=(((2,), (2,)), ((0,), (0,))),
        preferred_element_type=preferred_element_type,
    )


def _checked(x: Any, scales: Any, name: str) -> tuple[int, ...]:
    """Return the shape of an operand; raise ShapeError unless its scales are those of blocks of its rows."""
    shape, blocks = aval_of(x).shape, aval_of(scales).shape
    fits = len(shape) == len(blocks) == 3 and shape[:2] == blocks[:2] and blocks[2] and shape[2] % blocks[2] == 0
    if not fits:
        raise promotion.error(
            ShapeError,
            f"nn.scaled_matmul: {name} of shape {shape} with scales of shape {blocks}",
            "give a scale for each block of a row, (B, M, K / block)",
        )
    return shape
