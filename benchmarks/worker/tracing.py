"""Costs of turning Python into a program: trace, differentiate, lower, compile.

Every sample uses new function objects, so that it finds nothing in the caches of earlier samples.
"""

import itertools
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
from clock import fresh

Sampler = Callable[[], float]
LAYERS, WIDTH, BATCH = 20, 64, 8


def mlp_arguments(api: SimpleNamespace) -> tuple:
    """Return weights and biases of every layer, and a batch."""
    rng = np.random.default_rng(0)
    weights = rng.normal(0, WIDTH**-0.5, (LAYERS, WIDTH, WIDTH)).astype(np.float32)
    params = [(api.fnp.asarray(w), api.fnp.zeros(WIDTH)) for w in weights]
    return params, api.fnp.asarray(rng.normal(size=(BATCH, WIDTH)).astype(np.float32))


def mlp_loss(api: SimpleNamespace, scale: float = 1.0) -> Callable:
    """Return a new function object at each call; another `scale` makes it a new program, too."""
    fnp = api.fnp

    def loss(params, x):
        for w, b in params:
            x = fnp.tanh(x @ w + b)
        return fnp.sum(x * scale)

    return loss


def trace_forward(api: SimpleNamespace) -> Sampler:
    """`jit(loss).trace(...)`."""
    arguments = mlp_arguments(api)
    return fresh(lambda: api.ft.jit(mlp_loss(api)), lambda f: f.trace(*arguments), 10)


def trace_grad(api: SimpleNamespace) -> Sampler:
    """`jit(grad(loss)).trace(...)`."""
    arguments = mlp_arguments(api)
    return fresh(lambda: api.ft.jit(api.ft.grad(mlp_loss(api))), lambda f: f.trace(*arguments), 5)


def lower_grad(api: SimpleNamespace) -> Sampler:
    """`.lower()` of a traced gradient; tracing is not timed."""
    arguments = mlp_arguments(api)
    return fresh(lambda: api.ft.jit(api.ft.grad(mlp_loss(api))).trace(*arguments), lambda traced: traced.lower(), 5)


def compile_grad(api: SimpleNamespace) -> Sampler:
    """`.compile()` of a program that no cache, in memory or on disk, has seen."""
    arguments = mlp_arguments(api)
    return fresh(
        lambda: api.ft.jit(api.ft.grad(mlp_loss(api, novelty()))).lower(*arguments), lambda lowered: lowered.compile()
    )


def first_call(api: SimpleNamespace) -> Sampler:
    """The whole way from a small Python function to its first result."""
    x = api.fnp.arange(8.0)

    def prepare() -> Callable:
        scale = novelty()
        return api.ft.jit(lambda x: api.fnp.sin(x) * scale + x)

    return fresh(prepare, lambda f: f(x).block_until_ready(), 5)


def novelty() -> float:
    """Return a number that no earlier program contains."""
    return float(np.random.default_rng().uniform(0.5, 1.5))


def trace_chain(length: int) -> Callable[[SimpleNamespace], Sampler]:
    """Tracing a chain of `length` operations, to show the growth of the cost."""

    def case(api: SimpleNamespace) -> Sampler:
        x = api.fnp.ones(4)

        def prepare() -> Callable:
            def chain(x):
                for step in itertools.islice(itertools.cycle((api.lax.sin, api.lax.neg)), length):
                    x = step(x)
                return x

            return api.ft.jit(chain)

        return fresh(prepare, lambda f: f.trace(x), max(1, 1000 // length))

    return case


CASES = {case.__name__: case for case in (trace_forward, trace_grad, lower_grad, compile_grad, first_call)} | {
    f"trace_{length}": trace_chain(length) for length in (10, 100, 1000, 10_000)
}
