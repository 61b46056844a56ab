"""A tree search by mctx in a small game: values and visits of the root's actions."""

import jax
import jax.numpy as jnp
import mctx

REWARDS = jnp.array([[0.1, 0.7, 0.0], [0.2, 0.0, 0.9], [0.5, 0.3, 0.1], [0.0, 0.4, 0.8]])


def model(params, key, action, state):
    """Move on a ring of four places; each action has a reward at each place."""
    new = (state + action + 1) % 4
    reward = params[state, action]
    output = mctx.RecurrentFnOutput(
        reward=reward, discount=jnp.full_like(reward, 0.9), prior_logits=params[new], value=params[new].mean(-1)
    )
    return output, new


def main():
    places = jnp.array([0, 1, 3])
    root = mctx.RootFnOutput(prior_logits=REWARDS[places], value=REWARDS[places].mean(-1), embedding=places)
    search = jax.jit(
        lambda key: mctx.muzero_policy(
            REWARDS, key, root, model, num_simulations=24, dirichlet_fraction=0.0, temperature=0.0, max_depth=6
        )
    )
    summary = search(jax.random.PRNGKey(0)).search_tree.summary()
    return {"visits": summary.visit_counts, "values": summary.qvalues, "root": summary.value}
