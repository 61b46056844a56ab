"""Quantised weights against the same computation in NumPy, and the digits model in int8 and int4."""

import itertools

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, nn, tree
from functorch_like.testing import check_grads

RNG = np.random.default_rng(0)
W = RNG.normal(size=(33, 16)).astype("float32") * np.exp(RNG.normal(size=16)).astype("float32")
X = RNG.normal(size=(5, 33)).astype("float32")


def steps(x, top, axis):
    """Return the quantised integers and the size of a step, in float64."""
    scale = np.abs(x.astype(np.float64)).max(axis, keepdims=True) / top
    scale = np.where(scale == 0, 1 / top, scale)
    return np.clip(np.rint(x / scale), -top, top), scale


@pytest.mark.parametrize(("policy", "top", "dynamic"), [
    ("int8", 127, True), ("int8_weights", 127, False), ("int4", 7, True), ("int4_weights", 7, False),
])  # fmt: skip
def test_products(policy, top, dynamic):
    q = nn.quantize({"w": W}, policy)["w"]
    values, scale = steps(W, top, 0)
    np.testing.assert_array_equal(q.integers(), values)
    np.testing.assert_allclose(q.dequantize(), values * scale, rtol=1e-6)
    xs, step = steps(X, 127, 1) if dynamic else (X.astype(np.float64), 1.0)
    want = (xs @ values) * (step * scale)
    close = lambda found, want: np.testing.assert_allclose(found, want, rtol=2e-5, atol=2e-5 * np.abs(want).max())
    close(X @ q, want)
    close(ft.jit(lambda x, q: x @ q)(X, q), want)
    close(q.T @ X.T, want.T)
    close(X[0] @ q, want[0])
    model = ft.jit(lambda p, x: ft.jit(lambda w: fnp.einsum("bi,io->ob", x, w))(p) + 1)
    close(nn.quantized(model)(q, X), want.T + 1)
    close(ft.vmap(lambda x: x @ q)(X), want)
    text = ft.jit(lambda x, q: x @ q).lower(X, q).as_text()
    assert ("tensor<5x16xi32>" in text) == dynamic


def test_products_with_batches():
    w, x = RNG.normal(size=(3, 8, 4)).astype("float32"), RNG.normal(size=(3, 5, 8)).astype("float32")
    q = nn.quantize(w)
    (xs, step), (values, scale) = steps(x, 127, 2), steps(w, 127, (0, 1))
    found = nn.quantized(lambda w, x: fnp.einsum("bmk,bkn->bmn", x, w))(q, x)
    np.testing.assert_allclose(found, np.einsum("bmk,bkn->bmn", xs, values) * step * scale, rtol=1e-4, atol=1e-4)
    slope = ft.grad(lambda x: fnp.sum(nn.quantized(fnp.matmul)(x, q)))(x)
    np.testing.assert_allclose(slope, np.broadcast_to((values * scale).sum(-1)[:, None], x.shape), rtol=1e-4, atol=1e-4)


def test_products_with_several_free_axes():
    w = RNG.normal(size=(4, 8, 3)).astype("float32")
    for channel in (0, 2):
        q = nn.quantize(w, nn.QuantizationPolicy(channel_axis=channel, activations=None))
        whole = np.asarray(q.dequantize())
        for text, x in (("mk,akb->mab", X[:, :8]), ("akb,mk->abm", X[:, :8]), ("akb,k->ab", X[0, :8])):
            first = text.startswith("akb")
            found = nn.quantized(lambda w, x: fnp.einsum(text, *((w, x) if first else (x, w))))(q, x)  # noqa: B023
            np.testing.assert_allclose(found, np.einsum(text, *((whole, x) if first else (x, whole))), rtol=1e-4,
                                       atol=1e-4)  # fmt: skip


@pytest.mark.parametrize("policy", ["int8", "int4"])
def test_weights_of_several_layers(policy):
    """vmap gives each layer its own scales, and a scan runs over the layers."""
    layers = fnp.asarray(RNG.normal(size=(3, 17, 17)) * np.array([1.0, 10.0, 0.1])[:, None, None], "float32")
    stacked = ft.vmap(lambda w: nn.quantize(w, policy))(layers)
    each = [nn.quantize(w, policy) for w in layers]
    assert (stacked.shape, stacked.ndim, stacked.T.shape) == ((3, 17, 17), 3, (17, 17, 3))
    np.testing.assert_allclose(stacked.dequantize(), fnp.stack([q.dequantize() for q in each]), rtol=1e-6)
    np.testing.assert_array_equal(stacked.T.dequantize(), stacked.dequantize().T)
    x = fnp.asarray(X[:, :17])
    products = ft.vmap(lambda q: x @ q)(stacked)
    np.testing.assert_allclose(products, fnp.stack([x @ q for q in each]), rtol=1e-5)
    np.testing.assert_allclose(fnp.stack([x, x, x]) @ stacked, products, rtol=1e-5)
    np.testing.assert_allclose(x @ stacked, products, rtol=1e-5)
    assert "preferred_element_type=int32" in str(ft.make_jaxpr(lambda x, q: x @ q)(x, stacked))
    found, _ = ft.lax.scan(lambda c, q: (c @ q, None), x, stacked)
    np.testing.assert_allclose(found, x @ each[0] @ each[1] @ each[2], rtol=1e-4)


