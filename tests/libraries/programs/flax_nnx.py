"""A network of flax.nnx: its state split off and merged, gradients by nnx.grad under nnx.jit."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

RNG = np.random.default_rng(4)
X = RNG.normal(size=(8, 3)).astype(np.float32)
Y = X[:, :1] * X[:, 1:2]


class Network(nnx.Module):
    def __init__(self, rngs):
        self.first, self.second = nnx.Linear(3, 16, rngs=rngs), nnx.Linear(16, 1, rngs=rngs)

    def __call__(self, x):
        return self.second(nnx.tanh(self.first(x)))


def main():
    network = Network(nnx.Rngs(0))
    definition, state = nnx.split(network)
    draw = lambda x: jnp.asarray(RNG.normal(size=x.shape).astype(np.float32) * 0.5)
    network = nnx.merge(definition, jax.tree.map(draw, state))

    @nnx.jit
    def step(network):
        value, gradients = nnx.value_and_grad(lambda n: jnp.mean((n(X) - Y) ** 2))(network)
        params = nnx.state(network, nnx.Param)
        nnx.update(network, jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients))
        return value

    losses = [step(network) for _ in range(10)]
    return {"losses": jnp.stack(losses), "out": network(X[:2])}
