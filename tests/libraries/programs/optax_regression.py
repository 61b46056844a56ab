"""Fit a line by AdamW with a schedule, gradients clipped."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

RNG = np.random.default_rng(0)
X = RNG.normal(size=(32, 3)).astype(np.float32)
Y = (X @ np.array([1.0, -2.0, 0.5], np.float32) + 0.3).astype(np.float32)


def main():
    params = {"w": jnp.zeros(3), "b": jnp.zeros(())}
    schedule = optax.warmup_cosine_decay_schedule(0.0, 0.1, 5, 40)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=1e-3))

    def loss(params):
        return jnp.mean(optax.losses.huber_loss(X @ params["w"] + params["b"], Y))

    @jax.jit
    def step(params, state):
        value, gradients = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    state, losses = optimizer.init(params), []
    for _ in range(40):
        params, state, value = step(params, state)
        losses.append(value)
    norm = optax.tree.norm(params) if hasattr(optax, "tree") else optax.global_norm(params)
    return {"w": params["w"], "b": params["b"], "losses": jnp.stack(losses)[::8], "norm": norm}
