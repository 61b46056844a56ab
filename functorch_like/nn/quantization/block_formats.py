"""Formats with one scale for each block of a row: MXFP8 and NVFP4."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError
from functorch_like.numpy import promotion

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


class BlockFormat(NamedTuple):
    """The static part of a format: the elements of a block, and dtypes of elements and scales."""

    block_size: int
    data_type: Any
    scale_type: Any


@dataclasses.dataclass(frozen=True)
class BlockScaleConfig:
    """A format with one scale for each block of a row.

    Attributes:
        mode: name of the format.
        block_size: elements of a block.
        data_type: dtype of elements.
        scale_type: dtype of scales.
        global_scale: one more scale, of the whole array, of shape (1,); None for none.
    """

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any = None

    @property
    def format(self) -> BlockFormat:
        """The format without the global scale, which may be traced."""
        return BlockFormat(self.block_size, self.data_type, self.scale_type)


def get_scaled_dot_general_config(
    mode: Literal["nvfp4", "mxfp8"], global_scale: ArrayLike | None = None
) -> BlockScaleConfig:
    """Return a format for `scaled_dot_general`.

    Args:
        mode: "mxfp8", blocks of 32 elements of float8_e4m3fn with scales that are powers of two, or "nvfp4", blocks of
            16 elements of float4_e2m1fn with scales of float8_e4m3fn.
        global_scale: positive number of shape (1,) by which the scales of an nvfp4 array are multiplied; 1 by default.
            So that no scale is out of range, take about the array's largest magnitude, divided by 6 * 448.

    Returns:
        The format.

    Raises:
        ArgumentError: for other modes, and for mxfp8 with a global scale.

    >>> nn.get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    if mode == "mxfp8":
        if global_scale is not None:
            raise promotion.error(ArgumentError, "mxfp8 has no global_scale", "leave it out, or use 'nvfp4'")
        return BlockScaleConfig(mode, 32, dtypes.float8_e4m3fn, dtypes.float8_e8m0fnu)
    if mode == "nvfp4":
        scale = fnp.ones(1, dtypes.float32) if global_scale is None else fnp.asarray(global_scale)
        return BlockScaleConfig(mode, 16, dtypes.float4_e2m1fn, dtypes.float8_e4m3fn, scale)
    raise promotion.error(ArgumentError, f"mode={mode!r} is unknown", "use 'mxfp8' or 'nvfp4'")


def quantize_blocks(x: Array, form: BlockFormat, global_scale: Any, multiple: int) -> tuple[Any, Any]:
    """Return the elements (B, M, K) of an array in a format, and their scales (B, M, K / block).

    A scale is the block's largest magnitude divided by that of the format; a scale that is a power of two is rounded
    up, so that no element is out of range. A block of zeros has scale 1. Rows are padded with zeros to a multiple
    of a size, which is one of blocks.
    Open Compute Project, "OCP microscaling formats (MX) specification 1.0", 2023, sections 5 and 6.
    """
    size = form.block_size
    x = fnp.pad(x.astype(dtypes.float32), ((0, 0), (0, 0), (0, -aval_of(x).shape[2] % multiple)))
    b, m, k = aval_of(x).shape
    blocks = x.reshape(b, m, k // size, size)
    scale = fnp.max(fnp.abs(blocks), axis=-1) / float(dtypes.finfo(form.data_type).max)
    if global_scale is not None:
        scale = scale / global_scale
    if form.scale_type == dtypes.float8_e8m0fnu:
        fraction, exponent = fnp.frexp(scale)
        power = fnp.maximum(exponent - (fraction == 0.5), -126)  # of the least normal float32
        scale = fnp.where(fraction == 0, 1.0, fnp.ldexp(fnp.ones_like(scale), power))
    else:
        limits = dtypes.finfo(form.scale_type)
        scale = fnp.where(scale == 0, 1.0, fnp.clip(scale, float(limits.smallest_subnormal), float(limits.max)))
    stored = scale.astype(form.scale_type)
    whole = stored.astype(dtypes.float32) * (1.0 if global_scale is None else global_scale)
    limit = float(dtypes.finfo(form.data_type).max)
    elements = fnp.clip(blocks / whole[..., None], -limit, limit).astype(form.data_type)
    return elements.reshape(b, m, k), stored
