"""Costs of programs that unroll steps: `PYTHON unrolled.py SIDE` prints a JSON object of seconds by program."""

import sys

import numpy as np
from sides import load, measure

side = load(sys.argv[1])
api, xp, nn = side.ft, side.fnp, side.nn


def numbers(*shape: int):
    """Return numbers of a normal distribution, the same on each side."""
    return xp.asarray(np.random.default_rng(0).normal(0, 0.3, shape).astype(np.float32))


def gru(parameters, inputs):
    """A scalar of a GRU."""
    w, u = parameters
    h = xp.zeros((inputs.shape[1], u.shape[0]))
    for x in inputs:
        xr, xz, xn = xp.split(x @ w, 3, axis=-1)
        hr, hz, hn = xp.split(h @ u, 3, axis=-1)
        z, n = nn.sigmoid(xz + hz), xp.tanh(xn + nn.sigmoid(xr + hr) * hn)
        h = (1 - z) * n + z * h
    return (h**2).mean()


def lstm(parameters, inputs):
    """A scalar of an LSTM."""
    w, u = parameters
    h = c = xp.zeros((inputs.shape[1], u.shape[0]))
    for x in inputs:
        i, g, f, o = xp.split(x @ w + h @ u, 4, axis=-1)
        c = nn.sigmoid(f) * c + nn.sigmoid(i) * xp.tanh(g)
        h = nn.sigmoid(o) * xp.tanh(c)
    return (h**2).mean()


def slope(state):
    """The Lorenz system's."""
    x, y, z = state
    return xp.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])


def orbit(state, steps):
    """States of the Lorenz system, by the fourth-order method of Runge and Kutta."""
    states = []
    for _ in range(steps):
        first = slope(state)
        second = slope(state + 0.005 * first)
        third = slope(state + 0.005 * second)
        state = state + 0.01 / 6 * (first + 2 * second + 2 * third + slope(state + 0.01 * third))
        states.append(state)
    return xp.stack(states)


def wave(u, steps):
    """A scalar of a wave on a grid."""
    v = xp.zeros_like(u)
    for _ in range(steps):
        around = xp.roll(u, 1, 0) + xp.roll(u, -1, 0) + xp.roll(u, 1, 1) + xp.roll(u, -1, 1)
        v = v + 0.1 * (around - 4 * u)
        u = u + 0.1 * v - 0.01 * u**3
    return (u * u).sum()


def sines(x):
    """Sines, each added to the sum of those before."""
    for _ in range(40):
        x = xp.sin(x) * 0.5 + x - 1.0
    return x


def recurrent(gates: int, steps: int, width: int = 16):
    """Return parameters and inputs of a recurrent net."""
    return (numbers(width, gates * width), numbers(width, gates * width)), numbers(steps, 4, width)


CASES = {
    "gradient of a GRU, 40 steps": (api.grad(gru), recurrent(3, 40)),
    "gradient of an LSTM, 30 steps": (api.grad(lstm), recurrent(4, 30)),
    "Lorenz system, 30 Runge-Kutta steps": (lambda s: orbit(s, 30), (numbers(3, 64),)),
    "its gradient, 12 steps": (api.grad(lambda s: (orbit(s, 12)[-1] ** 2).sum()), (numbers(3, 64),)),
    "its Jacobian, 15 steps": (api.jacfwd(lambda s: orbit(s, 15)[-1]), (numbers(3),)),
    "gradient of a wave, 12 steps": (api.grad(lambda u: wave(u, 12)), (numbers(64, 64),)),
    "40 sines of 100,000 elements": (sines, (numbers(100_000),)),
}
measure(side, CASES)
