"""A step of NUTS on a hierarchical logistic regression of numpyro: 40 groups, 8 features, 1,000 rows."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import NUTS, init_to_value

GROUPS, FEATURES, ROWS = 40, 8, 1000


def model(x, group, y):
    """A model with a slope for each group, drawn around a common slope."""
    with numpyro.plate("features", FEATURES):
        mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
        scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    with numpyro.plate("groups", GROUPS):
        slopes = numpyro.sample("slopes", dist.Normal(mean, scale).to_event(1))
        shift = numpyro.sample("shift", dist.StudentT(4.0, 0.0, 1.0))
    with numpyro.plate("rows", ROWS):
        numpyro.sample("y", dist.Bernoulli(logits=(x * slopes[group]).sum(-1) + shift[group]), obs=y)


def make(given):
    """Return the step, its arguments, and a function of its results: the value that the sides must agree on."""
    draw = np.random.default_rng(1)
    x = draw.normal(size=(ROWS, FEATURES)).astype(np.float32)
    group = draw.integers(0, GROUPS, ROWS).astype(np.int32)
    y = draw.integers(0, 2, ROWS).astype(np.int32)
    start = given({"mean": jnp.zeros(FEATURES), "slopes": jnp.zeros((GROUPS, FEATURES)), "shift": jnp.zeros(GROUPS)})
    kernel = NUTS(model, init_strategy=init_to_value(values=start | {"scale": jnp.ones(FEATURES)}))
    state = kernel.init(jax.random.PRNGKey(0), 100, None, (x, group, y), {})
    return lambda state: kernel.sample(state, (x, group, y), {}), (state,), lambda out: state.potential_energy
