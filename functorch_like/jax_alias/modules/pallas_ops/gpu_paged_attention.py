"""`jax.experimental.pallas.ops.gpu.paged_attention`: attention to keys and values in pages."""

from __future__ import annotations

from typing import Any

from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.jax_alias.modules.pallas_ops import paged_attention as pages_of
from functorch_like.jax_alias.modules.pallas_ops.masked_attention import MASKED as DEFAULT_MASK_VALUE


def paged_attention(
    q: Any, k_pages: Any, v_pages: Any, block_tables: Any, lengths: Any = None, k_scales_pages: Any = None,
    v_scales_pages: Any = None, *, block_h: int = 16, pages_per_compute_block: int = 8, k_splits: int = 16,
    num_warps: int = 8, num_stages: int = 2, interpret: bool = False, debug: bool = False,
    mask_value: float = DEFAULT_MASK_VALUE, attn_logits_soft_cap: float | None = None,
) -> Any:  # fmt: skip
    """Attention of one target for each sequence; options of the kernel have no effect.

    Args:
        q: floats [B, N, H].
        k_pages: numbers [K, pages, page_size, H].
        v_pages: the same for the values.
        block_tables: integers [B, P], the pages of each sequence.
        lengths: integers [B]; None if all pages are full.
        k_scales_pages: factors of the keys, [K, pages, page_size].
        v_scales_pages: factors of the values.
    """
    scaled = lambda x, by: x if by is None else fnp.astype(x, aval_of(by).dtype) * by[..., None]
    pages = scaled(k_pages, k_scales_pages), scaled(v_pages, v_scales_pages)
    return pages_of.attend(q, *pages, lengths, block_tables, mask_value, attn_logits_soft_cap)


def paged_attention_reference(
    q: Any, k: Any, v: Any, lengths: Any, *, mask_value: float = DEFAULT_MASK_VALUE,
    attn_logits_soft_cap: float | None = None,
) -> Any:  # fmt: skip
    """Attention of one target for each sequence to keys and values [B, S, K, H] without pages."""
    k, v = fnp.swapaxes(k, 1, 2), fnp.swapaxes(v, 1, 2)
    return pages_of.to_sources(q, k, v, lengths, mask_value, attn_logits_soft_cap)
