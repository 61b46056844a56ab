"""A Gaussian process in tinygp: a fit of its parameters, a prediction, and a quasiseparable kernel."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from tinygp import GaussianProcess, kernels

RNG = np.random.default_rng(14)
X = np.sort(RNG.uniform(0, 8, 20)).astype(np.float32)
Y = (np.sin(X) + 0.1 * RNG.normal(size=20)).astype(np.float32)
T = np.linspace(-1, 9, 7, dtype=np.float32)


def process(p):
    kernel = jnp.exp(p["size"]) * kernels.ExpSquared(jnp.exp(p["scale"])) + 0.2 * kernels.Matern32(0.7)
    return GaussianProcess(kernel, X, diag=jnp.exp(p["noise"]), mean=p["mean"])


def states(p):
    kernel = kernels.quasisep.SHO(sigma=jnp.exp(p["size"]), omega=1.5, quality=0.8) + kernels.quasisep.CARMA(
        alpha=jnp.array([1.1, 1.5, 0.8]), beta=jnp.array([1.0, 0.3])
    )
    return GaussianProcess(kernel, X, diag=0.1, mean=p["mean"])


def main():
    params = {k: jnp.asarray(v) for k, v in (("size", 0.1), ("scale", 0.2), ("noise", -2.0), ("mean", 0.05))}
    optimizer = optax.adam(0.05)

    @jax.jit
    def step(params, state):
        loss, slope = jax.value_and_grad(lambda p: -process(p).log_probability(Y))(params)
        updates, state = optimizer.update(slope, state)
        return optax.apply_updates(params, updates), state, loss

    state = optimizer.init(params)
    for _ in range(5):
        params, state, loss = step(params, state)
    predicted = jax.jit(lambda p: process(p).condition(Y, T).gp)(params)
    density, slope = jax.jit(jax.value_and_grad(lambda p: states(p).log_probability(Y)))(params)
    return {"loss": loss, **params, "mean at points": predicted.mean, "variance": predicted.variance,
            "density": density, "slope": slope["size"]}  # fmt: skip
