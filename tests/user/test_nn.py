"""nn: values as in SciPy or the formulas, and derivatives that stay correct for extreme numbers."""

import math

import numpy as np
import pytest
from scipy import special, stats

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import nn
from functorch_like.errors import ArgumentError, DtypeError, ShapeError

RNG = np.random.default_rng(0)
KEY = ft.random.key(0)
GRID = np.array([-1e4, -100.0, -20.0, -3.5, -1.0, -1e-3, 1e-3, 0.7, 1.0, 2.9, 7.0, 20.0, 100.0, 1e4])
FINE = np.array([-6.0, -3.5, -1.5, -0.8, -1e-3, 1e-3, 0.7, 1.5, 2.9, 5.5, 7.0])


def np_softplus(x):
    return np.logaddexp(x, 0)


ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hard_silu": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "sigmoid": special.expit,
    "log_sigmoid": special.log_expit,
    "softplus": np_softplus,
    "soft_sign": lambda x: x / (1 + abs(x)),
    "silu": lambda x: x * special.expit(x),
    "mish": lambda x: x * np.tanh(np_softplus(x)),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "celu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "squareplus": lambda x: (x + np.sqrt(x**2 + 4)) / 2,
    "tanh": np.tanh,
}


def difference(f, x, h=1e-6):
    return (f(x + h) - f(x - h)) / (2 * h)


ANALYTIC = ("sigmoid", "silu", "softplus", "log_sigmoid", "mish", "gelu")  # of complex numbers, too


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    f, exact = getattr(nn, name), ACTIVATIONS[name]
    # 1 + tanh and x + sqrt cancel where x is very negative, in the formula as in the function.
    loose = 1e-9 if name in ("gelu", "squareplus") else 1e-13
    np.testing.assert_allclose(f(GRID), exact(GRID), rtol=1e-13, atol=loose)
    np.testing.assert_allclose(f(GRID.astype(np.float32)), exact(GRID), rtol=1e-5, atol=1e-3 if loose > 1e-12 else 1e-7)
    np.testing.assert_array_equal(np.asarray(ft.jit(f)(GRID)), np.asarray(f(GRID)))
    np.testing.assert_allclose(ft.vmap(ft.grad(f))(FINE), difference(exact, FINE), rtol=1e-7, atol=1e-8)
    slopes = np.asarray(ft.vmap(ft.grad(f))(GRID))
    assert np.isfinite(slopes).all() and np.isfinite(ft.vmap(ft.grad(ft.grad(f)))(GRID)).all()
    assert f(1).dtype == np.float32 or name in ("relu", "hard_tanh")
    if name == "tanh":  # NumPy's function
        return
    np.testing.assert_array_equal(f(np.array([True, False])), f(np.array([1, 0])))
    if name not in ANALYTIC:
        with pytest.raises(DtypeError):
            f(np.array([1j]))


@pytest.mark.parametrize("name", [n for n in ACTIVATIONS if n != "tanh"])
def test_nan_stays(name):
    assert math.isnan(getattr(nn, name)(math.nan).item())


def test_slopes_at_kinks():
    assert ft.grad(nn.relu)(0.0).item() == 0 and ft.grad(nn.relu6)(6.0).item() == 0
    assert ft.grad(nn.softplus)(0.0).item() == 0.5 and ft.grad(ft.grad(nn.softplus))(0.0).item() == 0.25
    assert ft.grad(nn.elu)(0.0).item() == 1 and ft.grad(nn.sigmoid)(0.0).item() == 0.25


def test_softplus_at_the_ends():
    ends = np.array([-np.inf, -1e4, 1e4, np.inf])
    assert nn.softplus(ends).tolist() == [0, 0, 1e4, np.inf]
    assert ft.vmap(ft.grad(nn.softplus))(ends).tolist() == [0, 0, 1, 1]
    assert nn.log_sigmoid(ends).tolist() == [-np.inf, -1e4, 0, 0]
    assert ft.grad(nn.gelu)(np.float32(1e15)).item() == 1 and nn.softplus(np.float32(1e4)).item() == 1e4


