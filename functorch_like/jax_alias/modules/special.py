"""`jax.scipy.special`: associated Legendre functions, which SciPy no longer has."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functorch_like import jvp, lax
from functorch_like import numpy as fnp
from functorch_like.errors import ShapeError, UnsupportedError


def lpmn_values(m: int, n: int, z: Any, is_normalized: bool) -> Any:
    """Return the associated Legendre functions at points, with the sign (-1)**m of Condon and Shortley.

    Args:
        m: the highest order.
        n: the highest degree, equal to `m`.
        z: a vector of points.
        is_normalized: multiply each by the factor that makes spherical harmonics orthonormal.

    Returns:
        An array of shape (m + 1, n + 1, len(z)).

    Raises:
        UnsupportedError: if `m` and `n` differ.
        ShapeError: if `z` is not a vector.
    """
    if m != n:
        raise UnsupportedError(f"lpmn_values of orders up to {m} and degrees up to {n}", fix="give one number for both")
    z = fnp.asarray(z)
    if z.ndim != 1:
        raise ShapeError(f"lpmn_values takes a vector of points, got shape {z.shape}", fix="ravel the points")
    degree, order = np.meshgrid(np.arange(1.0, n + 1), np.arange(n + 1.0), indexing="ij")
    # P(l) = a z P(l - 1) - b P(l - 2) for orders below l (DLMF 14.10.3); P(l) of order l is c sqrt(1 - z**2) P(l - 1).
    gap = np.where(order < degree, degree - order, np.inf)
    if is_normalized:
        first = math.sqrt(0.25 / math.pi)
        a = np.sqrt((4 * degree**2 - 1) / (gap * (degree + order)))
        b = a * np.sqrt(np.maximum((degree - 1) ** 2 - order**2, 0) / (4 * (degree - 1) ** 2 - 1))
        c = -np.sqrt(1 + 0.5 / degree[:, 0])
    else:
        first = 1.0
        a, b, c = (2 * degree - 1) / gap, (degree + order - 1) / gap, 1 - 2 * degree[:, 0]
    sine = fnp.sqrt(1 - z * z)

    def step(state: Any, coefficients: Any) -> Any:
        before, last, top = state
        a, b, c, here = coefficients
        top = c * sine * top
        value = fnp.where(here, top, a * z * last - b * before)
        return (last, value, top), value

    top = fnp.full_like(z, first)
    start = fnp.zeros_like(z, shape=(n + 1, z.size)).at[0].set(top)
    rows = (*(fnp.asarray(x, z.dtype)[..., None] for x in (a, b, c)), (order == degree)[..., None])
    _, values = lax.scan(step, (fnp.zeros_like(start), start, top), rows)
    return fnp.concatenate([start[:, None], fnp.moveaxis(values, 0, 1)], axis=1)


def lpmn(m: int, n: int, z: Any) -> tuple[Any, Any]:
    """Return the associated Legendre functions at points, and their derivatives: see `lpmn_values`."""
    z = fnp.asarray(z)
    return jvp(lambda z: lpmn_values(m, n, z, False), (z,), (fnp.ones_like(z),))
