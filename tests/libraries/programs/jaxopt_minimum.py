"""Minima by jaxopt: L-BFGS, Gauss-Newton and an implicit derivative."""

import jax
import jax.numpy as jnp
import jaxopt
import numpy as np


def rosenbrock(x):
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def main():
    found = jaxopt.LBFGS(rosenbrock, maxiter=100, tol=1e-4).run(jnp.array([-1.2, 1.0, 0.8]))
    x = np.linspace(0, 1, 9).astype(np.float32)
    residual = lambda p: p[0] * jnp.exp(-p[1] * x) - 2.0 * jnp.exp(-1.3 * x)
    fitted = jaxopt.GaussNewton(residual).run(jnp.array([1.0, 1.0]))
    ridge = jaxopt.GradientDescent(lambda w, a: jnp.sum((w - x) ** 2) + a * jnp.sum(w**2), maxiter=200, tol=1e-6)
    slope = jax.grad(lambda a: jnp.sum(ridge.run(jnp.zeros(9), a).params))(0.5)
    return {"minimum": found.params, "fitted": fitted.params, "slope": slope}