def test_integers():
    assert nn.relu(np.array([-1, 2], np.int8)).dtype == np.int8 and nn.relu6(fnp.arange(9)).tolist()[-3:] == [6, 6, 6]
    assert nn.sigmoid(np.array([0, 0])).tolist() == [0.5, 0.5]


def test_parameters_of_activations():
    x = fnp.asarray(FINE)
    np.testing.assert_allclose(nn.elu(x, alpha=0.5), np.where(FINE > 0, FINE, 0.5 * np.expm1(np.minimum(FINE, 0))))
    np.testing.assert_allclose(nn.celu(x, 0.5), np.where(FINE > 0, FINE, 0.5 * np.expm1(np.minimum(FINE, 0) / 0.5)))
    np.testing.assert_allclose(nn.leaky_relu(x, negative_slope=0.1), np.where(FINE > 0, FINE, 0.1 * FINE), rtol=1e-15)
    np.testing.assert_allclose(nn.leaky_relu(x, fnp.ones(len(FINE), "float64")), FINE)
    np.testing.assert_allclose(nn.squareplus(x, b=1), (FINE + np.sqrt(FINE**2 + 1)) / 2)
    np.testing.assert_allclose(nn.gelu(x, approximate=False), FINE * stats.norm.cdf(FINE), rtol=1e-13)
    assert abs(ft.grad(lambda a: nn.elu(-1.0, a))(1.0).item() - math.expm1(-1)) < 1e-6


def test_glu():
    x = RNG.normal(size=(3, 4))
    np.testing.assert_allclose(nn.glu(x), x[:, :2] * special.expit(x[:, 2:]))
    with pytest.raises(ShapeError, match="halve"):
        nn.glu(x, axis=0)


# ------------------------------------------------------------------------------------------------------------ softmaxes
X = RNG.normal(size=(3, 4, 5)) * 3
MASK = RNG.uniform(size=(3, 4, 5)) < 0.6
MASK[0, 0] = False


@pytest.mark.parametrize("axis", [-1, 0, (0, 2), None])
def test_softmaxes(axis):
    np.testing.assert_allclose(nn.softmax(X, axis), special.softmax(X, axis), rtol=1e-13)
    np.testing.assert_allclose(nn.log_softmax(X, axis), special.log_softmax(X, axis), rtol=1e-13)
    np.testing.assert_allclose(nn.logsumexp(X, axis), special.logsumexp(X, axis), rtol=1e-13)
    np.testing.assert_allclose(
        nn.logsumexp(X, axis, keepdims=True), special.logsumexp(X, axis, keepdims=True), rtol=1e-13
    )


