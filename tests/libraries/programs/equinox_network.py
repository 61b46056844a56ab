"""Train a small network of equinox layers, its weights given; filter transformations and a tree update."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

RNG = np.random.default_rng(1)
X = RNG.normal(size=(16, 4)).astype(np.float32)
Y = np.sin(X.sum(1, keepdims=True)).astype(np.float32)


class Network(eqx.Module):
    layers: list
    norm: eqx.nn.LayerNorm
    scale: float = eqx.field(static=True)

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.layers = [eqx.nn.Linear(4, 8, key=first), eqx.nn.Linear(8, 1, key=second)]
        self.norm = eqx.nn.LayerNorm(8)
        self.scale = 0.5

    def __call__(self, x):
        return self.layers[1](self.norm(jax.nn.gelu(self.layers[0](x)))) * self.scale


def main():
    network = Network(jax.random.PRNGKey(0))
    leaves, structure = jax.tree.flatten(eqx.filter(network, eqx.is_inexact_array))
    given = [jnp.asarray(RNG.normal(size=leaf.shape).astype(np.float32) * 0.5) for leaf in leaves]
    network = eqx.combine(jax.tree.unflatten(structure, given), network)
    network = eqx.tree_at(lambda n: n.layers[0].bias, network, jnp.zeros(8))

    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def loss(network, x, y):
        return jnp.mean((jax.vmap(network)(x) - y) ** 2)

    losses = []
    for _ in range(20):
        value, gradients = loss(network, X, Y)
        network = eqx.apply_updates(network, jax.tree.map(lambda g: -0.1 * g, gradients))
        losses.append(value)
    count = sum(x.size for x in jax.tree.leaves(eqx.filter(network, eqx.is_array)))
    return {"losses": jnp.stack(losses)[::4], "weight": network.layers[1].weight, "count": count}
