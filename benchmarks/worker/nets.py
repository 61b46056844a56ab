"""Programs with derivatives: training steps or Jacobians of nets of every common kind.

They are written once for both sides; each is `(api) -> a function of its inputs`.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


def descend(api: SimpleNamespace, loss: Callable, *data: Any) -> Callable:
    """One step of gradient descent in the parameters, the first argument of `loss`."""
    return lambda params: [p - 0.1 * g for p, g in zip(params, api.ft.grad(loss)(params, *data), strict=True)]


def cross_entropy(api: SimpleNamespace, logits: Any, labels: Any) -> Any:
    """The mean cross-entropy of a batch."""
    picked = api.fnp.take_along_axis(api.nn.log_softmax(logits), labels[:, None], axis=-1)
    return -api.fnp.mean(picked)


def dense(api: SimpleNamespace, params: Any, x: Any, activation: Callable) -> Any:
    """A multilayer perceptron."""
    *hidden, last = list(zip(params[::2], params[1::2], strict=True))
    for w, b in hidden:
        x = activation(x @ w + b)
    return x @ last[0] + last[1]


def mlp_adam(api: SimpleNamespace) -> Callable:
    """A dense net with GELU, one step of Adam."""
    fnp = api.fnp

    def loss(params, x, labels):
        return cross_entropy(api, dense(api, params, x, api.nn.gelu), labels)

    def step(x, labels, *params):
        grads = api.ft.grad(loss)(list(params), x, labels)
        new = []
        for p, g in zip(params, grads, strict=True):
            m, v = 0.1 * g, 0.001 * g * g  # the first step, whose averages begin at zero
            new += [p - 1e-3 * (m / 0.1) / (fnp.sqrt(v / 0.001) + 1e-8), m, v]
        return new

    return step


def conv(api: SimpleNamespace, x: Any, w: Any, groups: int = 1) -> Any:
    """A convolution of stride 1 that keeps the size."""
    names = ("NCHW", "OIHW", "NCHW")
    return api.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=names, feature_group_count=groups)


def resnet_block(api: SimpleNamespace) -> Callable:
    """A step of a residual block: two convolutions with batch normalisation, and a skip connection."""
    fnp = api.fnp

    def norm(x, scale, shift):
        mean = fnp.mean(x, axis=(0, 2, 3), keepdims=True)
        variance = fnp.mean((x - mean) ** 2, axis=(0, 2, 3), keepdims=True)
        return (x - mean) * api.lax.rsqrt(variance + 1e-5) * scale[:, None, None] + shift[:, None, None]

    def loss(params, x):
        w1, w2, s1, b1, s2, b2 = params
        hidden = api.nn.relu(norm(conv(api, x, w1), s1, b1))
        return fnp.mean(api.nn.relu(x + norm(conv(api, hidden, w2), s2, b2)) ** 2)

    return lambda x, *params: descend(api, loss, x)(params)


def separable_conv(api: SimpleNamespace) -> Callable:
    """A depthwise convolution and one of 1 x 1."""

    def loss(params, x):
        hidden = api.nn.relu(conv(api, x, params[0], groups=x.shape[1]))
        return api.fnp.mean(conv(api, hidden, params[1]) ** 2)

    return lambda x, *params: descend(api, loss, x)(params)


def attend(api: SimpleNamespace, q: Any, k: Any, v: Any) -> Any:
    """Causal attention over the second to last axis."""
    fnp, length = api.fnp, q.shape[-2]
    scores = fnp.einsum("bhqd,bhkd->bhqk", q, k) * q.shape[-1] ** -0.5
    scores = fnp.where(fnp.tril(fnp.ones((length, length), bool)), scores, -fnp.inf)
    return fnp.einsum("bhqk,bhkd->bhqd", api.nn.softmax(scores), v)


def causal_attention(api: SimpleNamespace) -> Callable:
    """Causal attention, forward and backward."""
    return lambda *qkv: api.ft.grad(lambda qkv: api.fnp.sum(attend(api, *qkv) ** 2))(qkv)


def layer_norm(api: SimpleNamespace, x: Any, scale: Any) -> Any:
    """Layer norm over the last axis."""
    mean = api.fnp.mean(x, axis=-1, keepdims=True)
    variance = api.fnp.var(x, axis=-1, keepdims=True)
    return (x - mean) * api.lax.rsqrt(variance + 1e-5) * scale


def transformer_block(api: SimpleNamespace) -> Callable:
    """Attention and a dense net, each behind a layer normalisation."""
    heads = 4

    def loss(params, x):
        w_in, w_out, up, down, s1, s2 = params
        split = lambda y: y.reshape(*y.shape[:2], heads, -1).transpose(0, 2, 1, 3)
        q, k, v = (split(part) for part in api.fnp.split(layer_norm(api, x, s1) @ w_in, 3, axis=-1))
        x = x + attend(api, q, k, v).transpose(0, 2, 1, 3).reshape(x.shape) @ w_out
        x = x + api.nn.gelu(layer_norm(api, x, s2) @ up) @ down
        return api.fnp.mean(x**2)

    return lambda x, *params: descend(api, loss, x)(params)


def lstm(api: SimpleNamespace) -> Callable:
    """An LSTM as a scan over time, forward and backward."""
    nn, fnp = api.nn, api.fnp

    def loss(params, xs):
        w, u, b = params

        def cell(state, x):
            h, c = state
            i, f, g, o = fnp.split(x @ w + h @ u + b, 4, axis=-1)
            c = nn.sigmoid(f) * c + nn.sigmoid(i) * fnp.tanh(g)
            h = nn.sigmoid(o) * fnp.tanh(c)
            return (h, c), h

        zero = fnp.zeros((xs.shape[1], u.shape[0]))
        return fnp.mean(api.lax.scan(cell, (zero, zero), xs)[1] ** 2)

    return lambda xs, *params: descend(api, loss, xs)(params)


def gru_forward(api: SimpleNamespace) -> Callable:
    """The last state of a GRU, by a scan over time."""
    nn, fnp = api.nn, api.fnp

    def run(xs, w, u):
        def cell(h, x):
            xr, xz, xn = fnp.split(x @ w, 3, axis=-1)
            hr, hz, hn = fnp.split(h @ u, 3, axis=-1)
            z, n = nn.sigmoid(xz + hz), fnp.tanh(xn + nn.sigmoid(xr + hr) * hn)
            return (1 - z) * n + z * h, None

        return api.lax.scan(cell, fnp.zeros((xs.shape[1], u.shape[0])), xs)[0]

    return run


def embedding(api: SimpleNamespace) -> Callable:
    """Rows of a table looked up and averaged; its gradient is a scatter."""

    def loss(params, words, labels):
        table, w = params
        return cross_entropy(api, api.fnp.mean(table[words], axis=1) @ w, labels)

    return lambda words, labels, *params: descend(api, loss, words, labels)(params)


def per_sample_grads(api: SimpleNamespace) -> Callable:
    """One gradient for each example of the batch."""

    def loss(params, x, label):
        return cross_entropy(api, dense(api, params, x[None], api.fnp.tanh), label[None])

    each = api.ft.vmap(api.ft.grad(loss), in_axes=(None, 0, 0))
    return lambda x, labels, *params: each(list(params), x, labels)


def hessian(api: SimpleNamespace) -> Callable:
    """Hessian of a small net's loss with respect to its first weights."""

    def loss(w, b, rest, x, y):
        return api.fnp.mean((dense(api, [w, b, *rest], x, api.fnp.tanh)[:, 0] - y) ** 2)

    return lambda x, y, w, b, *rest: api.ft.hessian(loss)(w, b, rest, x, y)


def jacobian(api: SimpleNamespace) -> Callable:
    """Jacobian of a net's output with respect to its input, in reverse mode."""
    return lambda x, *params: api.ft.jacrev(lambda x: dense(api, params, x, api.fnp.tanh))(x)


def kmeans_step(api: SimpleNamespace) -> Callable:
    """Points go to the nearest centre, centres to the mean of their points."""
    fnp = api.fnp

    def step(points, centres):
        distances = fnp.sum((points[:, None] - centres) ** 2, axis=-1)
        nearest = fnp.argmin(distances, axis=1)
        sums = fnp.zeros_like(centres).at[nearest].add(points)
        counts = fnp.zeros(len(centres)).at[nearest].add(1.0)
        return sums / fnp.maximum(counts, 1)[:, None], nearest

    return step


PROGRAMS = {
    each.__name__: each
    for each in (
        mlp_adam, resnet_block, separable_conv, causal_attention, transformer_block, lstm, gru_forward, embedding,
        per_sample_grads, hessian, jacobian, kmeans_step,
    )
}  # fmt: skip