def test_shapes_without_values():
    """`eval_shape` gives a template into which a checkpoint is restored."""
    q = ft.eval_shape(nn.quantize, W)
    assert (q.shape, q.ndim, q.nbytes, repr(q)) == ((33, 16), 2, W.size + 4 * 16, "Quantized(float32[33, 16] in int8)")


def test_memory():
    q8, q4 = (nn.quantize(W, policy) for policy in ("int8", "int4"))
    assert q8.nbytes == W.size + 4 * 16 and q4.nbytes == 17 * 16 + 4 * 16  # an odd number of rows is padded
    assert [leaf.dtype.name for leaf in tree.leaves(q4)] == ["int8", "float32"]
    assert (q4.shape, q4.ndim, q4.dtype, q4.T.shape) == ((33, 16), 2, np.float32, (16, 33))


def test_values_of_every_int4():
    w = fnp.asarray(np.arange(-7.0, 8.0)[:, None])
    assert nn.quantize(w, "int4").integers()[:, 0].tolist() == list(range(-7, 8))


def test_other_operations_use_the_floats():
    q = nn.quantize(W)
    f = lambda w, x: (fnp.sum(fnp.tanh(w)), w[3], fnp.concatenate([w, w]), w)
    found, wanted = nn.quantized(f)(q, X), f(q.dequantize(), X)
    for a, b in zip(tree.leaves(found), tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    loop = lambda w, x: ft.lax.scan(lambda c, r: (c + r @ w, None), fnp.zeros(16), x)[0]
    np.testing.assert_allclose(nn.quantized(loop)(q, X), X.sum(0) @ np.asarray(q.dequantize()), rtol=1e-4, atol=1e-4)


def test_scales_that_differ_along_the_sum_use_the_floats():
    q = nn.quantize(W, nn.QuantizationPolicy(channel_axis=0))
    np.testing.assert_allclose(X @ q, X @ np.asarray(q.dequantize()), rtol=1e-4, atol=1e-4)
    kernels = nn.quantize(RNG.normal(size=(4, 3, 3, 3)), nn.QuantizationPolicy(channel_axis=0))
    assert kernels.scale.shape == (4, 1, 1, 1)


def test_gradients_pass_straight_through():
    q = nn.quantize(W)
    np.testing.assert_allclose(
        ft.grad(lambda x: fnp.sum((x @ q) * fnp.arange(16.0)))(X),
        np.tile(np.asarray(q.dequantize(), np.float64) @ np.arange(16.0), (5, 1)), rtol=1e-5, atol=1e-4,
    )  # fmt: skip
    x = np.array([[0.26, -1.0, 0.74], [5.0, 0.55, 2.6]])
    for axis, scale in ((None, 5 / 7), (0, np.array([[1.0], [5.0]]) / 7), (-1, np.array([1 * 5, 1, 2.6]) / 7)):
        want = np.rint(x / scale) * scale
        np.testing.assert_allclose(nn.fake_quantize(x, bits=4, axis=axis), want, rtol=1e-6)
        slope = ft.grad(lambda x, a=axis: fnp.sum(nn.fake_quantize(x, bits=4, axis=a) ** 2))(x)
        np.testing.assert_allclose(slope, 2 * want, rtol=1e-6)
    check_grads(lambda x: nn.fake_quantize(x, scale=1e-9), (fnp.asarray([300.0]),), order=1)  # beyond the last step
    params = {"w": fnp.asarray(W), "b": fnp.ones(3)}
    fake = nn.fake_quantize_params(params, "int4")
    np.testing.assert_allclose(fake["w"], nn.quantize(params, "int4")["w"].dequantize(), rtol=1e-6)
    assert fake["b"] is params["b"]


def test_the_digits_model_keeps_its_accuracy():
    """A network of two layers is trained here and tested on 450 digits outside of its training set."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    images, labels = (images[order] / 16).astype("float32"), labels[order]
    train, test = slice(450, None), slice(0, 450)
    draw = np.random.default_rng(1)
    sizes = (64, 64, 10)
    params = [((draw.normal(size=s) / np.sqrt(s[0])).astype("float32"), np.zeros(s[1], "float32"))
              for s in itertools.pairwise(sizes)]  # fmt: skip

    def model(params, x):
        for w, b in params[:-1]:
            x = nn.relu(x @ w + b)
        return x @ params[-1][0] + params[-1][1]

    def loss(params, x, y):
        return -fnp.mean(fnp.take_along_axis(nn.log_softmax(model(params, x)), y[:, None], 1))

    def fit(params, loss, count):
        def step(params, _):
            slopes = ft.grad(loss)(params, images[train], labels[train])
            return tree.map(lambda p, g: p - 0.8 * g, params, slopes), None

        return ft.jit(lambda params: ft.lax.scan(step, params, None, length=count)[0])(params)

    accuracy = lambda params: 100 * np.mean(np.argmax(model(params, images[test]), 1) == labels[test])
    size = lambda params: sum(x.nbytes for x in tree.leaves(params))
    trained = fit(params, loss, 200)
    exact = accuracy(trained)
    assert exact > 94
    for policy, points in (("int8", 0.5), ("int8_weights", 0.5), ("int4", 2.5)):
        small = nn.quantize(trained, policy)
        assert abs(accuracy(small) - exact) <= points, policy
        assert size(small) < size(trained) * (0.28 if "8" in policy else 0.17)
    aware = fit(trained, lambda params, x, y: loss(nn.fake_quantize_params(params, "int4"), x, y), 60)
    assert abs(accuracy(nn.quantize(aware, "int4")) - exact) <= 1.5


@pytest.mark.parametrize(("error", "text", "make"), [
    (errors.DtypeError, r"params\['w'\], i32\[2,2\]: not an array of floats",
     lambda: nn.quantize({"w": fnp.ones((2, 2), int)}, nn.QuantizationPolicy(select=lambda *_: True))),
    (errors.DtypeError, "not an array of floats",
     lambda: nn.quantize({"w": "text"}, nn.QuantizationPolicy(select=lambda *_: True))),
    (errors.ShapeError, r"params\['b'\], f32\[3\]: fewer than two dimensions",
     lambda: nn.quantize({"b": fnp.ones(3)}, nn.QuantizationPolicy(select=lambda path, _: "b" in path))),
    (errors.NonFiniteError, r"params\[1\], f32\[2,2\]: it holds infinities or NaN",
     lambda: nn.quantize([fnp.ones((2, 2)), fnp.full((2, 2), np.inf)])),
    (errors.ShapeError, "it has no axis 5", lambda: nn.quantize(W, nn.QuantizationPolicy(channel_axis=5))),
    (errors.ArgumentError, "'int8', 'int8_weights'", lambda: nn.quantize(W, "int7")),
    (errors.ArgumentError, "bits=3", lambda: nn.quantize(W, nn.QuantizationPolicy(bits=3))),
    (errors.ArgumentError, "activations", lambda: nn.quantize(W, nn.QuantizationPolicy(activations="static"))),
    (errors.DtypeError, "not an array of floats",
     lambda: nn.quantize(nn.quantize(W), nn.QuantizationPolicy(select=lambda *_: True))),
    (errors.DtypeError, "which are not floats", lambda: nn.fake_quantize(fnp.arange(3))),
    (errors.ShapeError, "along axis 2", lambda: nn.fake_quantize(X, axis=2)),
    (errors.ArgumentError, "takes a function", lambda: nn.quantized(3)),
    (errors.DtypeError, "is not an array of NumPy", lambda: np.asarray(nn.quantize(W))),
    (errors.DtypeError, r"call \.dequantize\(\) first", lambda: fnp.sin(nn.quantize(W))),
])  # fmt: skip
def test_bad_input(error, text, make):
    with pytest.raises(error, match=text):
        make()


@pytest.mark.parametrize("way", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_products_of_arrays_with_a_scale_for_each_block(way):
    draw = np.random.default_rng(0)
    a, b = draw.normal(size=(2, 3, 8)), draw.normal(size=(2, 5, 8))
    s, t = draw.uniform(0.5, 2, (2, 3, 2)), draw.uniform(0.5, 2, (2, 5, 4))
    want = np.einsum("bmk,bnk->bmn", a * np.repeat(s, 4, 2), b * np.repeat(t, 2, 2))
    np.testing.assert_allclose(way(nn.scaled_matmul)(a, b, s, t), want, rtol=1e-5)
    # Narrow formats: the product is that of their values.
    narrow = fnp.asarray(a, "float8_e4m3fn"), fnp.asarray(b, "float8_e5m2")
    scales = fnp.exp2(fnp.round(s)).astype("float8_e8m0fnu"), fnp.asarray(t, "float16")
    wide = [np.asarray(v.astype("float64")) for v in (*narrow, *scales)]
    want = np.einsum("bmk,bnk->bmn", wide[0] * np.repeat(wide[2], 4, 2), wide[1] * np.repeat(wide[3], 2, 2))
    found = way(lambda *xs: nn.scaled_matmul(*xs, preferred_element_type="bfloat16"))(*narrow, *scales)
    assert found.dtype == "bfloat16"
    np.testing.assert_allclose(found.astype("float64"), want, rtol=1e-2, atol=1e-2)


def test_blocks_that_do_not_fit():
    ones = fnp.ones
    with pytest.raises(errors.ShapeError, match="scale for each block"):
        nn.scaled_matmul(ones((1, 2, 8)), ones((1, 2, 8)), ones((1, 2, 3)), ones((1, 2, 1)))
    with pytest.raises(errors.ShapeError, match="both are rows"):
        nn.scaled_matmul(ones((1, 2, 8)), ones((1, 8, 2)), ones((1, 2, 1)), ones((1, 8, 1)))
