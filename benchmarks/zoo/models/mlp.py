"""A multi-layer perceptron that classifies vectors."""

from benchmarks.zoo.parts import cross_entropy, labels, normal, perceptron, stack
from benchmarks.zoo.side import nn

SIZES = {"tiny": {"n": 4, "width": 5, "classes": 3}, "real": {"n": 256, "width": 1024, "classes": 10}}


def init(draw, n, width, classes):
    return stack(draw, width, width, width, classes)


def batch(draw, n, width, classes):
    return normal(draw, n, width), labels(draw, classes, n)


def forward(params, x, y):
    return perceptron(params, x, nn.relu)


def loss(params, x, y):
    return cross_entropy(forward(params, x, y), y)
