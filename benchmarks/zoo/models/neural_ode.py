"""An ordinary differential equation whose right side is a network, by the Runge-Kutta method of order 4."""

from benchmarks.zoo.parts import affine, cross_entropy, dense, labels, normal, perceptron, stack
from benchmarks.zoo.side import lax, np

SIZES = {"tiny": {"n": 2, "width": 3, "steps": 3}, "real": {"n": 128, "width": 64, "steps": 40}}


def init(draw, n, width, steps):
    return {"field": stack(draw, width + 1, 2 * width, width), "out": dense(draw, width, 10)}


def batch(draw, n, width, steps):
    return normal(draw, n, width), labels(draw, 10, n), np.linspace(0, 1, steps, dtype="float32")


def forward(params, x, y, times):
    h = 1 / len(times)

    def field(t, x):
        return perceptron(params["field"], np.concatenate([x, np.broadcast_to(t, (*x.shape[:-1], 1))], -1))

    def step(x, t):
        a = field(t, x)
        b = field(t + h / 2, x + h / 2 * a)
        c = field(t + h / 2, x + h / 2 * b)
        return x + h / 6 * (a + 2 * b + 2 * c + field(t + h, x + h * c)), None

    return affine(params["out"], lax.scan(step, x, times)[0])


def loss(params, x, y, times):
    return cross_entropy(forward(params, x, y, times), y)
