"""A convolutional network with strides and a mean over the image."""

from itertools import pairwise

from benchmarks.zoo.parts import affine, conv, cross_entropy, dense, labels, normal
from benchmarks.zoo.side import nn, np

SIZES = {"tiny": {"n": 2, "side": 6, "width": 3}, "real": {"n": 32, "side": 32, "width": 32}}


def init(draw, n, side, width):
    channels = (3, width, 2 * width, 4 * width)
    layers = [dense(draw, 3, 3, a, b) for a, b in pairwise(channels)]
    return {"conv": layers, "out": dense(draw, 4 * width, 10)}


def batch(draw, n, side, width):
    return normal(draw, n, side, side, 3), labels(draw, 10, n)


def forward(params, x, y):
    for p in params["conv"]:
        x = nn.relu(conv(p, x, 2))
    return affine(params["out"], np.mean(x, (1, 2)))


def loss(params, x, y):
    return cross_entropy(forward(params, x, y), y)
