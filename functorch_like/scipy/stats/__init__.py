"""Distributions and statistics, under SciPy's names: `stats.norm.logpdf(x, loc, scale)`.

Each distribution is a module. It has some of the functions `pdf` or `pmf`, `cdf`, `sf` (beyond x); their logarithms
`log...`, with all digits far in the tails; and the inverses `ppf` of `cdf` and `isf` of `sf`.
"""

from __future__ import annotations

from functorch_like.calling import lazy_imports as _lazy_imports

with _lazy_imports.block(__name__):
    from functorch_like.scipy.stats import bernoulli as bernoulli
    from functorch_like.scipy.stats import beta as beta
    from functorch_like.scipy.stats import betabinom as betabinom
    from functorch_like.scipy.stats import binom as binom
    from functorch_like.scipy.stats import cauchy as cauchy
    from functorch_like.scipy.stats import chi2 as chi2
    from functorch_like.scipy.stats import dirichlet as dirichlet
    from functorch_like.scipy.stats import expon as expon
    from functorch_like.scipy.stats import gamma as gamma
    from functorch_like.scipy.stats import gennorm as gennorm
    from functorch_like.scipy.stats import geom as geom
    from functorch_like.scipy.stats import gumbel_l as gumbel_l
    from functorch_like.scipy.stats import gumbel_r as gumbel_r
    from functorch_like.scipy.stats import laplace as laplace
    from functorch_like.scipy.stats import logistic as logistic
    from functorch_like.scipy.stats import multinomial as multinomial
    from functorch_like.scipy.stats import multivariate_normal as multivariate_normal
    from functorch_like.scipy.stats import nbinom as nbinom
    from functorch_like.scipy.stats import norm as norm
    from functorch_like.scipy.stats import pareto as pareto
    from functorch_like.scipy.stats import poisson as poisson
    from functorch_like.scipy.stats import t as t
    from functorch_like.scipy.stats import truncnorm as truncnorm
    from functorch_like.scipy.stats import uniform as uniform
    from functorch_like.scipy.stats import vonmises as vonmises
    from functorch_like.scipy.stats import wrapcauchy as wrapcauchy
    from functorch_like.scipy.stats.density_estimates import gaussian_kde as gaussian_kde
    from functorch_like.scipy.stats.samples import mode as mode
    from functorch_like.scipy.stats.samples import rankdata as rankdata
    from functorch_like.scipy.stats.samples import sem as sem
