"""Attention by one kernel: its meaning on CPUs, derivatives of all kinds, and cuDNN's calls in programs for GPUs."""

import itertools
import json
import re

import numpy as np
import pytest
from support.gpu_programs import lowered, text

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends, nn
from functorch_like.avals import ShapedArray
from functorch_like.backends import mha
from functorch_like.backends.xla import cudnn_attention
from functorch_like.primitives.higher_order.fused_attention import fused_attention

R = np.random.default_rng(0)
Q = R.standard_normal((2, 5, 4, 3))
K = R.standard_normal((2, 7, 2, 3))
V = R.standard_normal((2, 7, 2, 3))
HALVES = [ft.ShapeDtypeStruct((2, 16, n, 8), "bfloat16") for n in (4, 2, 2)]


def expected(q, k, v, causal=False):
    k, v = (np.repeat(x, q.shape[2] // x.shape[2], axis=2) for x in (k, v))
    logits = np.einsum("btnh,bsnh->bnts", q, k) / np.sqrt(q.shape[-1])
    logits = np.where(np.tri(*logits.shape[-2:], dtype=bool) | (not causal), logits, -np.inf)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return np.einsum("bnts,bsnh->btnh", weights / weights.sum(-1, keepdims=True), v)


def gradients(q, k, v, ct, causal):
    """Return the derivatives of the sum of results times `ct`."""
    groups = q.shape[2] // k.shape[2]
    wide_k, wide_v = (np.repeat(x, groups, axis=2) for x in (k, v))
    scale = 1 / np.sqrt(q.shape[-1])
    logits = scale * np.einsum("btnh,bsnh->bnts", q, wide_k)
    logits = np.where(np.tri(*logits.shape[-2:], dtype=bool) | (not causal), logits, -np.inf)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    change = np.einsum("btnh,bsnh->bnts", ct, wide_v)
    steep = scale * weights * (change - (weights * change).sum(-1, keepdims=True))
    of_key = [np.einsum("bnts,btnh->bsnh", x, y) for x, y in ((steep, q), (weights, ct))]
    return [np.einsum("bnts,bsnh->btnh", steep, wide_k), *[x.reshape(*k.shape[:3], groups, -1).sum(3) for x in of_key]]


@pytest.fixture
def fits(monkeypatch):
    """Let every call take the form "cudnn", which computes the same on a CPU."""
    monkeypatch.setattr(mha, "_unfit_for_cudnn", lambda params: "")


def attention(*arrays, **more):
    return nn.dot_product_attention(*arrays, implementation="cudnn", **more)


def loss(q, k, v):
    return fnp.sum(attention(q, k, v, is_causal=True) ** 2)


def slope(f, at, direction, step=1e-6):
    return (f(*[a + step * d for a, d in zip(at, direction, strict=True)])
            - f(*[a - step * d for a, d in zip(at, direction, strict=True)])) / (2 * step)  # fmt: skip


DIRECTION = [R.standard_normal(x.shape) for x in (Q, K, V)]


@pytest.mark.parametrize("causal", [False, True])
def test_it_is_attention(fits, causal):
    want = expected(Q, K, V, causal)
    np.testing.assert_allclose(attention(Q, K, V, is_causal=causal), want, rtol=1e-12)
    np.testing.assert_allclose(ft.jit(attention)(Q, K, V), expected(Q, K, V), rtol=1e-12)
    np.testing.assert_allclose(attention(Q[0], K[0], V[0], is_causal=causal), want[0], rtol=1e-12)
    small = [np.asarray(fnp.asarray(x, "bfloat16"), np.float64) for x in (Q, K, V)]
    got = attention(*[fnp.asarray(x, "bfloat16") for x in small], is_causal=causal)
    assert got.dtype == fnp.bfloat16
    np.testing.assert_allclose(np.asarray(got, np.float64), expected(*small, causal), rtol=1e-2, atol=1e-2)


def test_first_derivatives(fits):
    value = lambda *xs: (expected(*xs, True) ** 2).sum()
    want = slope(value, (Q, K, V), DIRECTION)
    grads = ft.jit(ft.grad(loss, (0, 1, 2)))(Q, K, V)
    np.testing.assert_allclose(sum((g * d).sum() for g, d in zip(grads, DIRECTION, strict=True)), want, rtol=1e-7)
    for g, w in zip(grads, gradients(Q, K, V, 2 * expected(Q, K, V, True), True), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ft.jvp(loss, (Q, K, V), tuple(DIRECTION))[1], want, rtol=1e-7)
    for k in range(3):
        one = [d if k == i else 0 * d for i, d in enumerate(DIRECTION)]
        np.testing.assert_allclose((ft.grad(loss, k)(Q, K, V) * DIRECTION[k]).sum(),
                                   slope(value, (Q, K, V), one), rtol=1e-6)  # fmt: skip


def test_second_derivatives(fits):
    gradient = lambda *xs: sum((g * d).sum() for g, d in zip(ft.grad(loss, (0, 1, 2))(*xs), DIRECTION, strict=True))
    for of in (gradient, lambda *xs: ft.jvp(loss, xs, tuple(DIRECTION))[1]):
        want = slope(lambda *xs, of=of: float(of(*xs)), (Q, K, V), DIRECTION)
        np.testing.assert_allclose(ft.jvp(of, (Q, K, V), tuple(DIRECTION))[1], want, rtol=1e-6)
        grads = ft.jit(ft.grad(of, (0, 1, 2)))(Q, K, V)
        np.testing.assert_allclose(sum((g * d).sum() for g, d in zip(grads, DIRECTION, strict=True)), want, rtol=1e-6)


def test_derivatives_of_the_sums(fits):
    """The second result, which the package itself does not differentiate."""
    sums = lambda *xs: fnp.sum(fnp.sin(fused_attention(*xs, scale=0.5, causal=True)[1]))
    want = slope(lambda *xs: float(sums(*xs)), (Q, K, V), DIRECTION)
    grads = ft.grad(sums, (0, 1, 2))(Q, K, V)
    np.testing.assert_allclose(sum((g * d).sum() for g, d in zip(grads, DIRECTION, strict=True)), want, rtol=1e-6)


def test_batches(fits):
    q = R.standard_normal((3, *Q.shape))
    want = [expected(x, K, V) for x in q]
    np.testing.assert_allclose(ft.vmap(attention, (0, None, None))(q, K, V), want, rtol=1e-12)
    np.testing.assert_allclose(ft.vmap(attention, (1, None, None), 2)(q.swapaxes(0, 1), K, V),
                               np.moveaxis(want, 0, 2), rtol=1e-12)  # fmt: skip
    each = ft.vmap(ft.grad(loss), (0, None, None))(q, K, V)
    np.testing.assert_allclose(each, [ft.grad(loss)(x, K, V) for x in q], rtol=1e-9, atol=1e-12)


def test_a_training_step_has_no_matrix_of_logits(fits):
    arrays = [ft.ShapeDtypeStruct((1, 64, 2, 8), "float32")] * 3
    step = str(ft.make_jaxpr(ft.grad(loss, (0, 1, 2)))(*arrays))
    assert step.count("fused_attention") == 2 and "dot_general" not in step


# ---------------------------------------------------------------------------------------------------- programs for GPUs
def calls(program):
    """Return name and configuration of each call of cuDNN in a program's text."""
    found = re.findall(r'@(__cudnn\$\w+)\(.*?backend_config = "(.*?)", ', program)
    return [(name, json.loads(config.replace("\\22", '"'))["cudnn_fmha_backend_config"]) for name, config in found]


def on_gpu(q, k, v):
    return fused_attention(q, k, v, scale=0.25, causal=True)[0]


def test_programs_for_gpus_call_the_kernels():
    step = ft.grad(lambda *xs: fnp.sum(on_gpu(*xs).astype("float32")), (0, 1, 2))
    (forward, of_forward), (backward, of_backward) = calls(text(step, *HALVES))
    assert forward == "__cudnn$fmhaSoftmax" and backward == "__cudnn$fmhaSoftmaxBackward"
    for config in (of_forward, of_backward):
        assert config["fmha_scale"] == 0.25 and config["mask_type"] == "CAUSAL"
        assert config["intermediate_tensor_shape"]["dimensions"] == ["2", "4", "16", "16"]
        assert config["intermediate_tensor_shape"]["element_type"] == "BF16"


def test_other_programs_compute_the_meaning():
    single = [ft.ShapeDtypeStruct(x.shape, "float32") for x in HALVES]
    assert calls(text(on_gpu, *HALVES)) and not calls(text(on_gpu, *single))
    odd = [ft.ShapeDtypeStruct((*x.shape[:3], 12), "bfloat16") for x in HALVES]
    assert not calls(text(on_gpu, *odd))
    program = lowered(on_gpu, *single)
    q, k, v = (R.standard_normal(x.shape).astype(np.float32) for x in HALVES)
    (got,) = program.compile(ft.devices("cpu")[0]).execute([q, k, v])
    np.testing.assert_allclose(got, expected(q / 2 * np.sqrt(8) / 2, k, v, True), rtol=1e-4, atol=1e-5)


def test_what_has_no_kernel_is_named():
    x = ShapedArray((1, 4, 2, 64), "bfloat16")
    assert cudnn_attention.fits(x, x, x)
    for shape, dtype, reason in [
        ((1, 4, 2, 64), "float32", "not float32"),
        ((1, 4, 2, 12), "float16", "not 12"),
        ((1, 4, 2, 136), "bfloat16", "not 136"),
        ((0, 4, 2, 64), "bfloat16", "empty"),
    ]:
        x = ShapedArray(shape, dtype)
        assert reason in cudnn_attention.unfit(x, x, x)


def test_the_kernel_goes_first_where_it_can_be_used(monkeypatch):
    class Gpu:
        platform, compute_capability = "gpu", "9.0"

    arrays = [ft.ShapeDtypeStruct(x.shape, x.dtype) for x in HALVES]
    assert mha.choose(mha.SDPAParams(*arrays), 1) == "math"
    monkeypatch.setattr(mha.xla, "default_backend", lambda: "gpu")
    monkeypatch.setattr(mha.xla, "devices", lambda: [Gpu()])
    assert mha.choose(mha.SDPAParams(*arrays), 1) == "cudnn"
    assert mha.choose(mha.SDPAParams(*arrays, attn_mask=arrays[0]), 1) == "math"
    for flags in ({"cudnn": False}, {"fastpath": False}):
        with backends.mha.flags(**flags):
            assert mha.choose(mha.SDPAParams(*arrays), 1) == "math"
    for flags in ({"deterministic_algorithms": "on"}, {"cudnn.deterministic": True}):
        with backends.flags(**flags):
            assert mha.choose(mha.SDPAParams(*arrays), 1) == "math"
    Gpu.compute_capability = "7.5"
    assert mha.choose(mha.SDPAParams(*arrays), 1) == "math"


@pytest.mark.gpu
@pytest.mark.parametrize(("dtype", "causal", "heads", "features"),
                         [*itertools.product(["bfloat16", "float16"], [False, True], [(4, 4), (4, 2)], [64]),
                          ("bfloat16", True, (2, 1), 128), ("float16", False, (3, 3), 8)])  # fmt: skip
def test_the_kernels_compute_attention_and_its_derivative(dtype, causal, heads, features):
    shapes = [(2, 96, heads[0], features), *[(2, 130, heads[1], features)] * 2]
    q, k, v = (fnp.asarray(R.standard_normal(s), dtype) for s in shapes)
    weights = R.standard_normal(shapes[0]).astype(np.float32)
    wide = [np.asarray(x, np.float64) for x in (q, k, v)]
    got = ft.jit(lambda *xs: nn.dot_product_attention(*xs, is_causal=causal))
    assert "__cudnn$fmhaSoftmax" in got.lower(q, k, v).as_text()
    np.testing.assert_allclose(np.asarray(got(q, k, v), np.float64), expected(*wide, causal), rtol=2e-2, atol=2e-2)
    loss = lambda *xs: fnp.sum(nn.dot_product_attention(*xs, is_causal=causal).astype("float32") * weights)
    grads, wanted = ft.jit(ft.grad(loss, (0, 1, 2)))(q, k, v), gradients(*wide, weights, causal)
    for g, w in zip(grads, wanted, strict=True):
        assert np.abs(np.asarray(g, np.float64) - w).max() < 2e-2 * np.abs(w).max()
    forward = ft.jit(lambda *xs: ft.jvp(loss, xs, xs)[1])(q, k, v)
    np.testing.assert_allclose(
        float(forward), sum((w * x).sum() for w, x in zip(wanted, wide, strict=True)), rtol=0.1, atol=1
    )
    batched = ft.vmap(lambda *xs: nn.dot_product_attention(*xs, is_causal=causal))(*[x[:, None] for x in (q, k, v)])
    np.testing.assert_allclose(np.asarray(batched[:, 0], np.float64), expected(*wide, causal), rtol=2e-2, atol=2e-2)
