"""Layers that several models share."""

import math
from itertools import pairwise

from benchmarks.zoo.side import lax, nn, np


def weights(draw, *shape):
    """Return a kernel whose last axis is that of the outputs."""
    return (draw.standard_normal(shape) / math.sqrt(math.prod(shape[:-1]))).astype("float32")


def dense(draw, *shape):
    """Return the kernel and bias of a dense layer or a convolution."""
    return {"w": weights(draw, *shape), "b": 0.1 * weights(draw, 1, shape[-1])[0]}


def affine(p, x):
    """Apply a dense layer."""
    return x @ p["w"] + p["b"]


def conv(p, x, stride=1):
    """Apply a convolution to (batch, height, width, channels)."""
    out = lax.conv_general_dilated(x, p["w"], (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return out + p["b"]


def stack(draw, *sizes):
    """Return the parameters of a sequence of dense layers."""
    return [dense(draw, a, b) for a, b in pairwise(sizes)]


def perceptron(layers, x, activation=np.tanh):
    """Apply dense layers, with an activation between them."""
    for p in layers[:-1]:
        x = activation(affine(p, x))
    return affine(layers[-1], x)


def norm(draw, width):
    """Return the scale and shift of a normalisation."""
    return {"scale": 1 + 0.1 * weights(draw, 1, width)[0], "shift": 0.1 * weights(draw, 1, width)[0]}


def normalize(p, x, axes=(-1,)):
    """Normalise over axes: the last axis alone gives layer norm, those of an image give instance norm."""
    centred = x - np.mean(x, axes, keepdims=True)
    return centred / np.sqrt(np.mean(centred**2, axes, keepdims=True) + 1e-5) * p["scale"] + p["shift"]


def block(draw, width):
    """Return the parameters of one layer of a transformer."""
    return {
        "norms": [norm(draw, width), norm(draw, width)],
        "qkv": dense(draw, width, 3 * width),
        "out": dense(draw, width, width),
        "mlp": stack(draw, width, 4 * width, width),
    }


def attention(p, x, heads, causal):
    """Apply multi-head attention to (batch, time, width)."""
    n, t, width = x.shape
    q, k, v = (y.reshape(n, t, heads, width // heads) for y in np.split(affine(p["qkv"], x), 3, -1))
    scores = np.einsum("nqhc,nkhc->nhqk", q, k) / math.sqrt(width // heads)
    if causal:
        scores = np.where(np.tril(np.ones((t, t), bool)), scores, -1e9)
    return affine(p["out"], np.einsum("nhqk,nkhc->nqhc", nn.softmax(scores), v).reshape(n, t, width))


def transformer(blocks, x, heads, causal):
    """Apply layers of a transformer, each with its normalisation first."""
    for p in blocks:
        x = x + attention(p, normalize(p["norms"][0], x), heads, causal)
        x = x + perceptron(p["mlp"], normalize(p["norms"][1], x), nn.gelu)
    return x


def cross_entropy(logits, labels):
    """Return the mean of -log p(label)."""
    return -np.mean(np.take_along_axis(nn.log_softmax(logits), labels[..., None], -1))


def waves(x, count):
    """Return sines and cosines of x at frequencies 1, 2, 4, ..., in place of its last axis."""
    angles = (x[..., None] * 2.0 ** np.arange(count, dtype=x.dtype)).reshape(*x.shape[:-1], -1)
    return np.concatenate([np.sin(angles), np.cos(angles)], -1)


def normal(draw, *shape):
    """Return standard normal numbers."""
    return draw.standard_normal(shape).astype("float32")


def labels(draw, classes, *shape):
    """Return random class labels."""
    return draw.integers(0, classes, shape).astype("int32")
