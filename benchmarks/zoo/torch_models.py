"""Counterparts in PyTorch of the models that are short to write there; parameters and batches are the same arrays."""

# pyright: reportMissingImports=false
from importlib import import_module
from types import SimpleNamespace

import torch
import torch.nn.functional as F

RATE, STEPS = 1e-3, 3


# -------------------------------------------------------------------------------------------------------------- layers
def affine(p, x):
    return x @ p["w"] + p["b"]


def perceptron(layers, x, activation):
    for p in layers[:-1]:
        x = activation(affine(p, x))
    return affine(layers[-1], x)


def conv(p, x, stride=1):
    """A convolution of (batch, channels, height, width), padded as "SAME" pads even sizes."""
    size, kernel = x.shape[-1], p["w"].permute(3, 2, 0, 1)
    total = max((-(-size // stride) - 1) * stride + kernel.shape[-1] - size, 0)
    low, high = total // 2, total - total // 2
    return F.conv2d(F.pad(x, (low, high, low, high)), kernel, p["b"], stride)


def normalize(p, x):
    return F.layer_norm(x, x.shape[-1:], p["scale"], p["shift"])


def transformer(blocks, x, heads, causal):
    n, t, width = x.shape
    for p in blocks:
        qkv = affine(p["qkv"], normalize(p["norms"][0], x)).chunk(3, -1)
        q, k, v = (y.reshape(n, t, heads, -1).transpose(1, 2) for y in qkv)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).reshape(n, t, width)
        x = x + affine(p["out"], mixed)
        x = x + perceptron(p["mlp"], normalize(p["norms"][1], x), lambda y: F.gelu(y, approximate="tanh"))
    return x


def classified(logits, y):
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.long().reshape(-1))


# -------------------------------------------------------------------------------------------------------------- models
def mlp(params, x, y):
    logits = perceptron(params, x, F.relu)
    return logits, classified(logits, y)


def cnn(params, x, y):
    x = x.permute(0, 3, 1, 2)
    for p in params["conv"]:
        x = F.relu(conv(p, x, 2))
    logits = affine(params["out"], x.mean((2, 3)))
    return logits, classified(logits, y)


def vit(params, words, y):
    x = transformer(params["blocks"], affine(params["patches"], words) + params["places"], 2, False)
    logits = affine(params["out"], x.mean(1))
    return logits, classified(logits, y)


def gpt(params, text, following):
    x = params["words"][text.long()] + params["places"]
    logits = affine(params["out"], normalize(params["norm"], transformer(params["blocks"], x, 2, True)))
    return logits, classified(logits, following)


def lstm(params, xs, y):
    h = c = torch.zeros_like(xs[0])
    for x in xs:
        i, f, g, o = affine(params["gates"], torch.cat([x, h], -1)).chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
    logits = affine(params["out"], h)
    return logits, classified(logits, y)


def vae(params, x, noise):
    mean, log_scale = perceptron(params["encoder"], x, F.relu).chunk(2, -1)
    logits = perceptron(params["decoder"], mean + log_scale.exp() * noise, F.relu)
    likelihood = (x * logits - F.softplus(logits)).sum(-1)
    divergence = 0.5 * (mean**2 + (2 * log_scale).exp() - 1 - 2 * log_scale).sum(-1)
    return logits, (divergence - likelihood).mean()


def gan(params, real, noise):
    made = torch.tanh(perceptron(params["generator"], noise, F.leaky_relu))
    of_real, of_made = (perceptron(params["critic"], x, F.leaky_relu) for x in (real, made))
    return of_made, F.softplus(-of_real).mean() + F.softplus(of_made).mean()


def gnn(params, x, senders, receivers, y):
    senders, receivers = senders.long(), receivers.long()
    for p in params["layers"]:
        messages = F.silu(affine(p["message"], torch.cat([x[senders], x[receivers]], -1)))
        received = torch.zeros_like(x).index_add(0, receivers, messages)
        x = x + F.silu(affine(p["update"], torch.cat([x, received], -1)))
    logits = affine(params["out"], x)
    return logits, classified(logits, y)


def dlrm(params, numbers, rows, clicked):
    dense = perceptron(params["bottom"], numbers, F.relu)
    looked = [table[rows[:, i].long()] for i, table in enumerate(params["tables"])]
    vectors = torch.stack([dense, *looked], 1)
    pairs = (vectors @ vectors.transpose(1, 2)).reshape(len(dense), -1)
    logits = perceptron(params["top"], torch.cat([dense, pairs], -1), F.relu)[:, 0]
    return logits, (F.softplus(logits) - clicked * logits).mean()


MODELS = {f.__name__: f for f in (mlp, cnn, vit, gpt, lstm, vae, gan, gnn, dlrm)}


# ---------------------------------------------------------------------------------------------------------------- runs
def shapes(name):
    """Sizes, parameters and batches of a model, which need neither side."""
    import sys

    sys.modules["benchmarks.zoo.side"] = SimpleNamespace(ft=None, lax=None, nn=None, np=SimpleNamespace(tanh=None))
    return import_module(f"benchmarks.zoo.models.{name}")


def load(name):
    """The function `(params, *batch) -> (output, loss)` of a model.

    Raises:
        SystemExit: where it has no counterpart here.
    """
    if name not in MODELS:
        raise SystemExit(f"no counterpart of {name} in torch_models.py")
    return MODELS[name]


def _tensors(node, leaves):
    if isinstance(node, dict):
        return {k: _tensors(v, leaves) for k, v in node.items()}
    if isinstance(node, (list, tuple)):
        return [_tensors(v, leaves) for v in node]
    leaves.append(torch.tensor(node))
    return leaves[-1]


def runs(model, params, batch, side):
    """As `worker.array_runs`: eager, or by torch.compile on the side "compiled"."""
    leaves = []
    tree, batch = _tensors(params, leaves), _tensors(batch, [])
    start = [leaf.clone() for leaf in leaves]
    call = torch.compile(model) if side == "compiled" else model

    def forward():
        with torch.no_grad():
            return call(tree, *batch)[0]

    def step():
        loss = call(tree, *batch)[1]
        slopes = torch.autograd.grad(loss, leaves, allow_unused=True)
        with torch.no_grad():
            torch._foreach_add_(
                [p for p, g in zip(leaves, slopes, strict=True) if g is not None],
                [g for g in slopes if g is not None],
                alpha=-RATE,
            )
        return loss

    def losses():
        with torch.no_grad():
            for leaf, value in zip(leaves, start, strict=True):
                leaf.copy_(value)
        for _ in range(STEPS):
            loss = step()
        return float(loss)

    def begin():
        for leaf in leaves:
            leaf.requires_grad_()

    begin()
    return forward, step, lambda last: last, losses, lambda: None