@pytest.mark.parametrize("shift", [0.0, 1e4, -1e4])
def test_softmaxes_do_not_overflow(shift):
    x = X.astype(np.float32) + np.float32(shift)
    np.testing.assert_allclose(nn.softmax(x), special.softmax(x.astype(float), -1), rtol=1e-5)
    np.testing.assert_allclose(nn.log_softmax(x), special.log_softmax(x.astype(float), -1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(nn.logsumexp(x, -1), special.logsumexp(x.astype(float), -1), rtol=1e-6)


FUNCTIONS = {
    "softmax": nn.softmax,
    "log_softmax": nn.log_softmax,
    "logsumexp": lambda x: nn.logsumexp(x, -1, keepdims=True),
    "softmax over two": lambda x: nn.softmax(x, (0, 2)),
    "logsumexp with factors": lambda x: nn.logsumexp(x, -1, b=np.abs(X) + 0.1, keepdims=True),
    "standardize": nn.standardize,
    "standardize some": lambda x: nn.standardize(x, (0, 1, 2), where=MASK),
    "masked softmax": lambda x: nn.softmax(x, where=MASK),
    "masked logsumexp": lambda x: fnp.where(
        MASK.any(-1, keepdims=True), nn.logsumexp(x, -1, keepdims=True, where=MASK), 0.0
    ),
    "masked log_softmax": lambda x: fnp.where(MASK, nn.log_softmax(x, where=MASK), 0.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_slopes_of_softmaxes(name):
    f = FUNCTIONS[name]
    v, weights = RNG.normal(size=X.shape), RNG.normal(size=X.shape)
    loss = lambda x: fnp.sum(f(x) * weights)
    slope = np.asarray(ft.grad(loss)(X))
    h = 1e-6
    expected = (float(loss(X + h * v)) - float(loss(X - h * v))) / (2 * h)
    np.testing.assert_allclose((slope * v).sum(), expected, rtol=1e-6, atol=1e-7)
    _, tangent = ft.jvp(loss, (X,), (v,))
    np.testing.assert_allclose(tangent, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(ft.jit(ft.vmap(nn.softmax))(X), nn.softmax(X), rtol=1e-13)


def test_masks():
    x = np.where(MASK, X, 1e30)
    expected = np.where(MASK.any(-1, keepdims=True), special.softmax(np.where(MASK, X, -1e30), -1), 0) * MASK
    np.testing.assert_allclose(nn.softmax(x, where=MASK), expected, rtol=1e-13)
    np.testing.assert_array_equal(nn.softmax(np.full(3, np.nan), where=np.zeros(3, bool)), np.zeros(3))
    got = np.asarray(nn.log_softmax(x, where=MASK))
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(got, np.log(expected), rtol=1e-12)
    slope = np.asarray(ft.grad(lambda x: fnp.sum(nn.softmax(x, where=MASK) ** 2))(x))
    assert np.isfinite(slope).all() and not slope[~MASK].any()
    np.testing.assert_array_equal(nn.logsumexp(x, -1, where=MASK)[0, 0], -np.inf)
    with pytest.raises(DtypeError, match="booleans"):
        nn.softmax(X, where=X)


def test_infinite_rows():
    low = np.array([-np.inf, -np.inf])
    assert nn.logsumexp(low).item() == -np.inf and ft.grad(nn.logsumexp)(low).tolist() == [0, 0]
    assert ft.grad(nn.logsumexp)(np.array([-np.inf, 1.0])).tolist() == [0, 1]
    assert (
        nn.logsumexp(np.array([np.inf, 1.0])).item() == np.inf
        and nn.logsumexp(np.zeros((2, 0)), 1).tolist() == [-np.inf] * 2
    )
    assert nn.softmax(np.array([-np.inf, 0.0, 0.0])).tolist() == [0, 0.5, 0.5]
    slope = ft.grad(lambda x: nn.log_softmax(x)[1])(np.array([-np.inf, 0.0, 0.0]))
    assert slope.tolist() == [0, 0.5, -0.5]


def test_logsumexp_with_factors():
    b = RNG.normal(size=X.shape)
    value, sign = nn.logsumexp(X, 1, b=b, return_sign=True)
    expected, expected_sign = special.logsumexp(X, 1, b=b, return_sign=True)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_array_equal(sign, expected_sign)
    assert nn.logsumexp(np.array([1000.0, np.inf]), b=np.array([1.0, 0.0])).item() == 1000
    assert [v.item() for v in nn.logsumexp(np.array([0.0, 0.0]), b=np.array([1.0, -1.0]), return_sign=True)] == [
        -np.inf,
        0,
    ]


def test_axes_that_are_not_there():
    for f in (nn.softmax, nn.log_softmax, nn.logsumexp, nn.standardize):
        with pytest.raises(ShapeError, match="rank 3"):
            f(X, axis=3)
        with pytest.raises(ShapeError, match="once"):
            f(X, axis=(0, -3))


# ------------------------------------------------------------------------------------------------- one_hot, standardize
def test_one_hot():
    np.testing.assert_array_equal(nn.one_hot(np.array([[0, 2], [3, -1]]), 3), np.eye(4, 3)[[[0, 2], [3, 3]]])
    assert nn.one_hot(fnp.arange(4), 3, axis=0, dtype="int8").shape == (3, 4)
    assert nn.one_hot(np.uint8(200), 300, dtype=bool).tolist().index(True) == 200
    assert nn.one_hot(1, 2).tolist() == [0, 1]
    with pytest.raises(DtypeError, match="integers"):
        nn.one_hot(1.5, 3)
    with pytest.raises(ArgumentError, match="num_classes"):
        nn.one_hot(1, fnp.asarray(3.0))


def test_standardize():
    far = (RNG.normal(size=(4, 100)) + 1e4).astype(np.float32)
    got = np.asarray(nn.standardize(far), np.float64)
    assert abs(got.mean(-1)).max() < 1e-2 and abs(got.std(-1) - 1).max() < 1e-2
    np.testing.assert_allclose(nn.standardize(X, mean=1.0, variance=4.0, epsilon=0.0), (X - 1) / 2)


# ------------------------------------------------------------------------------------------------------------ attention
def attention(q, k, v, bias=0.0, allowed=True, scale=None):
    groups = q.shape[2] // k.shape[2]
    k, v = k.repeat(groups, 2), v.repeat(groups, 2)
    logits = np.einsum("btnh,bsnh->bnts", q, k) * (q.shape[-1] ** -0.5 if scale is None else scale) + bias
    allowed = np.broadcast_to(allowed, logits.shape)
    weights = np.where(allowed, np.exp(logits - logits.max(-1, keepdims=True)), 0)
    total = weights.sum(-1, keepdims=True)
    return np.einsum("bnts,bsnh->btnh", weights / np.where(total, total, 1), v)


Q, K, V = RNG.normal(size=(2, 4, 6, 8)), RNG.normal(size=(2, 5, 3, 8)), RNG.normal(size=(2, 5, 3, 7))


def test_attention():
    bias, mask = RNG.normal(size=(6, 1, 5)), RNG.uniform(size=(2, 1, 4, 5)) < 0.5
    mask[0, 0, 1] = False
    np.testing.assert_allclose(nn.dot_product_attention(Q, K, V), attention(Q, K, V), atol=1e-12)
    np.testing.assert_allclose(nn.dot_product_attention(Q, K, V, scale=0.1), attention(Q, K, V, scale=0.1), atol=1e-12)
    got = nn.dot_product_attention(Q, K, V, bias, mask)
    np.testing.assert_allclose(got, attention(Q, K, V, bias, mask), atol=1e-12)
    assert not np.asarray(got)[0, 1].any()
    causal = np.arange(4)[:, None] >= np.arange(5)
    np.testing.assert_allclose(
        nn.dot_product_attention(Q, K, V, is_causal=True), attention(Q, K, V, 0, causal), atol=1e-12
    )
    both = nn.dot_product_attention(Q, K, V, mask=mask, is_causal=True)
    np.testing.assert_allclose(both, attention(Q, K, V, 0, causal & mask), atol=1e-12)
    np.testing.assert_allclose(nn.dot_product_attention(Q[0], K[0], V[0]), attention(Q, K, V)[0], atol=1e-12)
    np.testing.assert_allclose(ft.vmap(nn.dot_product_attention)(Q, K, V), attention(Q, K, V), atol=1e-12)


def test_slopes_of_attention():
    mask = RNG.uniform(size=(4, 5)) < 0.6
    mask[0] = False
    loss = lambda q, k, v: fnp.sum(fnp.sin(nn.dot_product_attention(q, k, v, mask=mask, is_causal=True)))
    slopes = ft.grad(loss, argnums=(0, 1, 2))(Q, K, V)
    h, args = 1e-6, [Q, K, V]
    for i, slope in enumerate(slopes):
        v = RNG.normal(size=args[i].shape)
        up, down = ([a + s * h * v if j == i else a for j, a in enumerate(args)] for s in (1, -1))
        np.testing.assert_allclose(
            (np.asarray(slope) * v).sum(), (float(loss(*up)) - float(loss(*down))) / (2 * h), rtol=1e-6
        )


def test_attention_of_small_floats():
    q, k, v = (fnp.asarray(x, "bfloat16") for x in (Q, K, V))
    got = nn.dot_product_attention(q, k, v)
    assert got.dtype == q.dtype
    np.testing.assert_allclose(np.asarray(got, np.float64), attention(Q, K, V), atol=0.05)


def test_attention_refuses_what_does_not_fit():
    with pytest.raises(ShapeError, match="multiple of the 3"):
        nn.dot_product_attention(Q[:, :, :4], K, V)
    with pytest.raises(DtypeError, match="one floating dtype"):
        nn.dot_product_attention(Q, K, V.astype(np.float32))
    with pytest.raises(ShapeError, match="fit together"):
        nn.dot_product_attention(Q, K[..., :4], V)
    with pytest.raises(DtypeError, match="mask"):
        nn.dot_product_attention(Q, K, V, mask=np.ones((4, 5)))
    with pytest.raises((ArgumentError, ShapeError), match="broadcast"):
        nn.dot_product_attention(Q, K, V, bias=np.ones((3, 5)))


# --------------------------------------------------------------------------------------------------------- initializers
VARIANCES = {
    "glorot_normal": 2 / 900, "glorot_uniform": 2 / 900, "xavier_normal": 2 / 900, "xavier_uniform": 2 / 900,
    "lecun_normal": 1 / 300, "lecun_uniform": 1 / 300, "he_normal": 2 / 300, "he_uniform": 2 / 300,
    "kaiming_normal": 2 / 300, "kaiming_uniform": 2 / 300,
}  # fmt: skip


@pytest.mark.parametrize("name", VARIANCES)
def test_variances_of_initializers(name):
    x = np.asarray(getattr(nn.initializers, name)()(KEY, (3, 100, 200)), np.float64)
    assert abs(x.var() / VARIANCES[name] - 1) < 0.03 and abs(x.mean()) < 4 * math.sqrt(VARIANCES[name] / x.size)
    bound = (
        math.sqrt(3 * VARIANCES[name]) if "uniform" in name else 2 * math.sqrt(VARIANCES[name]) / 0.87962566103423978
    )
    assert 0.99 * bound < abs(x).max() <= bound * (1 + 1e-6)


def test_other_initializers():
    init = nn.initializers
    assert init.zeros(KEY, (2, 3)).tolist() == [[0] * 3] * 2 and init.ones(KEY, 2, "int32").tolist() == [1, 1]
    assert init.constant(2.5)(KEY, (2,), "float64").tolist() == [2.5, 2.5] and not init.zeros(KEY, ()).weak_type
    assert abs(np.asarray(init.normal(0.1)(KEY, (10_000,))).std() - 0.1) < 3e-3
    uniform = np.asarray(init.uniform(0.5)(KEY, (10_000,)))
    assert uniform.min() >= 0 and uniform.max() < 0.5 and abs(uniform.mean() - 0.25) < 0.01
    assert abs(np.asarray(init.truncated_normal(3.0, lower=-1.0, upper=1.0)(KEY, (999,)))).max() <= 3
    assert init.he_normal(dtype="bfloat16")(KEY, (4, 5)).dtype.name == "bfloat16"
    assert init.he_normal()(KEY, (4, 5), "float64").dtype == np.float64
    batched = np.asarray(init.lecun_normal(batch_axis=0)(KEY, (50, 100, 20)))
    assert abs(batched.var() * 100 - 1) < 0.03
    normal = init.variance_scaling(1.0, "fan_out", "normal", in_axis=1, out_axis=0)(KEY, (100, 50))
    assert abs(np.asarray(normal).var() * 100 - 1) < 0.1
    for shape, ins, outs, fan in [  # axes of both inputs and outputs, as tables of embeddings have
        ((100, 50), 0, 0, 50),
        ((5000,), 0, 0, 1),
        ((20, 30, 10), (0, 1), (1, 2), 20),
        ((10, 20, 30), 0, 0, 600),
    ]:
        drawn = init.variance_scaling(1.0, "fan_in", "normal", in_axis=ins, out_axis=outs)(KEY, shape)
        assert abs(np.asarray(drawn).var() * fan - 1) < 0.1
    assert ft.jit(init.he_normal(), static_argnums=1)(KEY, (4, 5)).tolist() == init.he_normal()(KEY, (4, 5)).tolist()
    with pytest.raises(ArgumentError, match="fan_sum"):
        init.variance_scaling(1.0, "fan_sum", "normal")
    with pytest.raises(ArgumentError, match="cauchy"):
        init.variance_scaling(1.0, "fan_in", "cauchy")
    with pytest.raises(ShapeError, match="biases"):
        init.he_normal()(KEY, (5,))


# -------------------------------------------------------------------------------------------------------------- kernels
@pytest.mark.parametrize("f", [nn.relu, nn.softplus, nn.gelu, nn.softmax, nn.log_softmax, nn.logsumexp, nn.standardize])
def test_each_call_is_one_kernel(f):
    from functorch_like.backends.xla import counters

    x = fnp.asarray(X)
    for _ in range(3):  # NumPy may compute the first two
        f(x)
    before = counters.compiles, counters.misses
    f(x)
    assert (counters.compiles, counters.misses) == before
    f(fnp.asarray(X[:2]))
    assert counters.compiles - before[0] <= 1 and counters.misses - before[1] <= 2


# ------------------------------------------------------------------------------------------------------ complex numbers
Z = (lambda draw: draw.normal(size=(3, 4)) * 3 + 2j * draw.normal(size=(3, 4)))(np.random.default_rng(5))


@pytest.mark.parametrize("shift", [0.0, 900.0, -900.0])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_softmax_and_logsumexp_of_complex_numbers(axis, shift):
    z = Z + shift
    total = special.logsumexp(Z, axis, keepdims=True)
    weights = np.exp(Z - total)
    np.testing.assert_allclose(nn.logsumexp(z, axis, keepdims=True), total + shift, rtol=1e-12)
    np.testing.assert_allclose(nn.softmax(z, axis), weights, rtol=1e-10)
    np.testing.assert_allclose(np.exp(nn.log_softmax(z, axis)), weights, rtol=1e-10)
    np.testing.assert_allclose(ft.jit(lambda z: nn.softmax(z, axis))(z.astype("complex64")), weights, rtol=2e-3)


def test_options_of_logsumexp_of_complex_numbers():
    factors, mask = np.array([1.0, -2.0, 0.5j, 0.0]), Z.real > -1
    size, phase = nn.logsumexp(Z, -1, b=factors, return_sign=True)
    total = np.sum(factors * np.exp(Z), -1)
    np.testing.assert_allclose(size, np.log(np.abs(total)), rtol=1e-12)
    np.testing.assert_allclose(phase, total / np.abs(total), rtol=1e-12)
    assert size.dtype == np.float64
    np.testing.assert_allclose(nn.logsumexp(X, -1, b=1j), special.logsumexp(X, -1) + 0.5j * np.pi, rtol=1e-12)
    masked = np.sum(np.where(mask, np.exp(Z), 0), -1)
    np.testing.assert_allclose(nn.logsumexp(Z, -1, where=mask), np.log(masked), rtol=1e-12)
    weights = np.where(mask, np.exp(Z) / masked[:, None], 0)
    np.testing.assert_allclose(nn.softmax(Z, -1, where=mask), weights, rtol=1e-12)
    assert nn.logsumexp(Z[:0]).item() == -np.inf


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (nn.sigmoid, lambda z: 1 / (1 + np.exp(-z))),
        (nn.silu, lambda z: z / (1 + np.exp(-z))),
        (nn.identity, lambda z: z),
        (nn.glu, lambda z: z[:, :2] / (1 + np.exp(-z[:, 2:]))),
        (nn.softplus, lambda z: np.log(1 + np.exp(z))),
        (nn.log_sigmoid, lambda z: -np.log(1 + np.exp(-z))),
        (nn.mish, lambda z: z * np.tanh(np.log(1 + np.exp(z)))),
        (nn.gelu, lambda z: 0.5 * z * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)))),
        (ft.scipy.special.expit, lambda z: 1 / (1 + np.exp(-z))),
        (ft.scipy.special.logit, lambda z: np.log(z) - np.log(1 - z)),
    ],
)
def test_analytic_activations(f, expected):
    np.testing.assert_allclose(f(Z), expected(Z), rtol=1e-12)
    np.testing.assert_allclose(ft.jit(f)(Z), expected(Z), rtol=1e-12)


