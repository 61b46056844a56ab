"""Bessel functions of the first kind, of all orders up to one."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from functorch_like import dtypes, lax
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, DtypeError
from functorch_like.numpy import promotion
from functorch_like.numpy.operands import given
from functorch_like.scipy.special.makers import in_double
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """Bessel functions of the first kind J0(z) to Jv(z), by Miller's algorithm, DLMF 3.6(iii).

    Args:
        z: array or number, real; |z| must not be greater than `n_iter`.
        v: the highest order, a Python int.
        n_iter: bound on |z|: the recurrence runs down from forty orders above it, or above v.

    Returns:
        (v + 1, ...).

    Raises:
        ArgumentError: for negative v.
        DtypeError: for complex numbers.

    >>> ft.scipy.special.bessel_jn(fnp.asarray([0.0, 1.0]), v=1).round(3).shape
    (2, 2)
    """
    v, n_iter = operator.index(v), operator.index(n_iter)
    if v < 0:
        raise promotion.error(ArgumentError, f"special.bessel_jn with v={v}", "use 0 or more")
    (z,) = given(z)
    if dtypes.is_complex(aval_of(z).dtype):
        raise promotion.error(DtypeError, f"special.bessel_jn of {aval_of(z)!r}", "take the real part")
    return _bessel_jn(z, v=v, start=2 * (max(v, n_iter) // 2) + 40)


@eager_jit(static=("v", "start"), ints=True)
def _bessel_jn(z: Any, v: int, start: int) -> Any:
    return in_double(lambda z: _recurrence(z, v, start))(promotion.to_inexact(z))


def _recurrence(z: Any, v: int, start: int) -> Any:
    """Compute J(k - 1) = 2 k J(k) / z - J(k + 1) downwards; J0 + 2 J2 + 2 J4 + ... = 1 gives the scale."""
    zero = z == 0
    y = fnp.where(zero, 1, z)

    def step(state: Any, k: Any) -> Any:
        above, here, total = state
        below = 2 * k / y * here - above
        even = promotion.convert(k % 2 == 1, dtypes.float64)
        total = total + 2 * even * below
        big = fnp.abs(below) > 1e100
        scale = fnp.where(big, 1e-100, fnp.ones_like(below))
        return (here * scale, below * scale, total * scale), (below, big)

    first = (fnp.zeros_like(y), fnp.full_like(y, 1e-300), fnp.zeros_like(y))
    orders = fnp.arange(start, 0, -1, dtype=dtypes.float64)
    (_, _, total), (values, shrunk) = lax.scan(step, first, orders)
    total = total - fnp.where(shrunk[-1], 1e-100 * values[-1], values[-1])  # J0 was counted twice
    values, shrunk = fnp.flip(values, 0)[: v + 1], fnp.flip(shrunk, 0)[: v + 1]
    # A value was scaled down at its own step and at all later ones, which are those of lower orders.
    later = fnp.cumsum(promotion.convert(shrunk, dtypes.float64), 0)
    out = values * fnp.exp2(-later * 332.19280948873623) / total
    at_zero = fnp.reshape(promotion.convert(fnp.arange(v + 1) == 0, dtypes.float64), (-1,) + (1,) * aval_of(z).ndim)
    return fnp.where(zero, at_zero, out)
