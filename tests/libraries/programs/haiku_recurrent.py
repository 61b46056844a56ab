"""A recurrent network in dm-haiku, unrolled, its parameters given."""

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np

RNG = np.random.default_rng(5)
X = RNG.normal(size=(6, 2, 3)).astype(np.float32)


def network(x):
    core = hk.LSTM(5)
    out, _ = hk.dynamic_unroll(core, x, core.initial_state(x.shape[1]))
    return hk.Sequential([hk.Linear(4), jax.nn.relu, hk.Linear(1)])(hk.LayerNorm(-1, True, True)(out))


def main():
    transformed = hk.without_apply_rng(hk.transform(network))
    shapes = jax.eval_shape(transformed.init, jax.random.PRNGKey(0), X)
    params = jax.tree.map(lambda s: jnp.asarray(RNG.normal(size=s.shape).astype(np.float32) * 0.3), shapes)

    @jax.jit
    def loss(params):
        return jnp.mean(transformed.apply(params, X) ** 2)

    value, gradients = jax.value_and_grad(loss)(params)
    sizes = {f"{m}/{n}": float(jnp.sum(g**2)) for m, n, g in hk.data_structures.traverse(gradients)}
    names = hk.data_structures.tree_size(params)
    return {"value": value, "out": jax.jit(transformed.apply)(params, X), "count": names, **sizes}
