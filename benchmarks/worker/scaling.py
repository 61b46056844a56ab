"""Growth of costs with operations, leaves of pytrees, jitted functions and nested transformations."""

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
from clock import fresh, repeated, settle
from curves import CURVES, case
from tracing import novelty

Sampler = Callable[[], float]
WIDTH = 8
#: Operations of one layer: a product, a sum and a tanh.
LAYER = 3


def program(api: SimpleNamespace, operations: int, scale: float = 1.0) -> Callable:
    """Return a new function object with a given number of operations."""
    fnp = api.fnp

    def layers(w, b, x):
        for _ in range(operations // LAYER):
            x = fnp.tanh(x @ w + b)
        return x * scale

    return layers


def _arguments(api: SimpleNamespace) -> tuple:
    weights = np.random.default_rng(0).normal(0, WIDTH**-0.5, (WIDTH, WIDTH)).astype(np.float32)
    return api.fnp.asarray(weights), api.fnp.zeros(WIDTH), api.fnp.ones((WIDTH, WIDTH))


def trace(operations: int, api: SimpleNamespace) -> Sampler:
    """`jit(f).trace(...)`."""
    arguments = _arguments(api)
    count = max(1, 1000 // operations)
    return fresh(lambda: api.ft.jit(program(api, operations)), lambda f: f.trace(*arguments), count)


def lower(operations: int, api: SimpleNamespace) -> Sampler:
    """`.lower()` of a traced program; tracing is not timed."""
    arguments = _arguments(api)
    return fresh(lambda: api.ft.jit(program(api, operations)).trace(*arguments), lambda traced: traced.lower())


def compiling(operations: int, api: SimpleNamespace) -> Sampler:
    """`.compile()` of a program that no cache has seen."""
    arguments = _arguments(api)
    return fresh(
        lambda: api.ft.jit(program(api, operations, novelty())).lower(*arguments), lambda lowered: lowered.compile()
    )


def _tree(api: SimpleNamespace, leaves: int) -> dict:
    """Return a pytree of layers with ten arrays each."""
    x = api.fnp.ones(2)
    return {f"layer{i}": {f"p{k}": x for k in range(10)} for i in range(leaves // 10)}


def tree_map(leaves: int, api: SimpleNamespace) -> Sampler:
    """`tree.map` of a function that does nothing."""
    tree = _tree(api, leaves)
    return repeated(lambda: api.ft.tree.map(lambda x: x, tree))


def tree_trace(leaves: int, api: SimpleNamespace) -> Sampler:
    """Tracing a function that changes each leaf."""
    tree = _tree(api, leaves)
    prepare = lambda: api.ft.jit(lambda tree: api.ft.tree.map(api.lax.neg, tree))
    return fresh(prepare, lambda f: f.trace(tree))


def tree_call(leaves: int, api: SimpleNamespace) -> Sampler:
    """Calling a compiled function that changes each leaf."""
    tree = _tree(api, leaves)
    f = api.ft.jit(lambda tree: api.ft.tree.map(api.lax.neg, tree))
    settle(f, tree)
    return repeated(lambda: f(tree), lambda out: out["layer0"]["p0"].block_until_ready())


def functions(count: int, api: SimpleNamespace) -> Sampler:
    """Calling many jitted functions in turn, one after the other."""
    x = api.fnp.ones(4)
    made = [api.ft.jit(lambda x, k=k: x * (k % 7) + k % 11) for k in range(count)]
    for f in made:
        settle(f, x)

    def turn() -> object:
        for f in made:
            last = f(x)
        return last

    return repeated(turn, lambda last: last.block_until_ready())


def nested_grad(depth: int, api: SimpleNamespace) -> Sampler:
    """Tracing a derivative of the given order."""

    def prepare() -> Callable:
        f = lambda x: api.fnp.sin(x) * x
        for _ in range(depth):
            f = api.ft.grad(f)
        return api.ft.jit(f)

    return fresh(prepare, lambda f: f.trace(1.0))


def nested_vmap(depth: int, api: SimpleNamespace) -> Sampler:
    """Tracing a function that is mapped over the given number of axes."""
    x = api.fnp.ones((2,) * depth)

    def prepare() -> Callable:
        f = lambda x: api.fnp.sin(x) * x
        for _ in range(depth):
            f = api.ft.vmap(f)
        return api.ft.jit(f)

    return fresh(prepare, lambda f: f.trace(x), 10)


_CASES = {
    "trace": trace,
    "lower": lower,
    "compile": compiling,
    "tree_map": tree_map,
    "tree_trace": tree_trace,
    "tree_call": tree_call,
    "functions": functions,
    "nested_grad": nested_grad,
    "nested_vmap": nested_vmap,
}
CASES = {
    case(curve, size): lambda api, make=_CASES[curve], size=size: make(size, api)
    for curve, (_, _, sizes) in CURVES.items()
    for size in sizes
}
