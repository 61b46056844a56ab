"""Dataclasses as pytrees, and assertions on shapes, dtypes and trees."""

import chex
import jax
import jax.numpy as jnp
import numpy as np


@chex.dataclass
class State:
    position: chex.Array
    velocity: chex.Array


def main():
    state = State(position=jnp.array([1.0, 0.0]), velocity=jnp.array([0.0, 1.0]))

    @jax.jit
    def step(state, dt):
        chex.assert_shape(state.position, (2,))
        chex.assert_type([state.position, state.velocity], jnp.float32)
        velocity = state.velocity - dt * state.position
        return State(position=state.position + dt * velocity, velocity=velocity)

    for _ in range(10):
        state = step(state, 0.1)
    chex.assert_tree_all_finite(state)
    chex.assert_trees_all_close(state, jax.tree.map(np.asarray, state))
    refused = 0
    for check in (
        lambda: chex.assert_shape(state.position, (3,)),
        lambda: chex.assert_rank(state.position, 2),
        lambda: chex.assert_trees_all_equal(state, jax.tree.map(lambda x: x + 1, state)),
        lambda: chex.assert_tree_all_finite({"x": jnp.array(np.nan)}),
    ):
        try:
            check()
        except AssertionError:
            refused += 1
    energy = jax.vmap(lambda s: jnp.sum(s.position**2) + jnp.sum(s.velocity**2))(jax.tree.map(lambda x: x[None], state))
    return {"position": state.position, "velocity": state.velocity, "refused": refused, "energy": energy}
