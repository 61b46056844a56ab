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

from functorch_like.random.continuous import (
    cauchy, exponential, gumbel, laplace, logistic, normal, truncated_normal, uniform,
)
from functorch_like.random.discrete import bernoulli, categorical, rademacher, randint
from functorch_like.random.keys import PRNGKey, bits, fold_in, key, key_data, split
from functorch_like.random.sampling import choice, permutation
