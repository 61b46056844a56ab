"""Products whose operands are rounded to formats with one scale for each block of a row, with derivatives."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from functorch_like import dtypes, lax
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError
from functorch_like.nn.quantization.block_formats import BlockFormat, BlockScaleConfig, quantize_blocks
from functorch_like.nn.quantization.block_scaled import scaled_matmul
from functorch_like.numpy import promotion
from functorch_like.transforms.custom.custom_vjp import custom_vjp

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.lax.contract import DotDimensionNumbers
    from functorch_like.typing import ArrayLike, DTypeLike


def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    preferred_element_type: DTypeLike = "float32",
    configs: Sequence[BlockScaleConfig] | None = None,
) -> Array:
    """Round both operands to a format with scales for blocks, then contract them, as training in that format does.

    Blocks are along the contracted dimensions. The gradient is rounded likewise before it is multiplied by the rounded
    operands; the rounding itself counts as the identity. Products are in float32: results are those of hardware that
    multiplies the formats, not its speed.

    Args:
        lhs: array.
        rhs: array.
        dimension_numbers: as for `lax.dot_general`.
        preferred_element_type: dtype of the result.
        configs: the formats of lhs, of rhs and of gradients, made by `get_scaled_dot_general_config`; None to round
            nothing.

    Returns:
        An array: the batch dimensions, then the remaining ones of lhs, then those of rhs.

    Raises:
        ShapeError: where paired sizes differ.
        ArgumentError: where there are not three formats.

    >>> config = nn.get_scaled_dot_general_config("mxfp8")
    >>> x, w = fnp.asarray([[1.0, 0.3]]), fnp.asarray([[1.0, 1.0]])
    >>> nn.scaled_dot_general(x, w, (((1,), (1,)), ((), ())), configs=[config] * 3).tolist()
    [[1.3125]]
    """
    lhs, rhs = promotion.numbers(lhs, rhs)
    if configs is None:
        return lax.dot_general(lhs, rhs, dimension_numbers, preferred_element_type=preferred_element_type)
    if len(configs) != 3 or not all(isinstance(c, BlockScaleConfig) for c in configs):
        raise promotion.error(
            ArgumentError,
            f"configs={configs!r} of nn.scaled_dot_general",
            "give those of lhs, of rhs and of gradients, made by nn.get_scaled_dot_general_config",
        )
    (lc, rc), (lb, rb) = dimension_numbers
    left, right = (_rows(x, contracted, batch) for x, contracted, batch in ((lhs, lc, lb), (rhs, rc, rb)))
    y = _product(tuple(c.format for c in configs), left, right, tuple(c.global_scale for c in configs))
    shape = lambda x, dims: tuple(aval_of(x).shape[d] for d in dims)
    free = lambda x, used: [d for d in range(aval_of(x).ndim) if d not in used]
    y = y.reshape(*shape(lhs, lb), *shape(lhs, free(lhs, (*lb, *lc))), *shape(rhs, free(rhs, (*rb, *rc))))
    return y.astype(dtypes.as_dtype(preferred_element_type))


def _rows(x: Any, contracted: Sequence[int], batch: Sequence[int]) -> Any:
    """Return an array as (batches, rows, contracted), of three dimensions."""
    shape = aval_of(x).shape
    free = [d for d in range(len(shape)) if d not in (*contracted, *batch)]
    size = lambda dims: math.prod(shape[d] for d in dims)
    return fnp.transpose(x, (*batch, *free, *contracted)).reshape(size(batch), size(free), size(contracted))


@functools.partial(custom_vjp, nondiff_argnums=(0,))
def _product(formats: tuple[BlockFormat, ...], left: Any, right: Any, scales: tuple[Any, ...]) -> Any:
    """Return the product (B, M, N) of rounded rows (B, M, K) and (B, N, K)."""
    return _rounded_product(left, right, formats[:2], scales[:2])


def _rounded_product(left: Any, right: Any, formats: Sequence[BlockFormat], scales: Sequence[Any]) -> Any:
    whole = math.lcm(*(f.block_size for f in formats))
    blocks = [quantize_blocks(x, f, s, whole) for x, f, s in zip((left, right), formats, scales, strict=True)]
    (a, a_scale), (b, b_scale) = blocks
    y = scaled_matmul(a, b, a_scale, b_scale)
    for scale in scales:
        y = y if scale is None else y * scale
    return y


def _forward(formats: tuple[BlockFormat, ...], left: Any, right: Any, scales: tuple[Any, ...]) -> tuple[Any, Any]:
    return _product(formats, left, right, scales), (left, right, scales)


def _backward(formats: tuple[BlockFormat, ...], saved: tuple[Any, ...], ct: Any) -> tuple[Any, ...]:
    left, right, (of_left, of_right, of_ct) = saved
    turn = lambda x: fnp.swapaxes(x, 1, 2)
    by_left = _rounded_product(ct, turn(right), (formats[2], formats[1]), (of_ct, of_right))
    by_right = _rounded_product(turn(ct), turn(left), (formats[2], formats[0]), (of_ct, of_left))
    none = tuple(None if s is None else fnp.zeros_like(s) for s in (of_left, of_right, of_ct))
    return by_left.astype(aval_of(left).dtype), by_right.astype(aval_of(right).dtype), none


_product.defvjp(_forward, _backward)
