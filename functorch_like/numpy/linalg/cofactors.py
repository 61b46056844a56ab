"""Determinants and their derivatives from LU factors, as numbers times powers of two that are multiplied last.

Products of some entries on the diagonal of U may be too large or too small for the dtype where the whole is not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.numpy import promotion
from functorch_like.numpy.floating_point import frexp, ldexp
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.linalg import matrix_algebra as M
from functorch_like.primitives.linalg.triangular_solve import triangular_solve
from functorch_like.primitives.reductions import cumulative, reductions

SIDES = {"left_side": True, "transpose_a": False, "conjugate_a": False}


def exponents(x: Any) -> Any:
    """Return k, so that |x| is near 2**k; 0 for zeros. It is constant in derivatives."""
    size = structural.stop_gradient(x)
    if dtypes.is_complex(aval_of(size).dtype):
        size = elementwise.max(elementwise.abs(elementwise.real(size)), elementwise.abs(elementwise.imag(size)))
    mantissa, k = frexp(size)
    low = elementwise.lt(elementwise.abs(mantissa), promotion.like(mantissa, 0.7))
    return elementwise.select_n(low, k, k - 1)


def times_power(x: Any, k: Any) -> Any:
    """Return x 2**k."""
    if dtypes.is_complex(aval_of(x).dtype):
        return elementwise.complex(ldexp(elementwise.real(x), k), ldexp(elementwise.imag(x), k))
    return ldexp(x, k)


def product(x: Any) -> tuple[Any, Any]:
    """Return the product along the last axis, in parts: m and k of m 2**k."""
    k = exponents(x)
    axes = (aval_of(x).ndim - 1,)
    return reductions.reduce_prod(times_power(x, -k), axes=axes), structural.reduce_sum(k, axes=axes)


def cofactors(factors: Any, below: Any, parity: Any) -> Any:
    """Return the transposed cofactors adj(a), from the factors P a = L U.

    With u for the last entry of U, and W for U with 1 in its place, adj(a) is W^-1 diag(u, ..., u, 1) L^-1 P times the
    product of the other entries on the diagonal. Nothing is divided by u, which is 0 for a matrix of rank n - 1.

    Args:
        factors: L below the diagonal and U.
        below: L^-1 P.
        parity: the determinant of P.
    """
    *lead, n = aval_of(M.diagonal(factors)).shape
    number = structural.iota(dtype=dtypes.int32, shape=(*lead, n), dimension=len(lead))
    at_end = elementwise.eq(number, structural.full_like(number, n - 1))
    last = structural.reshape(M.block(factors, (n - 1, n), (n - 1, n)), shape=(*lead, 1))
    ones = structural.full_like(below, 1)
    w = M.triu(elementwise.select_n(M.rows(at_end, M.on_diagonal(factors)), factors, ones))
    diagonal = M.diagonal(w)

    # Columns of W, and then its rows, are scaled such that their greatest entry, and the diagonal, are near 1.
    size = structural.stop_gradient(elementwise.abs(w))
    by_column = exponents(reductions.reduce_max(size, axes=(aval_of(w).ndim - 2,)))
    by_row = exponents(diagonal) - by_column
    of_last = exponents(last)
    # A row of the product is a sum over what is right of the diagonal: in units of its greatest factor.
    factor = elementwise.select_n(at_end, promotion.broadcast(of_last, (*lead, n)), structural.full_like(by_row, 0))
    factor = factor - by_row
    unit = cumulative.cummax(factor, axis=len(lead), reverse=True)
    row, column = M.rows, M.columns
    down, across = row(unit + by_row, number_like(w)), column(unit - by_column, number_like(w))
    scaled = times_power(w, across - down)
    ends = promotion.broadcast(times_power(last, -of_last), (*lead, n))
    ends = elementwise.select_n(at_end, ends, structural.full_like(ends, 1))
    right = times_power(elementwise.mul(below, M.rows(ends, below)), row(factor - unit, number_like(w)))
    inverse = triangular_solve(scaled, right, **SIDES, lower=False, unit_diagonal=False)
    others, k = product(diagonal)
    whole = structural.reshape(k, shape=(*lead, 1)) + unit - by_column
    front = structural.broadcast_in_dim(
        elementwise.mul(parity, others), shape=aval_of(w).shape, broadcast_dimensions=tuple(range(len(lead)))
    )
    return times_power(elementwise.mul(front, inverse), row(whole, number_like(w)))


def number_like(x: Any) -> Any:
    """Return zeros of the shape of x as integers."""
    return structural.full(aval_of(x).shape, 0, np.dtype("int32"))
