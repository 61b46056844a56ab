"""Compiled programs of common kinds of models, at sizes that take a laptop milliseconds."""

from collections.abc import Callable
from types import SimpleNamespace

import algebra
import inputs
import kernels
import nets
import shapes
from clock import repeated, settle

Sampler = Callable[[], float]


def run(api: SimpleNamespace, function: Callable, *arguments: object) -> Sampler:
    """Return a sampler of calls of a jitted function, each waited for."""
    compiled = api.ft.jit(function)

    def call() -> None:
        result = compiled(*arguments)
        while not hasattr(result, "block_until_ready"):
            result = result[0]
        result.block_until_ready()

    settle(compiled, *arguments)
    return repeated(call)


def device(api: SimpleNamespace, arrays: list) -> list:
    """Convert NumPy arrays to the side's own arrays."""
    return [api.fnp.asarray(array) for array in arrays]


def run_mlp(api: SimpleNamespace) -> Sampler:
    """One step of gradient descent on cross-entropy, three dense layers."""
    x, labels, *params = device(api, shapes.mlp())

    def loss(params, x, labels):
        w1, w2, w3 = params
        logits = api.nn.relu(api.nn.relu(x @ w1) @ w2) @ w3
        return -api.fnp.mean(api.fnp.sum(labels * api.nn.log_softmax(logits), axis=-1))

    def step(params, x, labels):
        return [p - 0.1 * g for p, g in zip(params, api.ft.grad(loss)(params, x, labels), strict=True)]

    return run(api, step, params, x, labels)


def conv_loss(api: SimpleNamespace) -> Callable:
    """Two convolutions, the second with stride, and a dense layer."""

    def conv(x, w, stride):
        return api.lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"))

    def loss(params, x):
        w1, w2, w3 = params
        hidden = api.nn.relu(conv(api.nn.relu(conv(x, w1, 1)), w2, 2))
        return api.fnp.mean((hidden.reshape(len(x), -1) @ w3) ** 2)

    return loss


def run_conv_forward(api: SimpleNamespace) -> Sampler:
    """The loss of the convolutional net."""
    x, *params = device(api, shapes.conv())
    return run(api, conv_loss(api), params, x)


def run_conv_grad(api: SimpleNamespace) -> Sampler:
    """The gradient of the loss of the convolutional net."""
    x, *params = device(api, shapes.conv())
    return run(api, api.ft.grad(conv_loss(api)), params, x)


def run_attention(api: SimpleNamespace) -> Sampler:
    """The gradient of softmax attention with respect to all three inputs."""

    def loss(qkv):
        q, k, v = qkv
        scores = api.fnp.einsum("bhqd,bhkd->bhqk", q, k) * q.shape[-1] ** -0.5
        return api.fnp.sum(api.fnp.einsum("bhqk,bhkd->bhqd", api.nn.softmax(scores), v) ** 2)

    return run(api, api.ft.grad(loss), device(api, shapes.attention()))


def program(name: str, make: Callable) -> Callable[[SimpleNamespace], Sampler]:
    """Return a case: the program on its inputs."""
    return lambda api: run(api, make(api), *device(api, inputs.INPUTS[name]()))


PROGRAMS = nets.PROGRAMS | kernels.PROGRAMS | algebra.PROGRAMS
CASES = {case.__name__: case for case in (run_mlp, run_conv_forward, run_conv_grad, run_attention)} | {
    f"run_{name}": program(name, make) for name, make in PROGRAMS.items()
}
