"""Random numbers from explicit keys: counter-based, splittable, the same stream in eager mode, jit and vmap.

A key is an array of two uint32, made by `key(seed)`. Functions of a key always give the same; for new numbers, make
new keys with `split` or `fold_in`, and use each once. The numbers are not those of JAX for the same seed.

>>> first, second = random.split(random.key(0))
>>> bool((random.normal(first, (3,)) == random.normal(first, (3,))).all())
True
>>> bool((random.normal(first, (3,)) == random.normal(second, (3,))).any())
False
"""

# ruff: noqa: F401, I001
# fmt: off
from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from functorch_like.calling import lazy_imports as _late
from functorch_like.random.continuous import (
    cauchy, exponential, gumbel, laplace, logistic, normal, truncated_normal, uniform,
)
from functorch_like.random.discrete import bernoulli, categorical, rademacher, randint
from functorch_like.random.keys import PRNGKey, bits, clone, fold_in, key, key_data, key_impl, split, wrap_key_data
from functorch_like.random.sampling import choice, permutation

if _TYPE_CHECKING:
    from functorch_like.random.counts import binomial, geometric, multinomial, poisson
    from functorch_like.random.gammas import (
        ball, beta, chisquare, dirichlet, f, gamma, generalized_normal, loggamma, t,
    )
    from functorch_like.random.inverses import (
        double_sided_maxwell, lognormal, maxwell, pareto, rayleigh, triangular, wald, weibull_min,
    )
    from functorch_like.random.vectors import multivariate_normal, orthogonal

# Imported when they are asked for.
__getattr__, __dir__ = _late.attach(
    __name__,
    {
        "counts": ("binomial", "geometric", "multinomial", "poisson"),
        "gammas": ("ball", "beta", "chisquare", "dirichlet", "f", "gamma", "generalized_normal", "loggamma", "t"),
        "inverses": (
            "double_sided_maxwell", "lognormal", "maxwell", "pareto", "rayleigh", "triangular", "wald", "weibull_min",
        ),
        "vectors": ("multivariate_normal", "orthogonal"),
    },
)
