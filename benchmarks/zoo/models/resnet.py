"""A residual network: three stages of blocks, each halving the image, with instance normalisation."""

from benchmarks.zoo.parts import affine, conv, cross_entropy, dense, labels, norm, normal, normalize
from benchmarks.zoo.side import nn, np

SIZES = {"tiny": {"n": 2, "side": 8, "width": 2, "depth": 1}, "real": {"n": 16, "side": 32, "width": 32, "depth": 3}}


def stage(draw, a, b, depth):
    blocks = [
        {"norms": [norm(draw, b), norm(draw, b)], "convs": [dense(draw, 3, 3, b, b), dense(draw, 3, 3, b, b)]}
        for _ in range(depth)
    ]
    return {"down": dense(draw, 3, 3, a, b), "blocks": blocks}


def init(draw, n, side, width, depth):
    stages = [stage(draw, a, b, depth) for a, b in ((3, width), (width, 2 * width), (2 * width, 4 * width))]
    return {"stages": stages, "out": dense(draw, 4 * width, 10)}


def batch(draw, n, side, width, depth):
    return normal(draw, n, side, side, 3), labels(draw, 10, n)


def forward(params, x, y):
    for p in params["stages"]:
        x = conv(p["down"], x, 2)
        for q in p["blocks"]:
            z = x
            for scale, kernel in zip(q["norms"], q["convs"], strict=True):
                z = conv(kernel, nn.relu(normalize(scale, z, (1, 2))))
            x = x + z
    return affine(params["out"], np.mean(x, (1, 2)))


def loss(params, x, y):
    return cross_entropy(forward(params, x, y), y)
