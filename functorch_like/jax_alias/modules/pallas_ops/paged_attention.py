"""`jax.experimental.pallas.ops.tpu.paged_attention`: attention to keys and values in pages.

Sequences share an array of pages; a table names the pages of each one.
"""

from __future__ import annotations

from typing import Any

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ShapeError
from functorch_like.jax_alias.modules.pallas_ops import masked_attention, quantized_pages
from functorch_like.jax_alias.modules.pallas_ops.masked_attention import MASKED as DEFAULT_MASK_VALUE


def paged_attention(
    q: Any, k_pages: Any, v_pages: Any, lengths: Any, page_indices: Any, *, mask_value: float = DEFAULT_MASK_VALUE,
    attn_logits_soft_cap: float | None = None, pages_per_compute_block: int = 1, megacore_mode: str | None = None,
    inline_seq_dim: bool = True,
) -> Any:  # fmt: skip
    """Attention of one target for each sequence.

    Args:
        q: floats [B, N, H]; callers scale them.
        k_pages: floats [K, pages, page_size, H], where K divides N, or a `QuantizedTensor` of them.
        v_pages: the same for the values.
        lengths: integers [B], the numbers of sources.
        page_indices: integers [B, P], the pages of each sequence.
        mask_value: what replaces the logits of padding.
        attn_logits_soft_cap: bound that a hyperbolic tangent keeps the logits within.
        pages_per_compute_block: no effect.
        megacore_mode: no effect.
        inline_seq_dim: no effect.

    Returns:
        An array like q.

    Raises:
        ShapeError: if shapes do not fit together.
    """
    pages = (_floats(k_pages), _floats(v_pages))
    return attend(q, *pages, lengths, page_indices, mask_value, attn_logits_soft_cap)


def _floats(pages: Any) -> Any:
    if not isinstance(pages, quantized_pages.QuantizedTensor):
        return pages
    return quantized_pages.unquantize_from_int8(pages, dtypes.float32)


def attend(q: Any, k_pages: Any, v_pages: Any, lengths: Any, table: Any, masked: float, cap: float | None) -> Any:
    """Return the attention of targets [B, N, H] to sources in pages."""
    of_q, of_k, of_v, of_table = (aval_of(x).shape for x in (q, k_pages, v_pages, table))
    fits = len(of_q) == 3 and len(of_k) == 4 and of_k == of_v and len(of_table) == 2 and of_q[0] == of_table[0]
    if not (fits and of_q[2] == of_k[3] and of_q[1] % of_k[0] == 0):
        raise ShapeError(
            f"paged attention of q {of_q} with pages {of_k} and {of_v}, and a table {of_table}",
            fix="give q [B, N, H], two arrays of pages [K, pages, page_size, H] with K that divides N, a table [B, P]",
        )
    if lengths is not None and aval_of(lengths).shape != of_q[:1]:
        raise ShapeError(f"lengths is {aval_of(lengths)!r}", fix=f"give {of_q[0]} integers")
    return to_sources(q, _gathered(k_pages, table), _gathered(v_pages, table), lengths, masked, cap)


def _gathered(pages: Any, table: Any) -> Any:
    """Return the sources of each sequence, [B, K, S, H]."""
    heads, _, _, features = aval_of(pages).shape
    batch = aval_of(table).shape[0]
    return fnp.reshape(fnp.moveaxis(fnp.asarray(pages)[:, table], 0, 1), (batch, heads, -1, features))


def to_sources(q: Any, k: Any, v: Any, lengths: Any, masked: float, cap: float | None) -> Any:
    """Return the attention of targets [B, N, H] to sources [B, K, S, H]."""
    each = masked_attention.grouped(q, aval_of(k).shape[1], 1)[..., None, :]
    allowed = None
    if lengths is not None:
        allowed = (fnp.arange(aval_of(k).shape[2]) < fnp.asarray(lengths)[:, None])[:, None, None, None]
    out = masked_attention.attend(masked_attention.logits(each, k, 1.0, cap), v, allowed, masked).out
    return fnp.reshape(fnp.astype(out, aval_of(q).dtype), aval_of(q).shape)
