"""A language model: the next word from the words before it."""

from benchmarks.zoo.parts import affine, block, cross_entropy, dense, labels, norm, normalize, transformer, weights
from benchmarks.zoo.side import np

SIZES = {
    "tiny": {"n": 2, "time": 5, "words": 7, "width": 4, "depth": 1},
    "real": {"n": 8, "time": 128, "words": 1000, "width": 128, "depth": 4},
}
HEADS = 2


def init(draw, n, time, words, width, depth):
    return {
        "words": weights(draw, words, width) * words**0.5,
        "places": 0.1 * weights(draw, time, width),
        "blocks": [block(draw, width) for _ in range(depth)],
        "norm": norm(draw, width),
        "out": dense(draw, width, words),
    }


def batch(draw, n, time, words, width, depth):
    text = labels(draw, words, n, time + 1)
    return text[:, :-1], text[:, 1:]


def forward(params, text, following):
    x = params["words"][text] + params["places"]
    return affine(params["out"], normalize(params["norm"], transformer(params["blocks"], x, HEADS, causal=True)))


def loss(params, text, following):
    return cross_entropy(forward(params, text, following), np.asarray(following))
