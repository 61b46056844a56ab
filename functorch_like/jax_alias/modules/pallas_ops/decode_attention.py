"""`jax.experimental.pallas.ops.gpu.decode_attention`: attention of one target to some of the sources."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.jax_alias.modules.pallas_ops import masked_attention


def gqa(
    q: Any, k: Any, v: Any, start_idx: Any = None, kv_seq_len: Any = None, sm_scale: float | None = None,
    block_h: int = 16, block_k: int = 128, k_splits: int = 16, num_warps: int | None = None, num_stages: int = 2,
    grid: Any = None, interpret: bool = False, debug: bool = False, return_residuals: bool = False,
    normalize_output: bool = True,
) -> Any:  # fmt: skip
    """Attention of one target for each of a batch.

    Args:
        q: floats [B, N, H].
        k: floats [B, S, K, H], where K divides N.
        v: floats [B, S, K, H].
        start_idx: integers, the first sources of each of the batch.
        kv_seq_len: integers, where its sources end.
        sm_scale: factor of the logits; 1/sqrt(H) by default.
        block_h: no effect, as the options up to `debug`.
        block_k: no effect.
        k_splits: no effect.
        num_warps: no effect.
        num_stages: no effect.
        grid: no effect.
        interpret: no effect.
        debug: no effect.
        return_residuals: return the sums of exponentials and the largest logits, too.
        normalize_output: False to leave the division by the sums to the caller.

    Returns:
        An array like q; with `return_residuals` (out, (sums, largest logits)), each [B, N].

    Raises:
        ShapeError: if shapes do not fit together.
        ArgumentError: without residuals for a result that is not normalized.
    """
    if not (normalize_output or return_residuals):
        raise ArgumentError("a result that is not normalized has no use without sums", fix="set return_residuals")
    of_q, of_k, of_v = (aval_of(x).shape for x in (q, k, v))
    if len(of_q) != 3 or len(of_k) != 4 or of_k != of_v or of_q[::2] != of_k[::3] or of_q[1] % of_k[2]:
        raise ShapeError(
            f"attention of q {of_q}, k {of_k} and v {of_v}", fix="give [B, N, H] and twice [B, S, K, H]; K divides N"
        )
    scale = 1 / math.sqrt(of_q[2]) if sm_scale is None else sm_scale
    k, v = fnp.swapaxes(k, 1, 2), fnp.swapaxes(v, 1, 2)
    scores = masked_attention.logits(masked_attention.grouped(q, of_k[2], 1)[..., None, :], k, scale)
    place, allowed = fnp.arange(of_k[1]), None
    if start_idx is not None:
        allowed = place >= fnp.broadcast_to(start_idx, of_q[:1])[:, None]
    if kv_seq_len is not None:
        before = place < fnp.broadcast_to(kv_seq_len, of_q[:1])[:, None]
        allowed = before if allowed is None else allowed & before
    allowed = None if allowed is None else allowed[:, None, None, None]
    done = masked_attention.attend(scores, v, allowed)
    out = done.out if normalize_output else done.out * done.sums[..., None]
    out = fnp.reshape(fnp.astype(out, aval_of(q).dtype), of_q)
    return (out, tuple(fnp.reshape(x, of_q[:2]) for x in (done.sums, done.largest))) if return_residuals else out


def mqa(q: Any, k: Any, v: Any, start_idx: Any = None, kv_seq_len: Any = None, *args: Any, **options: Any) -> Any:
    """`gqa` with one head of k and v, [B, S, H]."""
    return gqa(q, fnp.expand_dims(k, 2), fnp.expand_dims(v, 2), start_idx, kv_seq_len, *args, **options)


def gqa_reference(
    q: Any, k: Any, v: Any, start_idx: Any = None, kv_seq_len: Any = None, sm_scale: float | None = None,
    return_residuals: bool = False, normalize_output: bool = True,
) -> Any:  # fmt: skip
    """`gqa`."""
    options = {"return_residuals": return_residuals, "normalize_output": normalize_output}
    return gqa(q, k, v, start_idx, kv_seq_len, sm_scale, **options)


def mqa_reference(
    q: Any, k: Any, v: Any, start_idx: Any = None, kv_seq_len: Any = None, sm_scale: float | None = None,
    return_residuals: bool = False, normalize_output: bool = True,
) -> Any:  # fmt: skip
    """`mqa`."""
    options = {"return_residuals": return_residuals, "normalize_output": normalize_output}
    return mqa(q, k, v, start_idx, kv_seq_len, sm_scale, **options)


def mha_reference(
    q: Any, k: Any, v: Any, start_idx: Any = None, kv_seq_len: Any = None, sm_scale: float | None = None
) -> Any:
    """`gqa` with as many heads of k as of q."""
    return gqa(q, k, v, start_idx, kv_seq_len, sm_scale)
