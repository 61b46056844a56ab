"""JAX's ready kernels, `jax.experimental.pallas.ops`, against attention in NumPy's float64."""

import textwrap

import pytest

ATTENTION = """
import jax, jax.numpy as jnp, numpy as np
rng = np.random.default_rng(0)
draw = lambda *shape: rng.normal(size=shape).astype(np.float32)

def attention(q, k, v, allowed=True, cap=None, sink=None):
    scores = np.einsum("...td,...sd->...ts", np.float64(q), np.float64(k))
    scores = np.where(allowed, scores if cap is None else cap * np.tanh(scores / cap), -np.inf)
    e = np.exp(scores)
    total = e.sum(-1, keepdims=True) + (0 if sink is None else np.exp(sink)[:, None, None])
    return np.einsum("...ts,...sd->...td", e / total, np.float64(v)), np.log(total[..., 0])

def close(x, y):
    assert x.shape == y.shape
    np.testing.assert_allclose(np.float64(x), y, rtol=2e-4, atol=2e-5)
"""


def test_flash_attention_of_tpus(run):
    text = """
    from jax.experimental.pallas.ops.tpu.flash_attention import BlockSizes, SegmentIds, flash_attention, mha_reference
    q, k, v, bias = draw(2, 3, 16, 8), draw(2, 3, 20, 8), draw(2, 3, 20, 8), draw(2, 3, 16, 20)
    segments = SegmentIds(np.sort(rng.integers(0, 2, (2, 16))), np.sort(rng.integers(0, 2, (2, 20))))
    segments.kv[:, 0], segments.kv[:, -1] = 0, 1
    allowed = (segments.q[:, :, None] == segments.kv[:, None])[:, None]
    scaled = 0.3 * np.concatenate([q, np.ones((2, 3, 16, 1))], -1)
    for ab in (None, bias):
        expected = np.float64(0.3) * (np.einsum("bntd,bnsd->bnts", q, k) + (0 if ab is None else ab))
        e = np.where(allowed, np.exp(expected), 0)
        expected = np.einsum("bnts,bnsd->bntd", e / e.sum(-1, keepdims=True), v)
        sizes = BlockSizes.get_default(2, 3, 16, 20, 8)
        close(flash_attention(q, k, v, ab, segments, sm_scale=0.3, block_sizes=sizes), expected)
        close(mha_reference(q, k, v, ab, segments, sm_scale=0.3), expected)
    past = np.tri(16, 20, dtype=bool)
    close(flash_attention(q, k, v, causal=True), attention(q, k, v, past)[0])
    grad = jax.grad(lambda v: (flash_attention(q, k, v, causal=True) ** 2).sum())(jnp.asarray(v))
    weights = attention(q, k, np.broadcast_to(np.eye(20), (2, 3, 20, 20)), past)[0]
    close(grad, 2 * np.einsum("bnts,bntd->bnsd", weights, weights @ np.float64(v)))
    for refused in (lambda: flash_attention(q, k[:1], v), lambda: flash_attention(q, k, v, bias[:, :, :, :1])):
        try:
            refused()
        except ValueError as error:
            print(type(error).__name__)
    """
    assert run(ATTENTION + textwrap.dedent(text)).split() == ["ShapeError", "ShapeError"]


@pytest.mark.parametrize("mask", [
    "masks.FullMask(shape)", "masks.CausalMask(shape)", "masks.CausalMask(shape, 3)",
    "masks.LocalMask(shape, (4, None), 1)", "masks.CausalMask(shape) & masks.LocalMask(shape, (3, 9), 0)",
    "masks.ChunkedCausalMask(shape, 4)", "masks.LocalMask(shape, (1, 0), 0) | masks.NumpyMask(np.eye(12, 16, 3) > 0)",
    "Even(shape)",
])  # fmt: skip
def test_splash_attention(run, mask):
    text = f"""
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

    class Even(masks._ComputableMask):  # as programs define them
        def __init__(self, shape):
            super().__init__(shape=shape, mask_function=lambda rows, columns: (rows + columns) % 2 == 0)
        def __eq__(self, other):
            return type(self) is type(other)
        def __hash__(self):
            return 1

    shape = (12, 16)
    q, k, v = draw(4, 12, 8), draw(2, 16, 8), draw(2, 16, 8)
    one = {mask}
    head = np.asarray(one[:, :])
    wide = [np.repeat(x, 2, axis=0) for x in (k, v)]
    ids = splash.SegmentIds(np.arange(12) // 6, np.arange(16) // 6)
    inside = head & (ids.q[:, None] == ids.kv) | (np.arange(16) == np.arange(12)[:, None])
    whole = masks.MultiHeadMask([one] * 4)
    kernel = splash.make_splash_mha(whole, head_shards=1, q_seq_shards=1, block_sizes=splash.BlockSizes(128, 128))
    close(kernel(q, k, v), attention(q, *wide, head)[0])
    close(jax.jit(kernel)(q, k, v), attention(q, *wide, head)[0])
    both = masks.MultiHeadMask([one | masks.LocalMask(shape, (0, 0), 0)] * 4)
    close(splash.make_splash_mha_single_device(both)(q, k, v, ids)[:, 6:], attention(q, *wide, inside)[0][:, 6:])
    capped = splash.make_splash_mha_single_device(whole, attn_logits_soft_cap=0.7, save_residuals=True)
    sinks = draw(4)
    out, (log_sums,) = capped(q, k, v, sinks=sinks)
    expected = attention(q, *wide, head, 0.7, np.float64(sinks))
    close(out, expected[0]), close(log_sums, expected[1])
    several = masks.MultiHeadMask([one, masks.FullMask(shape), one, masks.CausalMask(shape)])
    close(splash.make_splash_mqa_single_device(several)(q, k[0], v[0]), attention(q, k[0], v[0], several[:, :, :])[0])
    every = several[:, :, :]
    close(splash.make_splash_mha_single_device(jnp.asarray(every))(q, k, v), attention(q, *wide, every)[0])
    f = lambda q: (kernel(q, k, v) ** 2).sum()
    step = draw(*q.shape)
    slope = (np.sum(attention(q + 1e-6 * np.float64(step), *wide, head)[0] ** 2)
             - np.sum(attention(q - 1e-6 * np.float64(step), *wide, head)[0] ** 2)) / 2e-6
    np.testing.assert_allclose(jnp.vdot(jax.grad(f)(jnp.asarray(q)), step), slope, rtol=2e-3, atol=1e-4)
    """
    run(ATTENTION + textwrap.dedent(text))