def test_exact_gelu_takes_real_numbers():
    with pytest.raises(DtypeError, match="real numbers"):
        nn.gelu(Z, approximate=False)


@pytest.mark.parametrize(
    "f", [nn.sigmoid, nn.silu, nn.softplus, nn.mish, nn.gelu, nn.softmax, nn.log_softmax, nn.logsumexp]
)
def test_derivatives_by_complex_numbers(f):
    scalar, step = lambda z: fnp.sum(f(z) ** 2), 1e-6
    found = ft.grad(scalar, holomorphic=True)(Z)
    for at in np.ndindex(2, 2):
        e = np.zeros(Z.shape)
        e[at] = step
        slope = (complex(scalar(Z + e)) - complex(scalar(Z - e))) / (2 * step)
        np.testing.assert_allclose(found[at], slope, rtol=1e-6, atol=1e-7)


def test_gradients_divide_sums_not_elements():
    x = np.random.default_rng(0).normal(size=(6, 7)).astype(np.float32)
    for fun in (nn.softmax, nn.standardize):
        text = ft.jit(ft.grad(lambda x, fun=fun: (fun(x) ** 2).sum())).lower(x).as_text()
        divisions = [line for line in text.splitlines() if "stablehlo.divide" in line or "stablehlo.rsqrt" in line]
        assert divisions and not any("tensor<6x7xf32>" in line for line in divisions), fun


