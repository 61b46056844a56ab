"""Every distribution gives the same numbers eagerly, under jit, under vmap over keys, and under both."""

import inspect

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import random as R

N = (150,)
WEIGHTS = np.array([0.1, 0.2, 0.3, 0.2, 0.2], np.float32)
CASES = {
    "uniform": lambda k: R.uniform(k, N, minval=-0.3, maxval=2.7),
    "normal": lambda k: R.normal(k, N),
    "normal, complex": lambda k: R.normal(k, N, dtype="complex64"),
    "truncated_normal": lambda k: R.truncated_normal(k, -1.3, 2.0, N),
    "exponential": lambda k: R.exponential(k, N),
    "laplace": lambda k: R.laplace(k, N),
    "logistic": lambda k: R.logistic(k, N),
    "gumbel": lambda k: R.gumbel(k, N),
    "cauchy": lambda k: R.cauchy(k, N),
    "bernoulli": lambda k: R.bernoulli(k, 0.3, N),
    "categorical": lambda k: R.categorical(k, fnp.arange(5.0), shape=N),
    "rademacher": lambda k: R.rademacher(k, N),
    "randint": lambda k: R.randint(k, N, 0, 1000),
    "bits": lambda k: R.bits(k, N),
    "choice": lambda k: R.choice(k, 5, N, p=WEIGHTS),
    "choice, no replacement": lambda k: R.choice(k, 200, N, replace=False),
    "permutation": lambda k: R.permutation(k, 100),
    "split": lambda k: R.split(k, 5),
    "fold_in": lambda k: R.fold_in(k, 5),
    "binomial": lambda k: R.binomial(k, 30, 0.3, N),
    "geometric": lambda k: R.geometric(k, 0.3, N),
    "multinomial": lambda k: R.multinomial(k, 30, fnp.asarray(WEIGHTS)),
    "poisson": lambda k: R.poisson(k, 3.7, N),
    "poisson, large": lambda k: R.poisson(k, 300.0, N),
    "ball": lambda k: R.ball(k, 3, shape=N),
    "beta": lambda k: R.beta(k, 0.7, 1.3, N),
    "chisquare": lambda k: R.chisquare(k, 3.0, N),
    "dirichlet": lambda k: R.dirichlet(k, fnp.asarray(WEIGHTS), N),
    "f": lambda k: R.f(k, 3.0, 4.0, N),
    "gamma": lambda k: R.gamma(k, 1.7, N),
    "gamma, large": lambda k: R.gamma(k, 1.7, (700,)),
    "gamma, below 1": lambda k: R.gamma(k, 0.3, N),
    "generalized_normal": lambda k: R.generalized_normal(k, 1.5, N),
    "loggamma": lambda k: R.loggamma(k, 0.3, N),
    "t": lambda k: R.t(k, 3.0, N),
    "double_sided_maxwell": lambda k: R.double_sided_maxwell(k, 0.1, 1.3, N),
    "lognormal": lambda k: R.lognormal(k, 1.3, N),
    "maxwell": lambda k: R.maxwell(k, N),
    "pareto": lambda k: R.pareto(k, 1.7, N),
    "rayleigh": lambda k: R.rayleigh(k, 1.7, N),
    "triangular": lambda k: R.triangular(k, -0.1, 0.3, 2.0, N),
    "wald": lambda k: R.wald(k, 1.7, N),
    "weibull_min": lambda k: R.weibull_min(k, 1.3, 1.7, N),
    "multivariate_normal": lambda k: R.multivariate_normal(k, fnp.zeros(3), fnp.eye(3) * 2.0, N),
    "orthogonal": lambda k: R.orthogonal(k, 4),
}
KEYS = {"PRNGKey", "clone", "key", "key_data", "key_impl", "wrap_key_data"}

#: Those whose last operations XLA compiles differently where the parameters are constants, in units of 2**-24.
ROUNDED = {"ball": 8, "t": 8}


def test_every_distribution_is_here():
    named = {name for name in dir(R) if not name.startswith("_") and inspect.isroutine(getattr(R, name))}
    named = {n for n in named if getattr(R, n).__module__.startswith("functorch_like.random")}
    assert named - KEYS <= {name.split(",")[0] for name in CASES}


@pytest.mark.parametrize("name", CASES)
def test_numbers_do_not_depend_on_transformations(name):
    f, keys = CASES[name], R.split(R.key(3), 2)
    expected = np.stack([np.asarray(f(k)) for k in keys])
    jitted = ft.jit(f)
    for way, result in {
        "jit": np.stack([np.asarray(jitted(k)) for k in keys]),
        "vmap": ft.vmap(f)(keys),
        "jit of vmap": ft.jit(ft.vmap(f))(keys),
    }.items():
        if name in ROUNDED:
            np.testing.assert_allclose(result, expected, rtol=ROUNDED[name] * 2.0**-24, err_msg=way)
        else:
            np.testing.assert_array_equal(result, expected, err_msg=way)
