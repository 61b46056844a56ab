"""Layers of the counterparts in PyTorch; parameters are the same arrays as on the other sides."""

# pyright: reportMissingImports=false
import torch
import torch.nn.functional as F


def affine(p, x):
    return x @ p["w"] + p["b"]


def perceptron(layers, x, activation=torch.tanh):
    for p in layers[:-1]:
        x = activation(affine(p, x))
    return affine(layers[-1], x)


def conv(p, x, stride=1):
    """Apply a convolution to (batch, channels, height, width), padded as "SAME" pads even sizes."""
    size, kernel = x.shape[-1], p["w"].permute(3, 2, 0, 1)
    total = max((-(-size // stride) - 1) * stride + kernel.shape[-1] - size, 0)
    low, high = total // 2, total - total // 2
    return F.conv2d(F.pad(x, (low, high, low, high)), kernel, p["b"], stride)


def normalize(p, x):
    return F.layer_norm(x, x.shape[-1:], p["scale"], p["shift"])


def gelu(x):
    return F.gelu(x, approximate="tanh")


def waves(x, count):
    angles = (x[..., None] * 2.0 ** torch.arange(count, dtype=x.dtype)).flatten(-2)
    return torch.cat([angles.sin(), angles.cos()], -1)


def transformer(blocks, x, heads, causal):
    n, t, width = x.shape
    for p in blocks:
        qkv = affine(p["qkv"], normalize(p["norms"][0], x)).chunk(3, -1)
        q, k, v = (y.reshape(n, t, heads, -1).transpose(1, 2) for y in qkv)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).reshape(n, t, width)
        x = x + affine(p["out"], mixed)
        x = x + perceptron(p["mlp"], normalize(p["norms"][1], x), gelu)
    return x


def classified(logits, y):
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.long().reshape(-1))
