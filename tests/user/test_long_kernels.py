"""Convolutions with long kernels, in one feature or in as many groups as features: values, gradients, infinities."""

import numpy as np
import pytest
from scipy import signal

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax

RNG = np.random.default_rng(7)


@pytest.fixture(autouse=True, params=["quick", "off"])
def _tier(request):
    with ft.backends.flags(compilation_tiers=request.param):
        yield


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "m"), [(100, 64), (33, 200), (500, 131)])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_sums_of_products_in_one_dimension(n, m, mode, dtype):
    x, w = RNG.normal(size=n).astype(dtype), RNG.normal(size=m).astype(dtype)
    exact = np.convolve(x.astype("float64"), w.astype("float64"), mode)
    within = {"atol": 1e-4 if dtype == "float32" else 1e-12, "rtol": 0}
    np.testing.assert_allclose(ft.jit(fnp.convolve, static_argnames="mode")(x, w, mode=mode), exact, **within)
    ct = RNG.normal(size=exact.shape)
    by_x, by_w = ft.jit(ft.grad(lambda x, w: fnp.sum(fnp.convolve(x, w, mode) * ct.astype(dtype)), (0, 1)))(x, w)
    # The function is linear in each argument: the derivative is the value for the vectors of a basis.
    part = lambda a, b: np.convolve(a.astype("float64"), b.astype("float64"), mode)
    np.testing.assert_allclose(by_x, [part(row, w) @ ct for row in np.eye(n)], **within)
    np.testing.assert_allclose(by_w, [part(x, row) @ ct for row in np.eye(m)], **within)


@pytest.mark.parametrize("last", [False, True])
def test_depthwise_kernels_in_two_dimensions(last):
    x, w, ct = (RNG.normal(size=s).astype("float32") for s in ((2, 3, 20, 21), (3, 1, 7, 9), (2, 3, 20, 21)))
    layout = ("NHWC", "HWIO", "NHWC") if last else ("NCHW", "OIHW", "NCHW")
    put = lambda a: a.transpose(0, 2, 3, 1) if last else a
    first = lambda a: np.moveaxis(np.asarray(a), 3, 1) if last else np.asarray(a)
    weights = lambda a: a.transpose(2, 3, 1, 0) if last else a
    f = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=layout, feature_group_count=3)
    y, back = ft.vjp(ft.jit(f), put(x), weights(w))
    by_x, by_w = back(put(ct))
    for b, c in np.ndindex(2, 3):
        wide = lambda a: a.astype("float64")
        exact = signal.correlate2d(wide(x[b, c]), wide(w[c, 0]), "same")
        np.testing.assert_allclose(first(y)[b, c], exact, atol=1e-4)
        exact = signal.convolve2d(wide(ct[b, c]), wide(w[c, 0]), "same")
        np.testing.assert_allclose(first(by_x)[b, c], exact, atol=1e-4)
    for c in range(3):
        padded = np.pad(x[:, c].astype("float64"), ((0, 0), (3, 3), (4, 4)))
        exact = sum(signal.correlate2d(padded[b], ct[b, c].astype("float64"), "valid") for b in range(2))
        np.testing.assert_allclose(by_w[:, :, 0, c] if last else by_w[c, 0], exact, atol=1e-3)


def test_infinities_stay_in_their_windows():
    x = np.ones(300, "float32")
    x[150] = np.inf
    got = np.asarray(ft.jit(fnp.convolve)(x, np.ones(65, "float32")))
    assert np.isinf(got[150:215]).all() and np.isfinite(got[:150]).all() and np.isfinite(got[215:]).all()


def test_strides_and_holes():
    x, w = RNG.normal(size=(2, 1, 90)), RNG.normal(size=(2, 1, 40))
    f = lambda x, w: lax.conv_general_dilated(x, w, (2,), ((5, 9),), lhs_dilation=(3,), rhs_dilation=(2,))
    spread = np.zeros((2, 1, 268 + 14))
    spread[..., 5 : 5 + 268 : 3] = x
    holes = np.zeros((2, 1, 79))
    holes[..., ::2] = w
    exact = [[np.correlate(spread[b, 0], holes[o, 0], "valid")[::2] for o in range(2)] for b in range(2)]
    np.testing.assert_allclose(ft.jit(f)(x, w), exact, atol=1e-12)
