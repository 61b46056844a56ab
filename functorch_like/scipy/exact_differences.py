"""Differences of products and of sums that keep their digits where they are small.

Compilers may fuse a product and a sum, and round once. So products whose roundings would count are products of
numbers of few digits, which are exact in either way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like import dtypes, lax
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.numpy import promotion
from functorch_like.scipy.slopes import with_slopes


def _upper(x: Any) -> Any:
    """x without the lower half of its digits, in double precision."""
    bits = lax.bitcast_convert_type(x, dtypes.int64) & np.int64(-(2**27))
    return lax.bitcast_convert_type(bits, dtypes.float64)


def _product_less(n: Any, x: Any, a: Any) -> Any:
    aval = aval_of(n)
    if aval.dtype != dtypes.float64:  # two numbers of single precision have an exact product in double precision
        wide = [promotion.convert(v, dtypes.float64) for v in (n, x, a)]
        return promotion.convert(wide[0] * wide[1] - wide[2], aval.dtype, aval.weak_type)
    n_upper, x_upper = _upper(n), _upper(x)
    return ((n_upper * x_upper - a) + n_upper * (x - x_upper)) + (n - n_upper) * x


#: n x - a, for numbers of one dtype and shape.
product_less = with_slopes(
    _product_less, lambda out, n, x, a: x, lambda out, n, x, a: n, lambda out, n, x, a: -fnp.ones_like(a)
)


def rounding_of_sum(a: Any, b: Any) -> Any:
    """Return what a + b, as it is rounded, exceeds the sum by (D. E. Knuth, "Seminumerical Algorithms", 4.2.2)."""
    n = a + b
    other = n - a
    return -((a - (n - other)) + (b - other))


def rounding_of_total(a: Any, n: Any, axis: int) -> Any:
    """Return what n exceeds the sum of positive numbers by: that of their upper digits, on one grid, is exact."""
    aval = aval_of(n)
    whole = promotion.convert(n, dtypes.float64)
    bits = lax.bitcast_convert_type(whole, dtypes.int64) & np.int64(-(2**52))
    grid = fnp.expand_dims(lax.bitcast_convert_type(bits, dtypes.float64) * 2.0**-40, axis)  # a power of two
    wide = promotion.convert(a, dtypes.float64)
    upper = fnp.round(wide / grid) * grid
    out = (whole - fnp.sum(upper, axis)) - fnp.sum(wide - upper, axis)
    return promotion.convert(out, aval.dtype, aval.weak_type)


def sum_less_one(x: Any, axis: int) -> Any:
    """Return the sum of numbers from 0 to 1, less 1: that of their upper digits, on one grid, is exact."""
    aval = aval_of(x)
    wide = promotion.convert(x, dtypes.float64)
    upper = fnp.round(wide * 2.0**30) / 2.0**30
    out = (fnp.sum(upper, axis) - 1) + fnp.sum(wide - upper, axis)
    return promotion.convert(out, aval.dtype, aval.weak_type)
