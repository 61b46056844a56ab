"""A normalising flow of affine couplings: the likelihood of vectors."""

import math

from benchmarks.zoo.parts import normal, perceptron, stack
from benchmarks.zoo.side import np

SIZES = {"tiny": {"n": 3, "half": 2, "width": 4, "depth": 2}, "real": {"n": 512, "half": 32, "width": 128, "depth": 6}}


def init(draw, n, half, width, depth):
    return [stack(draw, half, width, width, 2 * half) for _ in range(depth)]


def batch(draw, n, half, width, depth):
    return (normal(draw, n, 2 * half),)


def forward(params, x):
    first, second = np.split(x, 2, -1)
    volume = 0.0
    for layers in params:
        scale, shift = np.split(perceptron(layers, first), 2, -1)
        scale = np.tanh(scale)
        first, second = second * np.exp(scale) + shift, first
        volume = volume + np.sum(scale, -1)
    return np.concatenate([first, second], -1), volume


def loss(params, x):
    z, volume = forward(params, x)
    return np.mean(0.5 * np.sum(z**2, -1) - volume) + 0.5 * x.shape[-1] * math.log(2 * math.pi)
