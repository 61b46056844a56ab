"""Roots, fixed points, least squares and minima by optimistix, and a derivative through a root."""

import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx

X = np.linspace(0, 2, 12).astype(np.float32)
Y = (1.5 * np.exp(-0.7 * X) + 0.2).astype(np.float32)


def root(scale):
    solver = optx.Newton(rtol=1e-6, atol=1e-6)
    return optx.root_find(lambda y, s: y**3 + s * y - 2.0, solver, jnp.array(1.0), scale).value


def residuals(parameters, data):
    x, y = data
    return parameters["a"] * jnp.exp(-parameters["b"] * x) + parameters["c"] - y


def main():
    start = {"a": jnp.array(1.0), "b": jnp.array(1.0), "c": jnp.array(0.0)}
    fit = optx.least_squares(residuals, optx.LevenbergMarquardt(rtol=1e-6, atol=1e-6), start, (X, Y)).value
    rosenbrock = lambda y, args: (1 - y[0]) ** 2 + 10.0 * (y[1] - y[0] ** 2) ** 2
    minimum = optx.minimise(rosenbrock, optx.BFGS(rtol=1e-7, atol=1e-7), jnp.array([-0.5, 0.8]), max_steps=400).value
    fixed = optx.fixed_point(lambda y, args: jnp.cos(y), optx.FixedPointIteration(1e-6, 1e-6), jnp.array(0.5)).value
    bisected = optx.root_find(
        lambda y, args: y**2 - 2.0, optx.Bisection(1e-6, 1e-6), jnp.array(1.0), options={"lower": 0.0, "upper": 2.0}
    ).value
    slope = jax.grad(root)(jnp.array(1.0))
    return {"root": root(jnp.array(1.0)), "slope": slope, **fit, "minimum": minimum, "fixed": fixed, "half": bisected}
