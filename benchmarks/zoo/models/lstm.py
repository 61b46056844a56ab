"""A long short-term memory that classifies sequences."""

from benchmarks.zoo.parts import affine, cross_entropy, dense, labels, normal
from benchmarks.zoo.side import lax, nn, np

SIZES = {"tiny": {"n": 2, "time": 4, "width": 3}, "real": {"n": 32, "time": 64, "width": 128}}


def init(draw, n, time, width):
    return {"gates": dense(draw, 2 * width, 4 * width), "out": dense(draw, width, 10)}


def batch(draw, n, time, width):
    return normal(draw, time, n, width), labels(draw, 10, n)


def forward(params, xs, y):
    def step(carry, x):
        h, c = carry
        i, f, g, o = np.split(affine(params["gates"], np.concatenate([x, h], -1)), 4, -1)
        c = nn.sigmoid(f) * c + nn.sigmoid(i) * np.tanh(g)
        return (nn.sigmoid(o) * np.tanh(c), c), None

    start = np.zeros_like(xs[0])
    (h, _), _ = lax.scan(step, (start, start), xs)
    return affine(params["out"], h)


def loss(params, xs, y):
    return cross_entropy(forward(params, xs, y), y)