def test_softmax_is_the_quotient():
    x = np.random.default_rng(0).normal(size=(6, 700)).astype(np.float32) * 4
    wide = np.exp(x.astype(float) - x.max(1, keepdims=True))
    np.testing.assert_allclose(nn.softmax(x), wide / wide.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_array_equal(nn.softmax(np.array([-np.inf, 0.0, -np.inf])), [0, 1, 0])
    assert np.isnan(nn.softmax(np.array([np.inf, 0.0]))).any()


@pytest.mark.parametrize("epsilon", [1e-5, np.full((3, 1), 1e-3, np.float32)], ids=["number", "array"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("given", [(), ("mean",), ("variance",), ("mean", "variance")])
def test_standardize_with_any_arguments(given, masked, epsilon):
    x = np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32)
    mask = np.arange(8) % 3 > 0 if masked else np.ones(8, bool)
    mean = x[:, mask].mean(1, keepdims=True) if "mean" not in given else np.float32(0.3)
    variance = ((x - mean)[:, mask] ** 2).mean(1, keepdims=True) if "variance" not in given else np.full((1, 8), 2.0)
    numbers = {"mean": mean, "variance": variance}
    got = nn.standardize(x, epsilon=epsilon, where=mask if masked else None, **{name: numbers[name] for name in given})
    np.testing.assert_allclose(got, (x - mean) / np.sqrt(variance + epsilon), rtol=1e-4, atol=1e-5)
