"""Products of formats with scales for blocks, against NumPy with ml_dtypes in float64."""

import ml_dtypes
import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax, nn
from functorch_like.errors import ArgumentError, ShapeError

rng = np.random.default_rng(0)
ROWS = (((2,), (2,)), ((0,), (0,)))


def rounded(x, mode, overall=1.0):
    """Return an array rounded along its last dimension, one block after the other."""
    size, of_data, most = (32, ml_dtypes.float8_e4m3fn, 448) if mode == "mxfp8" else (16, ml_dtypes.float4_e2m1fn, 6)
    out = np.empty(x.shape)
    for at in np.ndindex(x.shape[:-1]):
        for start in range(0, x.shape[-1], size):
            block = x[at][start : start + size].astype(float)
            scale = np.abs(block).max() / most / overall
            if mode == "mxfp8":
                scale = 2.0 ** np.ceil(np.log2(scale)) if scale else 1.0
            else:
                scale = float(ml_dtypes.float8_e4m3fn(scale)) if scale else 1.0
            stored = np.clip((block / (scale * overall)).astype(np.float32), -most, most).astype(of_data)
            out[at][start : start + size] = stored.astype(float) * scale * overall
    return out


@pytest.mark.parametrize(("mode", "overall"), [("mxfp8", None), ("nvfp4", None), ("nvfp4", 0.013)])
def test_a_product_of_rounded_operands_and_its_gradient(mode, overall):
    left, right, ct = (rng.normal(size=s).astype(np.float32) for s in ((2, 5, 70), (2, 3, 70), (2, 5, 3)))
    left[0, 0, :32] = 0
    whole = 1.0 if overall is None else overall
    config = nn.get_scaled_dot_general_config(mode, None if overall is None else np.array([overall], np.float32))
    product = lambda a, b: nn.scaled_dot_general(a, b, ROWS, configs=[config] * 3)
    turned = lambda x: np.swapaxes(x, 1, 2)
    got, back = ft.vjp(product, left, right)
    by_left, by_right = back(ct)
    close = lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)
    r = lambda x: rounded(x, mode, whole)
    close(got, np.einsum("bmk,bnk->bmn", r(left), r(right)))
    close(by_left, np.einsum("bmn,bkn->bmk", r(ct), r(turned(right))))
    close(by_right, np.einsum("bnm,bkm->bnk", r(turned(ct)), r(turned(left))))
    close(ft.jit(ft.vmap(product))(left[None], right[None])[0], got)


def test_dimensions_in_any_order():
    left, right = rng.normal(size=(4, 2, 32, 3)), rng.normal(size=(32, 5, 3, 6))
    dims = (((2,), (0,)), ((3,), (2,)))
    config = nn.get_scaled_dot_general_config("mxfp8")
    got = nn.scaled_dot_general(left, right, dims, "float16", configs=[config] * 3)
    assert got.shape == (3, 4, 2, 5, 6) and got.dtype == np.float16
    a, b = rounded(np.moveaxis(left, 2, -1), "mxfp8"), rounded(np.moveaxis(right, 0, -1), "mxfp8")
    np.testing.assert_allclose(got, np.einsum("mpbk,nbqk->bmpnq", a, b), rtol=2e-3, atol=2e-3)
    plain = nn.scaled_dot_general(left, right, dims, "float64")
    np.testing.assert_allclose(plain, np.einsum("mpkb,knbq->bmpnq", left, right))


def test_scaled_dot():
    lhs = rng.normal(size=(4, 64)).astype(ml_dtypes.float8_e4m3fn)
    rhs = rng.normal(size=(64, 3)).astype(ml_dtypes.float8_e4m3fn)
    left, right = (2.0 ** rng.integers(-3, 3, s) for s in ((4, 2), (4, 3)))
    wide = (lhs.astype(float) * np.repeat(left, 32, 1)) @ (rhs.astype(float) * np.repeat(right, 16, 0))
    scales = {
        "lhs_scale": left.astype(ml_dtypes.float8_e8m0fnu),
        "rhs_scale": right.astype(ml_dtypes.float8_e8m0fnu),
    }
    np.testing.assert_allclose(lax.scaled_dot(lhs, rhs, **scales, preferred_element_type="float32"), wide, rtol=1e-5)
    narrow = lax.scaled_dot(lhs[None], rhs[None], **{k: v[None] for k, v in scales.items()})
    assert narrow.dtype == ml_dtypes.bfloat16
    np.testing.assert_allclose(narrow[0].astype("float64"), wide, rtol=1e-2, atol=1e-2)
    turned = lax.scaled_dot(lhs, rhs.T, rhs_scale=right.T, dimension_numbers=(((1,), (1,)), ((), ())))
    expected = lhs.astype(float) @ (rhs.astype(float) * np.repeat(right, 16, 0))
    np.testing.assert_allclose(turned.astype("float64"), expected, rtol=1e-2, atol=1e-2)
    slope = ft.grad(lambda s: fnp.sum(lax.scaled_dot(lhs, rhs, lhs_scale=s, preferred_element_type="float32")))(left)
    terms = lhs.astype(float)[:, :, None] * rhs.astype(float)
    np.testing.assert_allclose(slope, terms.reshape(4, 2, 32, 3).sum((2, 3)), rtol=1e-4, atol=1e-4)


def test_what_they_refuse():
    with pytest.raises(ShapeError, match="divide those of contracted"):
        lax.scaled_dot(np.ones((2, 64)), np.ones((64, 3)), lhs_scale=np.ones((2, 3)))
    with pytest.raises(ArgumentError, match="give dimension_numbers"):
        lax.scaled_dot(np.ones(2), np.ones(2))
    with pytest.raises(ArgumentError, match="has no global_scale"):
        nn.get_scaled_dot_general_config("mxfp8", np.ones(1))
    with pytest.raises(ArgumentError, match="'nvfp4'"):
        nn.get_scaled_dot_general_config("int4")
    with pytest.raises(ArgumentError, match="of gradients"):
        nn.scaled_dot_general(
            np.ones((1, 2, 3)), np.ones((1, 2, 3)), ROWS, configs=[nn.get_scaled_dot_general_config("mxfp8")]
        )
