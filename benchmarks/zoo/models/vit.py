"""A vision transformer: patches of an image as words."""

from benchmarks.zoo.parts import affine, block, cross_entropy, dense, labels, normal, transformer, weights
from benchmarks.zoo.side import np

SIZES = {
    "tiny": {"n": 2, "side": 4, "patch": 2, "width": 4, "depth": 1},
    "real": {"n": 16, "side": 32, "patch": 4, "width": 128, "depth": 4},
}
HEADS = 2


def init(draw, n, side, patch, width, depth):
    count = (side // patch) ** 2
    return {
        "patches": dense(draw, patch * patch * 3, width),
        "places": 0.1 * weights(draw, count, width),
        "blocks": [block(draw, width) for _ in range(depth)],
        "out": dense(draw, width, 10),
    }


def batch(draw, n, side, patch, width, depth):
    image = normal(draw, n, side // patch, patch, side // patch, patch, 3)
    words = image.transpose(0, 1, 3, 2, 4, 5).reshape(n, (side // patch) ** 2, -1)
    return words, labels(draw, 10, n)


def forward(params, words, y):
    x = affine(params["patches"], words) + params["places"]
    return affine(params["out"], np.mean(transformer(params["blocks"], x, HEADS, causal=False), 1))


def loss(params, words, y):
    return cross_entropy(forward(params, words, y), y)
