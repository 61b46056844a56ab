"""`jax.experimental.pallas.ops.gpu.attention`: attention with segments, in the layout [B, T, N, H]."""

from __future__ import annotations

import dataclasses
from typing import Any

from functorch_like import nn
from functorch_like import numpy as fnp
from functorch_like.errors import ArgumentError
from functorch_like.jax_alias.modules.pallas_ops.masked_attention import MASKED as DEFAULT_MASK_VALUE  # noqa: F401
from functorch_like.jax_alias.modules.pallas_ops.masked_attention import same_segment as segment_mask


@dataclasses.dataclass(frozen=True)
class BlockSizes:
    """Sizes of blocks; they have no effect."""

    block_q: int
    block_k: int
    block_q_dkv: int | None = None
    block_kv_dkv: int | None = None
    block_q_dq: int | None = None
    block_kv_dq: int | None = None

    @property
    def has_backward_blocks(self) -> bool:
        """True if the sizes for gradients are given."""
        return None not in dataclasses.astuple(self)

    @classmethod
    def get_default(cls) -> BlockSizes:
        """Return blocks of 128, and of 32 for gradients."""
        return cls(128, 128, 32, 32, 32, 32)


def mha(
    q: Any, k: Any, v: Any, segment_ids: Any, sm_scale: float = 1.0, causal: bool = False, block_sizes: Any = None,
    backward_pass_impl: str = "triton", num_warps: int | None = None, num_stages: int = 2, grid: Any = None,
    interpret: bool = False, debug: bool = False, return_residuals: bool = False,
) -> Any:  # fmt: skip
    """softmax(sm_scale q @ k^T) @ v for each head.

    Args:
        q: floats [B, T, N, H].
        k: floats [B, S, N, H].
        v: floats [B, S, N, H].
        segment_ids: integers [B, T], or None; targets attend to sources of their own segment.
        sm_scale: factor of the logits.
        causal: True if target t attends to sources 0 ... t only.
        block_sizes: no effect, as the options up to `debug`.
        backward_pass_impl: no effect.
        num_warps: no effect.
        num_stages: no effect.
        grid: no effect.
        interpret: no effect.
        debug: no effect.
        return_residuals: return the logarithms of the sums of exponentials, too, [B, N, T].

    Raises:
        ShapeError: if shapes do not fit together.
    """
    if segment_ids is not None and q.shape[1] != k.shape[1]:
        raise ArgumentError("segment_ids is for as many targets as sources", fix="use nn.dot_product_attention(mask=)")
    allowed = None if segment_ids is None else segment_mask(segment_ids, segment_ids)[:, None]
    options: dict[str, Any] = {"mask": allowed, "scale": sm_scale, "is_causal": causal}
    if not return_residuals:
        return nn.dot_product_attention(q, k, v, **options)
    out, log_sums = nn.dot_product_attention(q, k, v, **options, return_residual=True)
    return out, fnp.swapaxes(log_sums, 1, 2)


def mha_reference(q: Any, k: Any, v: Any, segment_ids: Any, sm_scale: float = 1.0, causal: bool = False) -> Any:
    """`mha`, in float32."""
    q, k, v = (fnp.astype(x, "float32") for x in (q, k, v))
    return mha(q, k, v, segment_ids, sm_scale, causal)
