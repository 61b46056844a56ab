"""`jax.experimental.pallas.ops.tpu.flash_attention`: attention with segments, in the layout [B, N, T, H].

It is `nn.dot_product_attention`, which works in blocks where the logits are large.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from functorch_like import dtypes, nn
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.jax_alias.modules.pallas_ops import masked_attention
from functorch_like.jax_alias.modules.pallas_ops.masked_attention import MASKED as DEFAULT_MASK_VALUE


class SegmentIds(NamedTuple):
    """Numbers of segments: a target attends to sources of its own segment.

    Attributes:
        q: integers [B, T].
        kv: integers [B, S].
    """

    q: Any
    kv: Any


@dataclasses.dataclass(frozen=True)
class BlockSizes:
    """Sizes of blocks; they have no effect."""

    block_q: int
    block_k_major: int
    block_k: int
    block_b: int
    block_q_major_dkv: int | None = None
    block_k_major_dkv: int | None = None
    block_k_dkv: int | None = None
    block_q_dkv: int | None = None
    block_k_major_dq: int | None = None
    block_k_dq: int | None = None
    block_q_dq: int | None = None

    @property
    def has_backward_blocks(self) -> bool:
        """True if the sizes for gradients are given."""
        return None not in dataclasses.astuple(self)

    @classmethod
    def get_default(cls, batch_size: int, num_heads: int, q_seq_len: int, kv_len: int, d_model: int) -> BlockSizes:
        """Return blocks of 128 for any shape."""
        return cls(128, 128, 128, 1, *(7 * [128]))


def flash_attention(
    q: Any, k: Any, v: Any, ab: Any = None, segment_ids: SegmentIds | None = None, *,
    causal: bool = False, sm_scale: float = 1.0, block_sizes: BlockSizes | None = None, debug: bool = False,
) -> Any:  # fmt: skip
    """softmax(sm_scale (q @ k^T + ab)) @ v for each head.

    Args:
        q: floats [B, N, T, H].
        k: floats [B, N, S, H].
        v: floats [B, N, S, H].
        ab: added to the products before they are scaled; [B, N, T, S].
        segment_ids: segments of targets and sources.
        causal: True if target t attends to sources 0 ... t only.
        sm_scale: factor of the logits.
        block_sizes: no effect.
        debug: no effect.

    Returns:
        An array like q; 0 for targets that attend to nothing.

    Raises:
        ShapeError: if shapes do not fit together.
    """
    _check(q, k, v, ab, segment_ids)
    allowed = None if segment_ids is None else masked_attention.same_segment(*segment_ids)[:, None]
    bias = None if ab is None else sm_scale * fnp.astype(ab, dtypes.accumulator(aval_of(ab).dtype))
    q, k, v = (fnp.swapaxes(x, 1, 2) for x in (q, k, v))
    out = nn.dot_product_attention(q, k, v, bias, allowed, scale=sm_scale, is_causal=causal)
    return fnp.swapaxes(out, 1, 2)


def mha_reference_no_custom_vjp(
    q: Any, k: Any, v: Any, ab: Any = None, segment_ids: SegmentIds | None = None, *, causal: bool = False,
    mask_value: float = DEFAULT_MASK_VALUE, sm_scale: float = 1.0, save_residuals: bool = False,
) -> Any:  # fmt: skip
    """The same from all logits at once; with `save_residuals` also the sums and the largest logits, [B, N, T]."""
    _check(q, k, v, ab, segment_ids)
    allowed = None if segment_ids is None else masked_attention.same_segment(*segment_ids)[:, None, None]
    if causal:
        past = fnp.tri(q.shape[2], k.shape[2], dtype=bool)
        allowed = past if allowed is None else allowed & past
    scores = masked_attention.logits(q[:, :, None], k)
    scores = sm_scale * (scores if ab is None else scores + ab[:, :, None])
    done = masked_attention.attend(scores, v, allowed, mask_value)
    out = fnp.astype(done.out[:, :, 0], aval_of(q).dtype)
    return (out, done.sums[:, :, 0], done.largest[:, :, 0]) if save_residuals else out


def mha_reference(
    q: Any, k: Any, v: Any, ab: Any, segment_ids: SegmentIds | None = None, causal: bool = False,
    mask_value: float = DEFAULT_MASK_VALUE, sm_scale: float = 1.0,
) -> Any:  # fmt: skip
    """`flash_attention` from all logits at once."""
    return mha_reference_no_custom_vjp(
        q, k, v, ab, segment_ids, causal=causal, mask_value=mask_value, sm_scale=sm_scale
    )


def _check(q: Any, k: Any, v: Any, ab: Any, segment_ids: SegmentIds | None) -> None:
    shapes = [aval_of(x).shape for x in (q, k, v)]
    shown = ", ".join(repr(aval_of(x)) for x in (q, k, v))
    if any(len(s) != 4 for s in shapes) or len({s[:2] for s in shapes}) > 1 or shapes[1][2] != shapes[2][2]:
        raise ShapeError(f"flash_attention of q, k, v = {shown}", fix="give [B, N, T, H], [B, N, S, H], [B, N, S, H]")
    batch, heads, targets, _ = shapes[0]
    sources = shapes[1][2]
    if ab is not None and aval_of(ab).shape != (batch, heads, targets, sources):
        raise ShapeError(f"flash_attention with ab = {aval_of(ab)!r}", fix=f"give {batch, heads, targets, sources}")
    if segment_ids is None:
        return
    if not isinstance(segment_ids, tuple):
        raise ArgumentError(f"segment_ids is {segment_ids!r}", fix="give SegmentIds(q=..., kv=...)")
    for ids, size in zip(segment_ids, (targets, sources), strict=True):
        if aval_of(ids).shape != (batch, size):
            raise ShapeError(f"flash_attention with segment ids {aval_of(ids)!r}", fix=f"give {batch, size}")
