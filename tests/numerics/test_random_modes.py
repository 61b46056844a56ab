"""Every distribution gives the same numbers eagerly, under jit, under vmap over keys, and under both."""

import inspect

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import random

N = (150,)
WEIGHTS = np.array([0.1, 0.2, 0.3, 0.2, 0.2], np.float32)
CASES = {
    "uniform": lambda k: random.uniform(k, N, minval=-0.3, maxval=2.7),
    "normal": lambda k: random.normal(k, N),
    "normal, complex": lambda k: random.normal(k, N, dtype="complex64"),
    "truncated_normal": lambda k: random.truncated_normal(k, -1.3, 2.0, N),
    "exponential": lambda k: random.exponential(k, N),
    "laplace": lambda k: random.laplace(k, N),
    "logistic": lambda k: random.logistic(k, N),
    "gumbel": lambda k: random.gumbel(k, N),
    "cauchy": lambda k: random.cauchy(k, N),
    "bernoulli": lambda k: random.bernoulli(k, 0.3, N),
    "categorical": lambda k: random.categorical(k, fnp.arange(5.0), shape=N),
    "rademacher": lambda k: random.rademacher(k, N),
    "randint": lambda k: random.randint(k, N, 0, 1000),
    "bits": lambda k: random.bits(k, N),
    "choice": lambda k: random.choice(k, 5, N, p=WEIGHTS),
    "choice, no replacement": lambda k: random.choice(k, 200, N, replace=False),
    "permutation": lambda k: random.permutation(k, 100),
    "split": lambda k: random.split(k, 5),
    "fold_in": lambda k: random.fold_in(k, 5),
    "binomial": lambda k: random.binomial(k, 30, 0.3, N),
    "geometric": lambda k: random.geometric(k, 0.3, N),
    "multinomial": lambda k: random.multinomial(k, 30, fnp.asarray(WEIGHTS)),
    "poisson": lambda k: random.poisson(k, 3.7, N),
    "poisson, large": lambda k: random.poisson(k, 300.0, N),
    "ball": lambda k: random.ball(k, 3, shape=N),
    "beta": lambda k: random.beta(k, 0.7, 1.3, N),
    "chisquare": lambda k: random.chisquare(k, 3.0, N),
    "dirichlet": lambda k: random.dirichlet(k, fnp.asarray(WEIGHTS), N),
    "f": lambda k: random.f(k, 3.0, 4.0, N),
    "gamma": lambda k: random.gamma(k, 1.7, N),
    "gamma, large": lambda k: random.gamma(k, 1.7, (700,)),
    "gamma, below 1": lambda k: random.gamma(k, 0.3, N),
    "generalized_normal": lambda k: random.generalized_normal(k, 1.5, N),
    "loggamma": lambda k: random.loggamma(k, 0.3, N),
    "t": lambda k: random.t(k, 3.0, N),
    "double_sided_maxwell": lambda k: random.double_sided_maxwell(k, 0.1, 1.3, N),
    "lognormal": lambda k: random.lognormal(k, 1.3, N),
    "maxwell": lambda k: random.maxwell(k, N),
    "pareto": lambda k: random.pareto(k, 1.7, N),
    "rayleigh": lambda k: random.rayleigh(k, 1.7, N),
    "triangular": lambda k: random.triangular(k, -0.1, 0.3, 2.0, N),
    "wald": lambda k: random.wald(k, 1.7, N),
    "weibull_min": lambda k: random.weibull_min(k, 1.3, 1.7, N),
    "multivariate_normal": lambda k: random.multivariate_normal(k, fnp.zeros(3), fnp.eye(3) * 2.0, N),
    "orthogonal": lambda k: random.orthogonal(k, 4),
}
KEYS = {"PRNGKey", "check_key_reuse", "clone", "key", "key_data", "key_impl", "wrap_key_data"}

#: Tolerances in units of 2**-24 where XLA compiles the last operations differently for constant parameters.
ROUNDED = {"ball": 8, "t": 8}
#: Tolerances where programs may run in the quick tier: the last digits of all floats may differ.
ROUNDED_QUICKLY = dict.fromkeys(CASES, 8)


def test_every_distribution_is_here():
    named = {name for name in dir(random) if not name.startswith("_") and inspect.isroutine(getattr(random, name))}
    named = {n for n in named if getattr(random, n).__module__.startswith("functorch_like.random")}
    assert named - KEYS <= {name.split(",")[0] for name in CASES}


@pytest.mark.parametrize("name", CASES)
def test_numbers_do_not_depend_on_transformations(name):
    f, keys = CASES[name], random.split(random.key(3), 2)
    expected = np.stack([np.asarray(f(k)) for k in keys])
    jitted = ft.jit(f)
    rounded = ROUNDED if ft.backends.compilation.tiers == "off" else ROUNDED_QUICKLY
    for way, result in {
        "jit": np.stack([np.asarray(jitted(k)) for k in keys]),
        "vmap": ft.vmap(f)(keys),
        "jit of vmap": ft.jit(ft.vmap(f))(keys),
    }.items():
        if name in rounded and expected.dtype.kind in "fc":
            within = rounded[name] * 2.0**-24
            np.testing.assert_allclose(result, expected, rtol=within, atol=within, err_msg=way)
        else:
            np.testing.assert_array_equal(result, expected, err_msg=way)
