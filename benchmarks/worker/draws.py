"""Costs of draws of random numbers: `PYTHON draws.py SIDE` prints a JSON object of seconds by draw."""

import sys

from sides import load, measure

side = load(sys.argv[1])
random, lax, xp = side.random, side.lax, side.fnp


def walk(key):
    """The end of a random walk of 1,000 steps."""
    step = lambda position, key: (position + random.normal(key, (10,)), None)
    return lax.scan(step, xp.zeros(10), random.split(key, 1000))[0]


MANY, SOME = (1_000_000,), (100_000,)
DRAWS = {
    "bits, 1,000,000": lambda key: random.bits(key, MANY),
    "uniform, 1,000,000": lambda key: random.uniform(key, MANY),
    "normal, 1,000,000": lambda key: random.normal(key, MANY),
    "bernoulli, 1,000,000": lambda key: random.bernoulli(key, 0.3, MANY),
    "randint, 1,000,000": lambda key: random.randint(key, MANY, 0, 100),
    "categorical, 1,000 of 100": lambda key: random.categorical(key, xp.zeros((1000, 100))),
    "permutation of 100,000": lambda key: random.permutation(key, 100_000),
    "choice of 100 of 1,000": lambda key: random.choice(key, 1000, (100,), replace=False),
    "gamma, 100,000": lambda key: random.gamma(key, 2.0, SOME),
    "poisson of mean 3, 100,000": lambda key: random.poisson(key, 3.0, SOME),
    "poisson of mean 30, 100,000": lambda key: random.poisson(key, 30.0, SOME),
    "binomial, 100,000": lambda key: random.binomial(key, 100, 0.4, SOME),
    "split": random.split,
    "normal, 10": lambda key: random.normal(key, (10,)),
    "1,000 steps of normal, 10": walk,
}
measure(side, {name: (draw, (random.PRNGKey(0),)) for name, draw in DRAWS.items()})
