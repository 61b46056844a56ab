"""Gamma samples as JAX makes them: each element by itself, with a key of its own, until a proposal is accepted.

G. Marsaglia, W. W. Tsang, "A simple method for generating gamma variables", ACM TOMS 26, 2000.
"""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.lax.unbounded import run_while
from functorch_like.primitives.random.threefry import draw
from functorch_like.random import generators
from functorch_like.random.arguments import impl_of
from functorch_like.random.drawing import streams
from functorch_like.random.jax_numbers.continuous import exponential, normal, unit
from functorch_like.transforms.vmap import vmap


def gamma(key: Any, a: Any) -> Any:
    """Draw from the gamma distribution."""
    return _each(key, a, _gamma)


def log_gamma(key: Any, a: Any) -> Any:
    """Draw logarithms of gamma samples."""
    return _each(key, a, _log_gamma)


def _each(key: Any, a: Any, sample: Any) -> Any:
    shape = aval_of(a).shape
    n = math.prod(shape)
    if not n:
        return a
    keys = generators.split(draw(key), (n,), impl_of(key))
    return vmap(sample)(keys, fnp.reshape(a, (n,))).reshape(shape)


def _gamma(key: Any, a: Any) -> Any:
    d, v, last = _accepted(key, a)
    power = (1 - unit(last, (), a.dtype)) ** (1 / a)
    return d * v * fnp.where(a >= 1, 1, power)


def _log_gamma(key: Any, a: Any) -> Any:
    d, v, last = _accepted(key, a)
    log = -exponential(last, (), a.dtype)
    return fnp.log(d) + fnp.log(v) + fnp.where((a >= 1) | (log == 0), 0, log / a)


def _accepted(key: Any, a: Any) -> tuple[Any, Any, Any]:
    """Return d and v, whose product is a gamma sample of `a`, or of `a + 1` if it is below 1; and a key."""
    dtype = a.dtype
    d = fnp.where(a >= 1, a, a + 1) - 1 / 3
    c = 1 / 3 / fnp.sqrt(d)

    def propose(carry: Any) -> Any:
        key, one, two = streams(carry[0], 3)

        def root(inner: Any) -> Any:
            chain, current = streams(inner[0], 2)
            x = normal(current, (), dtype)
            return chain, x, 1 + x * c

        nothing = fnp.zeros((), dtype)
        _, x, v = run_while(lambda inner: inner[2] <= 0, root, (one, nothing, nothing), "gamma", expected_steps=1)
        return key, x * x, v * v * v, unit(two, (), dtype)

    def refused(carry: Any) -> Any:
        _, x, v, u = carry
        return (u >= 1 - 0.0331 * (x * x)) & (fnp.log(u) >= x * 0.5 + d * ((1 - v) + fnp.log(v)))

    key, last = streams(key, 2)
    start = (key, *(fnp.full((), x, dtype) for x in (0, 1, 2)))
    return d, run_while(refused, propose, start, "gamma", expected_steps=1)[2], last
