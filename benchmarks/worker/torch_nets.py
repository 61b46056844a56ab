"""The programs of `nets.py` for PyTorch.

Each is `(compile, *tensors) -> a function without arguments`, where `compile` is `torch.compile` or the identity.
"""

# ruff: noqa: D103  (described there)
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call, grad, jacrev, vmap

Work = Callable[[], object]


def descend(compile: Callable, loss: Callable, params: list[Tensor], *data: Tensor) -> Work:
    """One step of gradient descent."""
    params = [p.requires_grad_() for p in params]
    loss = compile(loss)

    def step() -> list[Tensor]:
        grads = torch.autograd.grad(loss(params, *data), params)
        with torch.no_grad():
            return [p - 0.1 * g for p, g in zip(params, grads, strict=True)]

    return step


def dense(params: list[Tensor], x: Tensor, activation: Callable) -> Tensor:
    """A multilayer perceptron."""
    *hidden, last = list(zip(params[::2], params[1::2], strict=True))
    for w, b in hidden:
        x = activation(x @ w + b)
    return x @ last[0] + last[1]


def mlp_adam(compile: Callable, x: Tensor, labels: Tensor, *params: Tensor) -> Work:
    weights = [p.requires_grad_() for p in params]
    adam = torch.optim.Adam(weights, fused=True)
    gelu = lambda x: F.gelu(x, approximate="tanh")
    loss = compile(lambda params, x: F.cross_entropy(dense(params, x, gelu), labels))

    def step() -> None:
        adam.zero_grad()
        loss(weights, x).backward()
        adam.step()

    return step


def resnet_block(compile: Callable, x: Tensor, *params: Tensor) -> Work:
    def loss(params, x):
        w1, w2, s1, b1, s2, b2 = params
        norm = lambda x, scale, shift: F.batch_norm(x, None, None, scale, shift, training=True)
        hidden = torch.relu(norm(F.conv2d(x, w1, padding=1), s1, b1))
        return (torch.relu(x + norm(F.conv2d(hidden, w2, padding=1), s2, b2)) ** 2).mean()

    return descend(compile, loss, list(params), x)


def separable_conv(compile: Callable, x: Tensor, *params: Tensor) -> Work:
    def loss(params, x):
        hidden = torch.relu(F.conv2d(x, params[0], padding=1, groups=x.shape[1]))
        return (F.conv2d(hidden, params[1]) ** 2).mean()

    return descend(compile, loss, list(params), x)


def causal_attention(compile: Callable, *qkv: Tensor) -> Work:
    leaves = [a.requires_grad_() for a in qkv]
    loss = compile(lambda q, k, v: (F.scaled_dot_product_attention(q, k, v, is_causal=True) ** 2).sum())
    return lambda: torch.autograd.grad(loss(*leaves), leaves)


def transformer_block(compile: Callable, x: Tensor, *params: Tensor) -> Work:
    def loss(params, x):
        w_in, w_out, up, down, s1, s2 = params
        width = x.shape[-1:]
        split = lambda y: y.unflatten(-1, (4, -1)).transpose(1, 2)
        q, k, v = (split(part) for part in (F.layer_norm(x, width, s1) @ w_in).chunk(3, -1))
        x = x + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape) @ w_out
        x = x + F.gelu(F.layer_norm(x, width, s2) @ up, approximate="tanh") @ down
        return (x**2).mean()

    return descend(compile, loss, list(params), x)


def lstm(compile: Callable, xs: Tensor, w: Tensor, u: Tensor, b: Tensor) -> Work:
    """PyTorch's LSTM, which is faster than a loop."""
    own = torch.nn.LSTM(xs.shape[-1], u.shape[0])
    params = [p.requires_grad_() for p in (w.T.contiguous(), u.T.contiguous(), b, torch.zeros_like(b))]
    names = [name for name, _ in own.named_parameters()]

    def loss(params, xs):
        return (functional_call(own, dict(zip(names, params, strict=True)), xs)[0] ** 2).mean()

    return descend(lambda f: f, loss, params, xs)


def gru_forward(compile: Callable, xs: Tensor, w: Tensor, u: Tensor) -> Work:
    own = torch.nn.GRU(xs.shape[-1], u.shape[0], bias=False)
    own.load_state_dict({"weight_ih_l0": w.T.contiguous(), "weight_hh_l0": u.T.contiguous()})

    def run() -> Tensor:
        with torch.no_grad():
            return own(xs)[1]

    return run


def embedding(compile: Callable, words: Tensor, labels: Tensor, *params: Tensor) -> Work:
    def loss(params, words, labels):
        table, w = params
        return F.cross_entropy(F.embedding(words, table).mean(1) @ w, labels)

    return descend(compile, loss, list(params), words, labels)


def per_sample_grads(compile: Callable, x: Tensor, labels: Tensor, *params: Tensor) -> Work:
    def loss(params, x, label):
        return F.cross_entropy(dense(params, x[None], torch.tanh), label[None])

    each = compile(vmap(grad(loss), in_dims=(None, 0, 0)))
    return lambda: each(list(params), x, labels)


def hessian(compile: Callable, x: Tensor, y: Tensor, w: Tensor, b: Tensor, *rest: Tensor) -> Work:
    def loss(w):
        return ((dense([w, b, *rest], x, torch.tanh)[:, 0] - y) ** 2).mean()

    second = compile(torch.func.hessian(loss))
    return lambda: second(w)


def jacobian(compile: Callable, x: Tensor, *params: Tensor) -> Work:
    first = compile(jacrev(lambda x: dense(list(params), x, torch.tanh)))
    return lambda: first(x)


def kmeans_step(compile: Callable, points: Tensor, centres: Tensor) -> Work:
    def step(points, centres):
        nearest = torch.cdist(points, centres).argmin(1)
        sums = torch.zeros_like(centres).index_add(0, nearest, points)
        counts = torch.zeros(len(centres)).index_add(0, nearest, torch.ones(len(points)))
        return sums / counts.clamp(min=1)[:, None], nearest

    step = compile(step)
    return lambda: step(points, centres)


PROGRAMS = {
    each.__name__: each
    for each in (
        mlp_adam, resnet_block, separable_conv, causal_attention, transformer_block, lstm, gru_forward, embedding,
        per_sample_grads, hessian, jacobian, kmeans_step,
    )
}  # fmt: skip
