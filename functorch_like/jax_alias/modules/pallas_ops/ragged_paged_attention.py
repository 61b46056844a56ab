"""`jax.experimental.pallas.ops.tpu.ragged_paged_attention`: attention to pages, of prompts and of single targets."""

from __future__ import annotations

from typing import Any

from functorch_like import dtypes, lax
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ShapeError
from functorch_like.jax_alias.modules.pallas_ops import masked_attention
from functorch_like.jax_alias.modules.pallas_ops.masked_attention import MASKED as DEFAULT_MASK_VALUE


def ragged_paged_attention(
    q: Any, kv_pages: Any, kv_lens: Any, page_indices: Any, cu_q_lens: Any, num_seqs: Any, *, sm_scale: float = 1.0,
    sliding_window: int | None = None, soft_cap: float | None = None, mask_value: float | None = DEFAULT_MASK_VALUE,
    k_scale: float | None = None, v_scale: float | None = None, num_kv_pages_per_block: int | None = None,
    num_queries_per_block: int | None = None, vmem_limit_bytes: int | None = None,
) -> Any:  # fmt: skip
    """Causal attention of sequences with different numbers of targets, one after the other in an array.

    Args:
        q: floats [tokens, N, H].
        kv_pages: floats [pages, page_size, 2 K, H], with keys at even and values at odd heads.
        kv_lens: integers [sequences], the numbers of sources; the targets of a sequence are the last of them.
        page_indices: integers [sequences, P].
        cu_q_lens: integers [sequences + 1], where the targets of each sequence start.
        num_seqs: integers [1], how many sequences there are.
        sm_scale: factor of the logits.
        sliding_window: how many of the last sources a target attends to.
        soft_cap: bound that a hyperbolic tangent keeps the logits within.
        mask_value: what replaces masked logits; None for the default.
        k_scale: factor of the keys.
        v_scale: factor of the values.
        num_kv_pages_per_block: no effect.
        num_queries_per_block: no effect.
        vmem_limit_bytes: no effect.

    Returns:
        An array like q; 0 for tokens of no sequence.

    Raises:
        ShapeError: if shapes do not fit together.
    """
    static_validate_inputs(q, kv_pages, kv_lens, page_indices, cu_q_lens, num_seqs)
    kv_pages, kv_lens, page_indices, cu_q_lens = map(fnp.asarray, (kv_pages, kv_lens, page_indices, cu_q_lens))
    masked = DEFAULT_MASK_VALUE if mask_value is None else mask_value
    tokens, _, features = aval_of(q).shape
    heads = aval_of(kv_pages).shape[2] // 2
    each = fnp.moveaxis(masked_attention.grouped(q, heads, 1), 0, 2)  # [K, G, tokens, H]
    token, place = fnp.arange(tokens), fnp.arange(aval_of(kv_pages).shape[1] * aval_of(page_indices).shape[1])

    def add(i: Any, out: Any) -> Any:
        sources = fnp.reshape(kv_pages[page_indices[i]], (-1, 2 * heads, features))
        key, value = (fnp.swapaxes(x, 0, 1) for x in (sources[:, 0::2], sources[:, 1::2]))
        key, value = (
            x if by is None else fnp.astype(fnp.astype(x, dtypes.float32) * by, aval_of(q).dtype)
            for x, by in ((key, k_scale), (value, v_scale))
        )
        first, end = cu_q_lens[i], cu_q_lens[i + 1]
        target = (token - end + kv_lens[i])[:, None]
        allowed = (place <= target) & (place < kv_lens[i])
        if sliding_window is not None:
            allowed = allowed & (target - sliding_window < place)
        scores = masked_attention.logits(each, key, sm_scale, soft_cap)
        done = masked_attention.attend(scores, value, allowed, masked).out
        inside = (token >= first) & (token < end)
        return fnp.where(inside[:, None], done, out)

    start = fnp.zeros(aval_of(each).shape, dtypes.accumulator(aval_of(q).dtype))
    out = lax.fori_loop(0, fnp.reshape(num_seqs, ()), add, start)
    return fnp.astype(fnp.reshape(fnp.moveaxis(out, 2, 0), aval_of(q).shape), aval_of(q).dtype)


def ref_ragged_paged_attention(
    queries: Any, kv_pages: Any, kv_lens: Any, page_indices: Any, cu_q_lens: Any, num_seqs: Any, **options: Any
) -> Any:
    """`ragged_paged_attention` of the tokens that belong to sequences; `num_seqs` and `cu_q_lens` are known."""
    out = ragged_paged_attention(queries, kv_pages, kv_lens, page_indices, cu_q_lens, num_seqs, **options)
    return out[: int(cu_q_lens[int(num_seqs[0])])]


def static_validate_inputs(
    q: Any, kv_pages: Any, kv_lens: Any, page_indices: Any, cu_q_lens: Any, num_seqs: Any, **options: Any
) -> None:
    """Raise a ShapeError if the arguments of `ragged_paged_attention` do not fit together."""
    of_q, of_pages, of_table = (aval_of(x).shape for x in (q, kv_pages, page_indices))
    heads = of_pages[2] // 2
    fits = len(of_q) == 3 and len(of_pages) == 4 and of_pages[2] % 2 == 0 and of_pages[3] == of_q[2]
    if not (fits and of_q[1] % heads == 0 and len(of_table) == 2):
        raise ShapeError(
            f"ragged attention of q {of_q} with pages {of_pages} and a table {of_table}",
            fix="give q [tokens, N, H], pages [pages, page_size, 2 K, H] with K that divides N, a table [sequences, P]",
        )
    for name, x, size in (("kv_lens", kv_lens, of_table[0]), ("cu_q_lens", cu_q_lens, of_table[0] + 1)):
        if aval_of(x).shape != (size,):
            raise ShapeError(f"{name} is {aval_of(x)!r}", fix=f"give {size} integers")
    if aval_of(num_seqs).shape != (1,):
        raise ShapeError(f"num_seqs is {aval_of(num_seqs)!r}", fix="give an array of one integer")


def dynamic_validate_inputs(
    q: Any, kv_pages: Any, kv_lens: Any, page_indices: Any, cu_q_lens: Any, num_seqs: Any, **options: Any
) -> None:
    """Raise a ShapeError if known arguments of `ragged_paged_attention` do not fit together, lengths included."""
    static_validate_inputs(q, kv_pages, kv_lens, page_indices, cu_q_lens, num_seqs)
    sequences, room = aval_of(page_indices).shape
    count, lengths, starts = int(num_seqs[0]), fnp.asarray(kv_lens).tolist(), fnp.asarray(cu_q_lens).tolist()
    room *= aval_of(kv_pages).shape[1]
    if (
        count > sequences
        or starts[min(count, sequences)] > aval_of(q).shape[0]
        or max(lengths[:count], default=0) > room
    ):
        raise ShapeError(
            f"{count} sequences of lengths {lengths[:count]}, with targets at {starts[: count + 1]}, in {sequences} "
            f"rows of {room} places",
            fix="give more pages or fewer sequences",
        )
    for i in range(count):
        if starts[i + 1] - starts[i] > lengths[i]:
            raise ShapeError(
                f"sequence {i} has {starts[i + 1] - starts[i]} targets and {lengths[i]} sources",
                fix="count targets among the sources",
            )
