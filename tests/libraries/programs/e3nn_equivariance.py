"""A layer of e3nn-jax that commutes with rotations: spherical harmonics, tensor products, gates, and its gradient."""

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp
import numpy as np

RNG = np.random.default_rng(15)
POSITIONS = RNG.normal(size=(6, 3)).astype(np.float32)
FEATURES = RNG.normal(size=(6, 8)).astype(np.float32)
TURN = np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 1]], np.float32)


def layer(positions, features, weights):
    x = e3nn.IrrepsArray("2x0e+2x1o", jnp.asarray(features))
    harmonics = e3nn.spherical_harmonics("0e+1o+2e", jnp.asarray(positions), normalize=True)
    mixed = e3nn.concatenate([x, e3nn.tensor_product(x, harmonics)]).regroup()
    linear = e3nn.FunctionalLinear(mixed.irreps, "4x0e+2x0e+2x1o")
    shaped = [weights[: np.prod(i.path_shape)].reshape(i.path_shape) for i in linear.instructions]
    return e3nn.gate(jax.vmap(linear, in_axes=(None, 0))(shaped, mixed))


def main():
    weights = jnp.sin(jnp.arange(100.0))
    out = jax.jit(layer)(POSITIONS, FEATURES, weights)
    turned = e3nn.IrrepsArray("2x0e+2x1o", jnp.asarray(FEATURES)).transform_by_matrix(TURN).array
    slope = jax.jit(jax.grad(lambda p, w: jnp.sum(layer(p, FEATURES, w).array ** 2), argnums=(0, 1)))
    pull, push = slope(jnp.asarray(POSITIONS), weights)
    grid = e3nn.to_s2grid(e3nn.IrrepsArray("0e+1o+2e", jnp.arange(9.0)), 6, 7, quadrature="soft", p_val=1, p_arg=-1)
    return {"out": out.array, "turned": layer(POSITIONS @ TURN.T, turned, weights).array,
            "expected": out.transform_by_matrix(TURN).array, "pull": pull, "push": push[:20],
            "grid": grid.grid_values, "back": e3nn.from_s2grid(grid, e3nn.s2_irreps(2)).array}  # fmt: skip
