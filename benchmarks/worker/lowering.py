"""Tracing and lowering together, `jit(f).lower(...)`: the cost of each new signature before XLA compiles it."""

from collections.abc import Callable
from types import SimpleNamespace

import inputs
import nets
import numpy as np
import shapes
from clock import fresh
from tracing import mlp_arguments, mlp_loss
from workloads import conv_loss

Sampler = Callable[[], float]
STEPS, WIDTH = 40, 16


def gru_loss(api: SimpleNamespace) -> Callable:
    """A GRU, its loop over time unrolled by Python."""
    nn, fnp = api.nn, api.fnp

    def loss(params, xs):
        w, u, b = params
        h = fnp.zeros((xs.shape[1], WIDTH))
        for x in xs:
            xr, xz, xn = fnp.split(x @ w + b, 3, axis=-1)
            hr, hz, hn = fnp.split(h @ u, 3, axis=-1)
            z, n = nn.sigmoid(xz + hz), fnp.tanh(xn + nn.sigmoid(xr + hr) * hn)
            h = (1 - z) * n + z * h
        return fnp.mean(h**2)

    return loss


def gru_arguments() -> tuple:
    """Parameters and a batch of sequences."""
    w, u = shapes.normal(WIDTH, 3 * WIDTH), shapes.normal(WIDTH, 3 * WIDTH)
    return (w, u, np.zeros(3 * WIDTH, np.float32)), inputs.numbers(STEPS, 4, WIDTH)


def chain(api: SimpleNamespace) -> Callable:
    """400 elementwise operations as users write them, with operators and Python numbers."""

    def f(x):
        for _ in range(100):
            x = api.fnp.tanh(x) * 0.5 + x - 1.0
        return x

    return f


def lower(make: Callable, arguments: Callable) -> Callable[[SimpleNamespace], Sampler]:
    """Return a case: `.lower()` of a jitted function that is new at each call, but whose parts are not."""

    def case(api: SimpleNamespace) -> Sampler:
        given = api.ft.tree.map(api.fnp.asarray, arguments(api))
        return fresh(lambda: api.ft.jit(make(api)), lambda f: f.lower(*given), 3)

    return case


def of_net(name: str) -> Callable[[SimpleNamespace], Sampler]:
    """Return the case of a program of `nets.py`."""
    return lower(nets.PROGRAMS[name], lambda api: tuple(inputs.INPUTS[name]()))


def gradient(loss: Callable) -> Callable:
    """Return a function that makes the gradient of a loss."""
    return lambda api: api.ft.grad(loss(api))


CASES = {
    "stage_mlp_grad": lower(gradient(mlp_loss), mlp_arguments),
    "stage_hessian": of_net("hessian"),
    "stage_gru_grad": lower(gradient(gru_loss), lambda api: gru_arguments()),
    "stage_conv_grad": lower(gradient(conv_loss), lambda api: (shapes.conv()[1:], shapes.conv()[0])),
    "stage_chain": lower(chain, lambda api: (inputs.numbers(8),)),
    "stage_transformer": of_net("transformer_block"),
}
