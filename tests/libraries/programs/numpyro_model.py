"""The log density and its gradient of a hierarchical model in numpyro, its parameters given."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro import handlers
from numpyro.infer.util import log_density

RNG = np.random.default_rng(6)
Y = RNG.normal(size=(3, 5)).astype(np.float32)


def model(y):
    mu = numpyro.sample("mu", dist.Normal(0, 2))
    tau = numpyro.sample("tau", dist.HalfCauchy(1.0))
    with numpyro.plate("groups", 3):
        theta = numpyro.sample("theta", dist.StudentT(4.0, mu, tau))
    with numpyro.plate("points", 5), numpyro.plate("rows", 3, dim=-2):
        numpyro.sample("y", dist.Laplace(theta[:, None], 1.0), obs=y)


def main():
    params = {"mu": jnp.asarray(0.3), "tau": jnp.asarray(0.7), "theta": jnp.asarray([0.1, -0.2, 0.5])}
    density = jax.jit(lambda p: log_density(model, (Y,), {}, p)[0])
    trace = handlers.trace(handlers.substitute(handlers.seed(model, jax.random.PRNGKey(0)), params)).get_trace(Y)
    dirichlet = dist.Dirichlet(jnp.array([1.0, 2.0]))
    normal = dist.MultivariateNormal(jnp.zeros(2), jnp.array([[2.0, 0.5], [0.5, 1.0]]))
    probabilities = {
        "gamma": dist.Gamma(2.0, 3.0).log_prob(0.4), "dirichlet": dirichlet.log_prob(jnp.array([0.3, 0.7])),
        "normal": normal.log_prob(jnp.ones(2)), "binomial": dist.Binomial(9, logits=0.3).log_prob(4),
        "beta": dist.Beta(2.0, 0.5).cdf(0.3),
    }  # fmt: skip
    gradients = jax.grad(density)(params)
    return {"density": density(params), **gradients, **probabilities, "sites": len(trace)}
