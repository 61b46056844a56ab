"""An ordinary differential equation by diffrax: adaptive steps, and the derivative with respect to a parameter."""

import diffrax
import jax
import jax.numpy as jnp


def solve(rate, y0):
    term = diffrax.ODETerm(lambda t, y, args: jnp.stack([y[1], args * (1 - y[0] ** 2) * y[1] - y[0]]))
    return diffrax.diffeqsolve(
        term, diffrax.Tsit5(), 0.0, 3.0, 0.05, y0, rate, saveat=diffrax.SaveAt(ts=jnp.linspace(0.0, 3.0, 4)),
        stepsize_controller=diffrax.PIDController(rtol=1e-5, atol=1e-6),
    ).ys  # fmt: skip


def main():
    y0 = jnp.array([1.0, 0.5])
    return {"ys": jax.jit(solve)(0.7, y0), "slope": jax.grad(lambda r: solve(r, y0)[-1, 0])(0.7)}
