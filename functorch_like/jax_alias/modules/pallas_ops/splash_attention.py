"""`jax.experimental.pallas.ops.tpu.splash_attention`: attention with masks that are known before, as functions.

A kernel holds the positions of its targets, and booleans only for masks that no function of positions gives, so that
`shard_map` can split it along heads and targets.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from functorch_like import nn
from functorch_like import numpy as fnp
from functorch_like import tree as trees
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.jax_alias.modules.pallas_ops import masked_attention
from functorch_like.jax_alias.modules.pallas_ops.flash_attention import SegmentIds
from functorch_like.jax_alias.modules.pallas_ops.masked_attention import MASKED as DEFAULT_MASK_VALUE
from functorch_like.jax_alias.modules.pallas_ops.splash_masks import Mask, MultiHeadMask
from functorch_like.sharding import NamedSharding, PartitionSpec
from functorch_like.transforms.checkpoint import checkpoint_name


class QKVLayout(enum.IntEnum):
    """Layouts of operands in memory; they have no effect."""

    HEAD_DIM_MINOR = 1
    SEQ_MINOR = 2


@dataclasses.dataclass(frozen=True)
class BlockSizes:
    """Sizes of blocks and layouts; they have no effect."""

    block_q: int
    block_kv: int
    block_kv_compute: int | None = None
    block_q_dkv: int | None = None
    block_kv_dkv: int | None = None
    block_kv_dkv_compute: int | None = None
    block_q_dq: int | None = None
    block_kv_dq: int | None = None
    use_fused_bwd_kernel: bool = False
    q_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR
    k_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR
    v_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR

    @property
    def has_backward_blocks(self) -> bool:
        """True if the sizes for gradients are given."""
        sizes = (self.block_q_dkv, self.block_kv_dkv, self.block_kv_dkv_compute)
        return None not in (sizes if self.use_fused_bwd_kernel else (*sizes, self.block_q_dq, self.block_kv_dq))

    @classmethod
    def get_default(cls) -> BlockSizes:
        """Return blocks of 128."""
        return cls(128, 128, 128, 128, 128, 128, 128, 128)


@dataclasses.dataclass(frozen=True)
class Options:
    """Properties of a kernel besides its mask; see `make_splash_mha`."""

    is_mqa: bool
    save_residuals: bool
    mask_value: float
    attn_logits_soft_cap: float | None
    residual_checkpoint_name: str | None


class SplashAttentionKernel:
    """Attention of one example; a pytree of the positions of targets and the booleans of the mask."""

    def __init__(self, positions: Any, allowed: Any, mask: Mask | None, options: Options) -> None:
        self.positions, self.allowed, self.mask, self.options = positions, allowed, mask, options

    def __call__(self, q: Any, k: Any, v: Any, segment_ids: SegmentIds | None = None, sinks: Any = None) -> Any:
        """softmax(q @ k^T) @ v where the mask allows it.

        Args:
            q: floats [N, T, H]; callers scale them.
            k: floats [K, S, H], where K divides N; [S, H] for a kernel of `make_splash_mqa`.
            v: floats [K, S, E] or [S, E].
            segment_ids: numbers of segments, [T] and [S].
            sinks: logits [N] of sources without value.

        Returns:
            An array [N, T, E]; with `save_residuals` a pair of it and a tuple of the logarithms of the sums of
            exponentials, [N, T].

        Raises:
            ShapeError: if shapes do not fit together.
        """
        if self.options.is_mqa:
            k, v = k[None], v[None]
        self._check(q, k, v)
        allowed = self._mask(aval_of(k).shape[1])
        if segment_ids is not None:
            allowed = allowed & masked_attention.same_segment(*segment_ids)
        options = self.options
        if sinks is None and not options.save_residuals and not options.attn_logits_soft_cap:
            by_position = (fnp.swapaxes(x, 0, 1) for x in (q, k, v))
            out = fnp.swapaxes(nn.dot_product_attention(*by_position, mask=allowed[None], scale=1.0), 0, 1)
            return self._named(out)
        heads, targets = aval_of(q).shape[:2]
        each = lambda x: masked_attention.grouped(x, aval_of(k).shape[0], 0)
        allowed = each(fnp.broadcast_to(allowed, (heads, *aval_of(allowed).shape[1:])))
        scores = masked_attention.logits(each(q), k, 1.0, options.attn_logits_soft_cap)
        sinks = None if sinks is None else each(sinks)[..., None]
        done = masked_attention.attend(scores, v, allowed, options.mask_value, sinks)
        out = fnp.astype(fnp.reshape(done.out, (heads, targets, -1)), aval_of(q).dtype)
        if not options.save_residuals:
            return self._named(out)
        return self._named(out), (self._named(fnp.reshape(done.log_sum(), (heads, targets))),)

    def _mask(self, sources: int) -> Any:
        """Return booleans [N, T, S] or [1, T, S]."""
        if self.mask is None or self.mask.mask_function is None:
            return self.allowed
        columns = fnp.arange(sources, dtype="int32")
        return fnp.asarray(self.mask.mask_function(self.positions[:, None], columns[None]))[None]

    def _check(self, q: Any, k: Any, v: Any) -> None:
        of_q, of_k, of_v = (aval_of(x).shape for x in (q, k, v))
        heads, targets, sources = aval_of(self.allowed).shape if self.mask is None else (1, *self.mask.shape)
        targets = aval_of(self.positions).shape[0]  # a part of the mask's, inside of shard_map
        if not (
            len(of_q) == len(of_k) == len(of_v) == 3
            and (of_q[1], of_k[1]) == (targets, sources)
            and (of_k[:2], of_k[2]) == (of_v[:2], of_q[2])
            and of_q[0] % of_k[0] == 0
            and heads in (1, of_q[0])
        ):
            raise ShapeError(
                f"splash attention of q {of_q}, k {of_k} and v {of_v} with a mask of {heads, targets, sources}",
                fix="give q [N, T, H], k [K, S, H] and v [K, S, E] with the T and S of the mask; K divides N",
            )

    def _named(self, x: Any) -> Any:
        name = self.options.residual_checkpoint_name
        return x if name is None else checkpoint_name(x, name)

    def manual_sharding_spec(self, sharding: NamedSharding) -> SplashAttentionKernel:
        """Return the `in_specs` of `shard_map` for a kernel that is split.

        Args:
            sharding: how heads and targets are split, with a spec of two entries.
        """
        if len(sharding.spec) != 2:
            raise ArgumentError(f"the spec {sharding.spec} is not one of heads and targets", fix="give two entries")
        heads, targets = sharding.spec
        every = None if self.allowed is None else PartitionSpec(heads if self.allowed.shape[0] > 1 else None, targets)
        return SplashAttentionKernel(PartitionSpec(targets), every, self.mask, self.options)


trees.register_pytree_node(
    SplashAttentionKernel,
    lambda kernel: ((kernel.positions, kernel.allowed), (kernel.mask, kernel.options)),
    lambda data, children: SplashAttentionKernel(*children, *data),
)


def _make_splash_attention(
    mask: Any, *, block_sizes: BlockSizes | None = None, is_mqa: bool, save_residuals: bool = False,
    mask_value: float = DEFAULT_MASK_VALUE, attn_logits_soft_cap: float | None = None, downcast_smem_data: bool = True,
    head_shards: int, q_seq_shards: int, residual_checkpoint_name: str | None = None, interpret: bool = False,
) -> SplashAttentionKernel:  # fmt: skip
    """Make attention with a mask.

    Args:
        mask: a `MultiHeadMask`, or booleans [N, T, S].
        block_sizes: no effect.
        is_mqa: whether all heads share one key and one value.
        save_residuals: return the logarithms of the sums of exponentials, too.
        mask_value: what replaces masked logits, where residuals, sinks or a cap are asked for.
        attn_logits_soft_cap: bound that a hyperbolic tangent keeps the logits within.
        downcast_smem_data: no effect.
        head_shards: in how many parts heads are split.
        q_seq_shards: in how many parts targets are split.
        residual_checkpoint_name: name that `checkpoint` policies know the results by.
        interpret: no effect.
    """
    shape = tuple(np.shape(mask)) if not isinstance(mask, Mask) else mask.shape
    if len(shape) != 3:
        raise ShapeError(f"the mask of splash attention has the shape {shape}", fix="give [N, T, S]")
    if shape[0] % head_shards or shape[1] % q_seq_shards:
        raise ShapeError(f"{shape[:2]} heads and targets do not split in {head_shards, q_seq_shards} parts")
    options = Options(is_mqa, save_residuals, mask_value, attn_logits_soft_cap, residual_checkpoint_name)
    if not isinstance(mask, Mask):
        return SplashAttentionKernel(fnp.arange(shape[1], dtype="int32"), fnp.asarray(mask, dtype=bool), None, options)
    heads = list(mask.masks) if isinstance(mask, MultiHeadMask) else []
    shared = heads[0] if heads and all(m == heads[0] for m in heads) else None
    if shared is not None and shared.mask_function is not None:
        return SplashAttentionKernel(fnp.asarray(shared.q_sequence), None, shared, options)
    positions = fnp.arange(shape[1], dtype="int32")
    everywhere = mask[:, :, :] if shared is None else mask[:1, :, :]
    return SplashAttentionKernel(positions, fnp.asarray(everywhere), None, options)


make_splash_mha = functools.partial(_make_splash_attention, is_mqa=False)
make_splash_mqa = functools.partial(_make_splash_attention, is_mqa=True)
make_splash_mha_single_device = functools.partial(make_splash_mha, head_shards=1, q_seq_shards=1)
make_splash_mqa_single_device = functools.partial(make_splash_mqa, head_shards=1, q_seq_shards=1)


def attention_reference(
    mask: Any, q: Any, k: Any, v: Any, segment_ids: SegmentIds | None, sinks: Any = None, *,
    mask_value: float = DEFAULT_MASK_VALUE, save_residuals: bool = False, custom_type: str = "flash",
    attn_logits_soft_cap: float | None = None,
) -> Any:  # fmt: skip
    """Attention of one head, q [T, H], from all logits at once; `mask` holds booleans [T, S]."""
    options = Options(False, save_residuals, mask_value, attn_logits_soft_cap, None)
    kernel = SplashAttentionKernel(fnp.arange(q.shape[0]), fnp.asarray(mask, dtype=bool)[None], None, options)
    q, k, v = (fnp.astype(x, "float32")[None] for x in (q, k, v))
    out = kernel(q, k, v, segment_ids, None if sinks is None else fnp.reshape(sinks, 1))
    return (out[0][0], (out[1][0][0],)) if save_residuals else out[0]


def make_attention_reference(
    mask: Any, is_mqa: bool, backward_impl: str = "vanilla", **params: Any
) -> Callable[..., Any]:
    """Make `attention_reference` for the heads of q [N, T, H]; `mask` is a `Mask` or booleans [N, T, S]."""
    whole = mask[:, :, :] if isinstance(mask, Mask) else mask

    def reference(q: Any, k: Any, v: Any, segment_ids: SegmentIds | None = None, sinks: Any = None, **more: Any) -> Any:
        options = dataclasses.replace(
            Options(is_mqa, False, DEFAULT_MASK_VALUE, None, None),
            **{k: v for k, v in (params | more).items() if k != "custom_type"},
        )
        kernel = SplashAttentionKernel(fnp.arange(q.shape[1]), fnp.asarray(whole, dtype=bool), None, options)
        q, k, v = (fnp.astype(x, "float32") for x in (q, k, v))
        return kernel(q, k, v, segment_ids, sinks)

    return reference


make_masked_mha_reference = functools.partial(make_attention_reference, is_mqa=False)
make_masked_mqa_reference = functools.partial(make_attention_reference, is_mqa=True)