def test_splash_attention_split_over_devices(run):
    text = """
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
    from jax.sharding import NamedSharding, PartitionSpec as P
    jax.config.update("jax_num_cpu_devices", 4)
    mesh = jax.make_mesh((2, 2), ("heads", "rows"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    shape = (16, 16)
    q, k, v = draw(3, 4, 16, 8), draw(3, 4, 16, 8), draw(3, 4, 16, 8)
    for each in ([masks.CausalMask(shape, shard_count=2)] * 4, [masks.CausalMask(shape), masks.FullMask(shape)] * 2):
        whole = masks.MultiHeadMask(each)
        kernel = splash.make_splash_mha(whole, head_shards=2, q_seq_shards=2, residual_checkpoint_name="attended")
        split = kernel.manual_sharding_spec(NamedSharding(mesh, P("heads", "rows")))
        part, other = P(None, "heads", "rows"), P(None, "heads")
        f = jax.shard_map(lambda kernel, q, k, v: jax.vmap(kernel)(q, k, v), mesh=mesh,
                          in_specs=(split, part, other, other), out_specs=part, check_vma=False)
        close(jax.jit(f)(kernel, q, k, v), attention(q, k, v, whole[:, :, :])[0])
    """
    run(ATTENTION + textwrap.dedent(text))


