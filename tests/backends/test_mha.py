"""backends.mha: the choice of a form of attention, and equal results of all forms."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends, nn
from functorch_like.backends import mha

R = np.random.default_rng(0)
Q = R.standard_normal((2, 64, 4, 8)).astype(np.float32)
K = R.standard_normal((2, 96, 2, 8)).astype(np.float32)
V = R.standard_normal((2, 96, 2, 5)).astype(np.float32)
BIAS = R.standard_normal((4, 1, 96)).astype(np.float32)
MASK = R.random((2, 1, 64, 96)) < 0.7
MASK[0, 0, 3] = False  # a query without any key
FORMS = ("flash", "mem_efficient")


def expected(q, k, v, bias=0.0, mask=True):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[2] // x.shape[2], axis=2) for x in (k, v))
    logits = np.einsum("btnh,bsnh->bnts", q, k) / np.sqrt(q.shape[-1]) + bias
    logits = np.where(mask, logits, -np.inf)
    with np.errstate(invalid="ignore"):
        weights = np.exp(logits - logits.max(-1, keepdims=True))
        weights = np.nan_to_num(weights / weights.sum(-1, keepdims=True))
    return np.einsum("bnts,bsnh->btnh", weights, v)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("extras", [(), ("bias",), ("mask",), ("bias", "mask", "is_causal")])
def test_every_form_is_attention(form, extras):
    given = {"bias": BIAS, "mask": MASK, "is_causal": True}
    keywords = {name: given[name] for name in extras}
    causal = np.tril(np.ones((64, 96), bool)) if "is_causal" in extras else True
    want = expected(Q, K, V, keywords.get("bias", 0.0), keywords.get("mask", True) & np.asarray(causal))
    got = nn.dot_product_attention(Q, K, V, **keywords, implementation=form)
    np.testing.assert_allclose(got, want, atol=2e-5)


@pytest.mark.parametrize("form", FORMS)
def test_derivatives_and_batches_are_those_of_math(form):
    def loss(form):
        return lambda q, k, v, b: fnp.sum(
            nn.dot_product_attention(q, k, v, b, MASK, is_causal=True, implementation=form) ** 2
        )

    got, want = (ft.jit(ft.grad(loss(f), argnums=(0, 1, 2, 3)))(Q, K, V, BIAS) for f in (form, "math"))
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, atol=3e-5)
    single = lambda q, k, v: nn.dot_product_attention(q, k, v, implementation=form)
    np.testing.assert_allclose(ft.vmap(single)(Q, K, V), expected(Q, K, V), atol=2e-5)


def test_blocks_need_less_memory():
    x = ft.ShapeDtypeStruct((1, 2048, 2, 16), "float32")
    temp = {}
    for form in ("math", *FORMS):
        grad = ft.grad(lambda q, form=form: fnp.sum(nn.dot_product_attention(q, q, q, implementation=form)))
        temp[form] = ft.jit(grad).lower(x).compile().memory_analysis()["temp"]
    assert temp["flash"] < temp["math"] / 4 and temp["mem_efficient"] < temp["math"] / 3


def form_taken(*args, **flags):
    with backends.mha.flags(**flags):
        x = ft.ShapeDtypeStruct((1, *args), "float32")
        return mha.choose(mha.SDPAParams(x, x, x), args[0] ** 2 * args[1] * 4)


def test_the_form_that_is_taken():
    assert form_taken(128, 2, 16) == "math"
    assert form_taken(4096, 8, 16) == "mem_efficient"
    assert form_taken(4096, 8, 16, mem_efficient=False) == "flash"
    assert form_taken(4096, 8, 16, flash=False, mem_efficient=False) == "math"
    assert form_taken(4096, 8, 16, fastpath=False) == "math"
    assert form_taken(128, 2, 16, math=False) == "mem_efficient"
    assert form_taken(521, 2, 16, math=False) == ""
    assert form_taken(128, 2, 16, most_logits=1) == "mem_efficient"


def test_settings_change_what_is_traced():
    f = ft.jit(lambda q: nn.dot_product_attention(q, q, q))
    q = Q[:, :, :2]
    assert "scan" not in str(f.trace(q).jaxpr)
    with backends.mha.flags(math=False):
        assert "scan" in str(f.trace(q).jaxpr)
    with backends.mha.flags(math=False), pytest.raises(ft.errors.ArgumentError, match="allows no form of attention"):
        nn.dot_product_attention(Q[:, :7], Q[:, :7], Q[:, :7])


def test_torchs_functions_set_the_settings():
    for name in ("math", "flash", "mem_efficient", "cudnn"):
        before = getattr(mha, name)
        getattr(mha, f"enable_{name}_sdp")(not before)
        assert getattr(mha, f"{name}_sdp_enabled")() is getattr(mha, name) is (not before)
        getattr(mha, f"enable_{name}_sdp")(before)
    assert backends.cuda.enable_flash_sdp is mha.enable_flash_sdp and backends.cuda.SDPAParams is mha.SDPAParams
    mha.set_fastpath_enabled(False)
    assert mha.get_fastpath_enabled() is False
    mha.set_fastpath_enabled(True)


def test_why_not(capsys):
    x = ft.ShapeDtypeStruct((1, 7, 2, 16), "float32")
    params = mha.SDPAParams(x, x, x)
    assert not mha.can_use_flash_attention(params, debug=True)
    assert not mha.can_use_efficient_attention(params, debug=True)
    assert not mha.can_use_cudnn_attention(params, debug=True)
    assert capsys.readouterr().out.splitlines() == [
        "flash: 7 keys cannot be cut into equal blocks of 32 to 256",
        "mem_efficient: 7 queries cannot be cut into equal blocks of 32 to 256",
        "cudnn: it takes bfloat16 and float16, not float32",
    ]
    with backends.mha.flags(flash=False):
        assert not mha.can_use_flash_attention(mha.SDPAParams(Q, K, V), debug=True)
    assert capsys.readouterr().out == "flash: backends.mha.flash is off\n"
    assert mha.can_use_flash_attention(mha.SDPAParams(Q, K, V), debug=True) and capsys.readouterr().out == ""
    in_order = mha.SDPAParams(Q, K, V, None, 0.5, True, False)  # PyTorch's order of the fields
    assert in_order.is_causal and not mha.can_use_efficient_attention(in_order, debug=True)
    assert capsys.readouterr().out == "mem_efficient: weights are not dropped here, and dropout=0.5\n"


def test_what_cannot_be_used_says_so():
    with pytest.raises(ft.errors.ArgumentError, match="7 keys cannot be cut into equal blocks"):
        nn.dot_product_attention(Q[:, :7], Q[:, :7], Q[:, :7], implementation="flash")
    with pytest.raises(ft.errors.ArgumentError, match=r"not float32(?s:.*)leave implementation out"):
        nn.dot_product_attention(Q, K, V, implementation="cudnn")
    with pytest.raises(ft.errors.ArgumentError, match="no implementation 'triton'"):
        nn.dot_product_attention(Q, K, V, implementation="triton")
