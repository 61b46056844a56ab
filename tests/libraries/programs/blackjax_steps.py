"""Deterministic parts of samplers in blackjax: leapfrog steps, an adapted step size, diagnostics of chains."""

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.adaptation.step_size import dual_averaging_adaptation
from blackjax.mcmc import integrators, metrics

RNG = np.random.default_rng(11)
CHAINS = RNG.normal(size=(4, 200)).cumsum(1).astype(np.float32) * 0.05


def log_density(position):
    return -0.5 * jnp.sum(position["x"] ** 2 / jnp.array([1.0, 4.0])) - jnp.log1p(position["y"] ** 2)


def main():
    metric = metrics.default_metric(jnp.ones(3))
    step = jax.jit(integrators.velocity_verlet(log_density, metric.kinetic_energy), static_argnums=1)
    position = {"x": jnp.array([0.5, -1.0]), "y": jnp.array(0.3)}
    momentum = {"x": jnp.array([1.0, 0.5]), "y": jnp.array(-0.2)}
    density, slope = jax.value_and_grad(log_density)(position)
    state = integrators.IntegratorState(position, momentum, density, slope)
    energy = [metric.kinetic_energy(state.momentum) - state.logdensity]
    for _ in range(20):
        state = step(state, 0.1)
    energy.append(metric.kinetic_energy(state.momentum) - state.logdensity)
    init, update, final = dual_averaging_adaptation(0.8)
    adapted = init(0.5)
    for accepted in (0.9, 0.5, 0.7, 0.95):
        adapted = update(adapted, accepted)
    size = blackjax.diagnostics.effective_sample_size(CHAINS)
    return {"x": state.position["x"], "y": state.position["y"], "energy": jnp.stack(energy), "step": final(adapted),
            "size": size, "reduction": blackjax.diagnostics.potential_scale_reduction(CHAINS)}  # fmt: skip
