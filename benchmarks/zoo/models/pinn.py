"""A network that solves Burgers' equation: its loss contains second derivatives of the network."""

from benchmarks.zoo.parts import perceptron, stack
from benchmarks.zoo.side import ft, np

SIZES = {"tiny": {"n": 3, "width": 4}, "real": {"n": 1024, "width": 64}}
VISCOSITY = 0.01


def init(draw, n, width):
    return stack(draw, 2, width, width, width, 1)


def batch(draw, n, width):
    return draw.uniform(-1, 1, n).astype("float32"), draw.uniform(0, 1, n).astype("float32")


def solution(params, x, t):
    return perceptron(params, np.stack([x, t]))[0]


def residual(params, x, t):
    along = ft.grad(solution, 1)
    u, u_t = solution(params, x, t), ft.grad(solution, 2)(params, x, t)
    return u_t + u * along(params, x, t) - VISCOSITY * ft.grad(along, 1)(params, x, t)


def forward(params, x, t):
    return ft.vmap(solution, (None, 0, 0))(params, x, t)


def loss(params, x, t):
    inside = ft.vmap(residual, (None, 0, 0))(params, x, t)
    start = forward(params, x, 0 * t) + np.sin(np.pi * x)
    return np.mean(inside**2) + np.mean(start**2)
