"""Random numbers from explicit keys: counter-based, splittable, the same in eager mode, under jit and under vmap.

A key is an array of two uint32, made by `key(seed)`. For one key, a function always returns the same numbers. For new
numbers, make new keys with `split` or `fold_in`, and use each key once. For one seed, JAX gives other numbers, unless
`backends.random.numbers` is "jax".

>>> first, second = random.split(random.key(0))
>>> bool((random.normal(first, (3,)) == random.normal(first, (3,))).all())
True
>>> bool((random.normal(first, (3,)) == random.normal(second, (3,))).any())
False
"""

from __future__ import annotations

from functorch_like.calling import lazy_imports as _lazy_imports
from functorch_like.random.continuous import cauchy as cauchy
from functorch_like.random.continuous import exponential as exponential
from functorch_like.random.continuous import gumbel as gumbel
from functorch_like.random.continuous import laplace as laplace
from functorch_like.random.continuous import logistic as logistic
from functorch_like.random.continuous import normal as normal
from functorch_like.random.continuous import truncated_normal as truncated_normal
from functorch_like.random.continuous import uniform as uniform
from functorch_like.random.discrete import bernoulli as bernoulli
from functorch_like.random.discrete import categorical as categorical
from functorch_like.random.discrete import rademacher as rademacher
from functorch_like.random.discrete import randint as randint
from functorch_like.random.key_reuse import check_key_reuse as check_key_reuse
from functorch_like.random.keys import PRNGKey as PRNGKey
from functorch_like.random.keys import bits as bits
from functorch_like.random.keys import clone as clone
from functorch_like.random.keys import fold_in as fold_in
from functorch_like.random.keys import key as key
from functorch_like.random.keys import key_data as key_data
from functorch_like.random.keys import key_impl as key_impl
from functorch_like.random.keys import split as split
from functorch_like.random.keys import wrap_key_data as wrap_key_data
from functorch_like.random.sampling import choice as choice
from functorch_like.random.sampling import permutation as permutation

with _lazy_imports.block(__name__):
    from functorch_like.random.counts import binomial as binomial
    from functorch_like.random.counts import geometric as geometric
    from functorch_like.random.counts import multinomial as multinomial
    from functorch_like.random.counts import poisson as poisson
    from functorch_like.random.gammas import ball as ball
    from functorch_like.random.gammas import beta as beta
    from functorch_like.random.gammas import chisquare as chisquare
    from functorch_like.random.gammas import dirichlet as dirichlet
    from functorch_like.random.gammas import f as f
    from functorch_like.random.gammas import gamma as gamma
    from functorch_like.random.gammas import generalized_normal as generalized_normal
    from functorch_like.random.gammas import loggamma as loggamma
    from functorch_like.random.gammas import t as t
    from functorch_like.random.inverses import double_sided_maxwell as double_sided_maxwell
    from functorch_like.random.inverses import lognormal as lognormal
    from functorch_like.random.inverses import maxwell as maxwell
    from functorch_like.random.inverses import pareto as pareto
    from functorch_like.random.inverses import rayleigh as rayleigh
    from functorch_like.random.inverses import triangular as triangular
    from functorch_like.random.inverses import wald as wald
    from functorch_like.random.inverses import weibull_min as weibull_min
    from functorch_like.random.vectors import multivariate_normal as multivariate_normal
    from functorch_like.random.vectors import orthogonal as orthogonal
