"""Returns, errors and losses of reinforcement learning by rlax."""

import jax
import jax.numpy as jnp
import rlax


def main():
    values, rewards, discounts = jnp.arange(5.0), jnp.array([1.0, 0.0, 2.0, -1.0]), jnp.full(4, 0.9)
    ratios = jnp.array([0.9, 1.1, 0.5, 1.0])
    logits, actions = jnp.array([[0.1, 0.2], [0.3, -0.4]]), jnp.array([0, 1])
    loss = lambda x: rlax.policy_gradient_loss(x, actions, jnp.array([1.0, -2.0]), jnp.ones(2))
    learn = jax.vmap(rlax.q_learning, in_axes=(0, 0, 0, None, 0))
    return {
        "errors": rlax.td_lambda(values[:-1], rewards, discounts, values[1:], 0.8),
        "corrected": rlax.vtrace(values[:-1], values[1:], rewards, discounts, ratios, 0.9),
        "returns": jax.jit(rlax.lambda_returns)(rewards, discounts, values[1:], 0.9),
        "learning": learn(logits, actions, jnp.array([1.0, 0.5]), 0.9, logits + 1),
        "slope": jax.grad(loss)(logits),
        "softmax": rlax.softmax(0.5).logprob(jnp.array(1), logits[0]),
        "projected": rlax.categorical_l2_project(jnp.linspace(-1, 1, 5), jnp.full(5, 0.2), jnp.linspace(-2, 2, 5)),
    }
