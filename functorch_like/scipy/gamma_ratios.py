"""The gamma function, and logarithms of its quotients, without the cancellation of large logarithms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.numpy import promotion
from functorch_like.primitives import elementwise
from functorch_like.transforms.custom.custom_jvp import custom_jvp

# DLMF 5.11.1.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def stirling(z: Any) -> Any:
    """Return log gamma(z) - ((z - 1/2) log z - z + log(2 pi) / 2) for z >= 10."""
    inverse = 1 / z
    square, total = inverse * inverse, _STIRLING[-1]
    for c in _STIRLING[-2::-1]:
        total = total * square + c
    return inverse * total


_WHOLE = [float(math.factorial(k)) for k in range(171)]


@custom_jvp
def gamma(x: Any) -> Any:
    """The gamma function, by Stirling's series from 10 on, by the recurrence below, and by reflection left of 1/2.

    The power in it is computed as a square, since it overflows before the function does. Whole numbers have a table.
    """
    left = x < 0.5
    y = fnp.minimum(fnp.where(left, 1 - x, x), 200)
    small = y < 10
    z = fnp.where(small, y + 10, y)
    root = z ** (0.5 * z - 0.25)
    out = math.sqrt(2 * math.pi) * (root * fnp.exp(-z)) * root * fnp.exp(stirling(z))
    product, step = 1, fnp.where(small, y, 1)
    for k in range(10):
        product = product * (step + k)
    out = fnp.where(small, out / product, out)
    whole = (fnp.floor(y) == y) & (y <= 171)
    table = fnp.asarray(np.array(_WHOLE), aval_of(x).dtype)
    out = fnp.where(whole, table[promotion.convert(fnp.where(whole, y, 1), dtypes.default_int()) - 1], out)
    nearest = fnp.round(x)
    sine = fnp.sin(math.pi * (x - nearest)) * (1 - 2 * (nearest - 2 * fnp.floor(nearest / 2)))
    pole = left & (x == nearest)
    reflected = math.pi / (fnp.where(pole | ~left, 1, sine) * out)
    reflected = fnp.where(pole, fnp.where(x == 0, 1 / x, math.nan), reflected)
    return fnp.where(left, reflected, out)


gamma.defjvps(lambda g, out, x: g * out * elementwise.digamma(x))


def betaln(a: Any, b: Any) -> Any:
    """Return log |B(a, b)|. For large arguments it combines the large terms of three Stirling series, DLMF 5.11.1."""
    big, small = fnp.maximum(a, b), fnp.minimum(a, b)
    plain = elementwise.lgamma(small) + (elementwise.lgamma(big) - elementwise.lgamma(a + b))
    large, both = big >= 10, small >= 10
    usable = large & (small > 0) & fnp.isfinite(big)
    x = fnp.where(usable, big, 10)
    y = fnp.where(usable, small, 1)
    z = fnp.where(usable & both, small, 10)
    rest = -(x - 0.5) * fnp.log1p(y / x)
    one = elementwise.lgamma(y) + rest - y * fnp.log(x + y) + y + stirling(x) - stirling(x + y)
    rest = -(x - 0.5) * fnp.log1p(z / x) - z * fnp.log1p(x / z) - 0.5 * fnp.log(z)
    two = rest + 0.5 * math.log(2 * math.pi) + stirling(x) + stirling(z) - stirling(x + z)
    return fnp.where(usable, fnp.where(both, two, one), plain)


def log_choose(n: Any, k: Any) -> Any:
    """Return the logarithm of the binomial coefficient, for 0 <= k <= n."""
    return -fnp.log1p(n) - betaln(n - k + 1, k + 1)