def test_attention_of_decoding_and_pages(run):
    text = """
    from jax.experimental.pallas.ops.gpu import attention as gpu, decode_attention, paged_attention as gpu_pages
    from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention, quantization_utils
    from jax.experimental.pallas.ops.tpu.ragged_paged_attention import ragged_paged_attention

    q, k, v = draw(2, 8, 3, 4), draw(2, 8, 3, 4), draw(2, 8, 3, 4)
    heads = [np.swapaxes(x, 1, 2) for x in (q, k, v)]
    ids = np.arange(8)[None] // np.array([[3], [5]])
    past = np.tri(8, dtype=bool) & (ids[:, :, None] == ids[:, None])[:, None]
    out, log_sums = gpu.mha(q, k, v, ids, sm_scale=0.5, causal=True, return_residuals=True)
    expected = attention(0.5 * np.float64(heads[0]), *heads[1:], past)
    close(jnp.swapaxes(out, 1, 2), expected[0]), close(log_sums, expected[1])

    one, k, v = draw(2, 6, 4), draw(2, 8, 3, 4), draw(2, 8, 3, 4)
    grouped = lambda x: np.repeat(np.swapaxes(x, 1, 2), 2, axis=1)
    allowed = ((np.arange(8) >= np.array([[1], [2]])) & (np.arange(8) < np.array([[4], [8]])))[:, None, None]
    full, log_sums = attention(one[:, :, None] / 2, grouped(k), grouped(v), allowed)
    bounds = {"start_idx": jnp.array([1, 2]), "kv_seq_len": jnp.array([4, 8])}
    out, (sums, largest) = decode_attention.gqa(one, k, v, **bounds, return_residuals=True)
    close(out, full[:, :, 0]), close(largest + jnp.log(sums), log_sums[:, :, 0])
    raw, (sums, _) = decode_attention.gqa(one, k, v, **bounds, return_residuals=True, normalize_output=False)
    close(raw / sums[..., None], full[:, :, 0])
    close(decode_attention.mqa(one, k[:, :, 0], v[:, :, 0]),
          attention(one[:, :, None] / 2, k[:, None, :, 0], v[:, None, :, 0])[0][:, :, 0])

    k_pages, v_pages, table = draw(3, 9, 4, 4), draw(3, 9, 4, 4), rng.permutation(9)[:6].reshape(2, 3)
    gathered = [np.repeat(np.moveaxis(x[:, table], 0, 1).reshape(2, 3, 12, 4), 2, axis=1) for x in (k_pages, v_pages)]
    lengths = np.array([5, 12], np.int32)
    expected = attention(one[:, :, None], *gathered, (np.arange(12) < lengths[:, None])[:, None, None], 0.8)[0][:, :, 0]
    options = {"attn_logits_soft_cap": 0.8, "pages_per_compute_block": 1}
    close(paged_attention(one, k_pages, v_pages, lengths, table, **options), expected)
    close(gpu_pages.paged_attention(one, k_pages / 2, v_pages, table, lengths, np.full((3, 9, 4), 2.0, np.float32),
                                    attn_logits_soft_cap=0.8), expected)
    packed = [quantization_utils.quantize_to_int8(jnp.asarray(x)) for x in (k_pages, v_pages)]
    assert packed[0].weight.dtype == jnp.int8
    assert abs(quantization_utils.unquantize_from_int8(packed[0]) - k_pages).max() < 0.05
    near = paged_attention(one, *packed, lengths, table, **options)
    assert abs(near - expected).max() < 0.05

    tokens, pages, lengths = draw(9, 6, 4), draw(9, 4, 6, 4), np.array([5, 12, 1], np.int32)
    starts, table = np.array([0, 3, 7, 7], np.int32), rng.permutation(9)[:9].reshape(3, 3)
    for window, count in ((None, 2), (3, 1)):
        out = jax.jit(lambda n: ragged_paged_attention(tokens, pages, lengths, table, starts, n, sm_scale=0.5,
                                                       sliding_window=window, k_scale=2.0))(jnp.array([count]))
        for i in range(count):
            part = slice(starts[i], starts[i + 1])
            k, v = (np.repeat(np.swapaxes(pages[table[i]].reshape(12, 6, 4)[:, j::2], 0, 1), 2, axis=0) for j in (0, 1))
            place = np.arange(starts[i + 1] - starts[i])[:, None] + lengths[i] - (starts[i + 1] - starts[i])
            seen = (np.arange(12) <= place) & (np.arange(12) > place - (window or 99))
            close(out[part], np.swapaxes(attention(np.swapaxes(tokens[part], 0, 1), k, v, seen)[0], 0, 1))
        assert not out[starts[count]:].any()
    """
    run(ATTENTION + textwrap.dedent(text))


def test_products_of_groups_and_norms(run):
    text = """
    from jax.experimental.pallas.ops.gpu.layer_norm import layer_norm
    from jax.experimental.pallas.ops.gpu.rms_norm import rms_norm
    from jax.experimental.pallas.ops.gpu.softmax import softmax
    from jax.experimental.pallas.ops.tpu import megablox
    from jax.experimental.pallas.ops.tpu.matmul import matmul
    lhs, rhs, sizes = draw(10, 4), draw(4, 4, 3), np.array([3, 0, 5, 2], np.int32)
    group = np.repeat(np.arange(4), sizes)
    expected = np.einsum("mk,mkn->mn", np.float64(lhs), rhs[group])
    close(megablox.gmm(lhs, rhs, sizes), expected)
    close(megablox.gmm(lhs, np.swapaxes(rhs, 1, 2), sizes, transpose_rhs=True), expected)
    some = jax.jit(lambda first: megablox.gmm(lhs, rhs[2:3], sizes, group_offset=first))(2)
    close(some, np.where((group == 2)[:, None], expected, 0))
    kept = megablox.gmm(lhs, rhs[2:], sizes, group_offset=jnp.asarray(2), existing_out=jnp.full((10, 3), 7.0))
    close(kept, np.where((group >= 2)[:, None], expected, 7))
    close(jax.grad(lambda r: (megablox.gmm(lhs, r, sizes) ** 2).sum())(jnp.asarray(rhs)),
          np.stack([2 * np.float64(lhs)[group == g].T @ expected[group == g] for g in range(4)]))
    x, w, b = draw(5, 6), draw(6), draw(6)
    wide = np.float64(x)
    close(layer_norm(x, w, b), (wide - wide.mean(1)[:, None]) / np.sqrt(wide.var(1)[:, None] + 1e-5) * w + b)
    close(rms_norm(x, w, b), wide / np.sqrt((wide**2).mean(1)[:, None] + 1e-5) * w + b)
    close(softmax(x, axis=0), np.exp(wide) / np.exp(wide).sum(0))
    close(matmul(lhs, rhs[0], block_shape=(2, 2)), np.float64(lhs) @ rhs[0])
    """
    run(ATTENTION + textwrap.dedent(text))
