"""Evolution strategies of evosax, updated by the fitness of given populations."""

import jax
import jax.numpy as jnp
import numpy as np
from evosax.algorithms import CMA_ES, PSO, Open_ES

RNG = np.random.default_rng(21)
POPULATIONS = RNG.normal(size=(6, 8, 3)).astype(np.float32)


def fitness(population):
    return jnp.sum((population - jnp.array([1.0, -0.5, 0.2])) ** 2, axis=-1)


def main():
    key, results = jax.random.key(0), {}
    for kind in (CMA_ES, Open_ES):
        strategy = kind(population_size=8, solution=jnp.zeros(3))
        params = strategy.default_params
        state = strategy.init(key, jnp.zeros(3), params)
        for noise in POPULATIONS:
            population = state.mean + 0.5 * noise
            state, _ = jax.jit(strategy.tell)(key, population, fitness(population), state, params)
        results |= {f"{kind.__name__}.mean": state.mean, f"{kind.__name__}.best": state.best_fitness}
    results["C"] = CMA_ES(population_size=8, solution=jnp.zeros(3)).default_params.c_1
    results["particles"] = PSO(population_size=8, solution=jnp.zeros(3)).default_params.inertia_coeff
    return results
