"""A U-Net with skip connections, which predicts a mask of an image."""

from benchmarks.zoo.parts import conv, dense, normal
from benchmarks.zoo.side import nn, np

SIZES = {"tiny": {"n": 1, "side": 8, "width": 2}, "real": {"n": 8, "side": 64, "width": 16}}


def init(draw, n, side, width):
    return {
        "first": dense(draw, 3, 3, 3, width),
        "down": [dense(draw, 3, 3, width * 2**i, width * 2 ** (i + 1)) for i in range(2)],
        "up": [dense(draw, 3, 3, width * 3 * 2**i, width * 2**i) for i in range(2)],
        "out": dense(draw, 1, 1, width, 1),
    }


def batch(draw, n, side, width):
    x = normal(draw, n, side, side, 3)
    return x, (x[..., :1] > 0).astype("float32")


def larger(x):
    return np.repeat(np.repeat(x, 2, 1), 2, 2)


def forward(params, x, mask):
    across = [nn.silu(conv(params["first"], x))]
    for p in params["down"]:
        across.append(nn.silu(conv(p, across[-1], 2)))
    x = across.pop()
    for p in reversed(params["up"]):
        x = nn.silu(conv(p, np.concatenate([larger(x), across.pop()], -1)))
    return conv(params["out"], x)


def loss(params, x, mask):
    logits = forward(params, x, mask)
    return np.mean(nn.softplus(logits) - mask * logits)
