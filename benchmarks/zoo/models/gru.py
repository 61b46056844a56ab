"""A gated recurrent unit that predicts the next value of each sequence."""

from benchmarks.zoo.parts import affine, dense, normal
from benchmarks.zoo.side import lax, nn, np

SIZES = {"tiny": {"n": 2, "time": 4, "width": 3}, "real": {"n": 32, "time": 64, "width": 128}}


def init(draw, n, time, width):
    return {
        "gates": dense(draw, 2 * width, 2 * width),
        "new": dense(draw, 2 * width, width),
        "out": dense(draw, width, width),
    }


def batch(draw, n, time, width):
    return (normal(draw, time + 1, n, width),)


def forward(params, xs):
    def step(h, x):
        reset, keep = np.split(nn.sigmoid(affine(params["gates"], np.concatenate([x, h], -1))), 2, -1)
        new = np.tanh(affine(params["new"], np.concatenate([x, reset * h], -1)))
        h = keep * h + (1 - keep) * new
        return h, affine(params["out"], h)

    return lax.scan(step, np.zeros_like(xs[0]), xs[:-1])[1]


def loss(params, xs):
    return np.mean((forward(params, xs) - xs[1:]) ** 2)
