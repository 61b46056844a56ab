"""A state space model: linear recurrences, computed for all times at once by an associative scan."""

from benchmarks.zoo.parts import affine, cross_entropy, dense, labels, norm, normal, normalize, weights
from benchmarks.zoo.side import lax, nn, np

SIZES = {"tiny": {"n": 2, "time": 4, "width": 3, "depth": 1}, "real": {"n": 8, "time": 256, "width": 128, "depth": 4}}


def init(draw, n, time, width, depth):
    layer = lambda: {
        "norm": norm(draw, width),
        "decay": weights(draw, 1, width)[0] + 2,
        "enter": dense(draw, width, 2 * width),
        "leave": dense(draw, width, width),
    }
    return {"layers": [layer() for _ in range(depth)], "out": dense(draw, width, 10)}


def batch(draw, n, time, width, depth):
    return normal(draw, n, time, width), labels(draw, 10, n)


def compose(first, second):
    (a, x), (b, y) = first, second
    return a * b, b * x + y


def forward(params, x, y):
    for p in params["layers"]:
        entering, gate = np.split(affine(p["enter"], normalize(p["norm"], x)), 2, -1)
        keep = np.broadcast_to(nn.sigmoid(p["decay"]), entering.shape)
        state = lax.associative_scan(compose, (keep, (1 - keep) * entering), axis=1)[1]
        x = x + affine(p["leave"], state * nn.silu(gate))
    return affine(params["out"], np.mean(x, 1))


def loss(params, x, y):
    return cross_entropy(forward(params, x, y), y)
