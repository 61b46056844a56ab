"""Determinants, whose derivatives come from the LU factors of the value: P a = L U."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError
from functorch_like.numpy import promotion
from functorch_like.numpy.linalg.cofactors import SIDES, cofactors, product, times_power
from functorch_like.numpy.linalg.decompositions import matrices
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.linalg import cholesky_lu
from functorch_like.primitives.linalg import matrix_algebra as M
from functorch_like.primitives.linalg.triangular_solve import triangular_solve
from functorch_like.primitives.reductions import reductions
from functorch_like.transforms.custom.custom_jvp import custom_jvp
from functorch_like.transforms.eager_jit import eager_jit, with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


class SlogdetResult(NamedTuple):
    """Sign of a determinant (phase, for complex matrices), and the logarithm of its absolute value."""

    sign: Array
    logabsdet: Array


@with_kernel(1)
def det(a: ArrayLike) -> Array:
    """Determinant. Its derivative, the cofactors, is finite for all matrices up to 3 by 3.

    For larger ones it is finite if no entry but the last is 0 on the diagonal of U in P a = L U, as for most matrices
    of rank n - 1.

    Args:
        a: array of shape (..., n, n).

    Returns:
        An array of shape (...).

    >>> fnp.linalg.det(fnp.asarray([[1.0, 2.0], [3.0, 4.0]])).item()
    -2.0
    """
    return _det(matrices(a, "det", True))


@eager_jit
def _det(a: Any) -> Any:
    a = promotion.to_inexact(a)
    n = aval_of(a).shape[-1]
    return _by_expansion(a) if 1 <= n <= 3 else _by_factors(a)


def _by_expansion(a: Any) -> Any:
    lead, n = aval_of(a).shape[:-2], aval_of(a).shape[-1]
    at = lambda i, j: structural.reshape(M.block(a, (i, i + 1), (j, j + 1)), shape=lead)
    minor = lambda i, j, k, m: elementwise.sub(elementwise.mul(at(i, k), at(j, m)), elementwise.mul(at(i, m), at(j, k)))
    if n == 1:
        return at(0, 0)
    if n == 2:
        return minor(0, 1, 0, 1)
    terms = [elementwise.mul(at(0, j), minor(1, 2, *others)) for j, others in ((0, (1, 2)), (1, (0, 2)), (2, (0, 1)))]
    return elementwise.add(elementwise.sub(terms[0], terms[1]), terms[2])


@custom_jvp
def _by_factors(a: Any) -> Any:
    factors, pivots, _ = cholesky_lu.lu(a)
    return _value(factors, _parity(factors, pivots))


def _value(factors: Any, parity: Any) -> Any:
    mantissa, k = product(M.diagonal(factors))
    return times_power(elementwise.mul(parity, mantissa), k)


@_by_factors.defjvp
def _by_factors_jvp(primals: Any, tangents: Any) -> Any:
    """Jacobi's formula: the trace of adj(a) da."""
    factors, pivots, order = cholesky_lu.lu(*primals)
    parity = _parity(factors, pivots)
    value = _value(factors, parity)
    if not aval_of(factors).shape[-1]:
        return value, structural.full_like(value, 0)
    return value, _trace_of_product(cofactors(factors, _below(factors, order), parity), *tangents)


@with_kernel(1)
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """Sign and logarithm of the determinant, for determinants that are too large or too small to be represented.

    Args:
        a: (..., n, n).
        method: "lu" or "qr", accepted for compatibility with JAX; LU factors are used in any case.

    Returns:
        A named tuple of `sign` and `logabsdet`, both of shape (...).

    Raises:
        ArgumentError: for another method.

    >>> sign, logarithm = fnp.linalg.slogdet(fnp.asarray([[1.0, 2.0], [3.0, 4.0]]))
    >>> sign.item(), round(logarithm.item(), 4)
    (-1.0, 0.6931)
    """
    if method not in (None, "lu", "qr"):
        raise promotion.error(ArgumentError, f"fnp.linalg.slogdet: method={method!r}", "use 'lu', 'qr' or None")
    return SlogdetResult(*_slogdet(matrices(a, "slogdet", True)))


@eager_jit
def _slogdet(a: Any) -> Any:
    return _sign_and_logarithm(promotion.to_inexact(a))


@custom_jvp
def _sign_and_logarithm(a: Any) -> Any:
    factors, pivots, _ = cholesky_lu.lu(a)
    diagonal = M.diagonal(factors)
    sign = elementwise.mul(_parity(factors, pivots), _product(elementwise.sign(diagonal)))
    logarithms = elementwise.log(elementwise.abs(diagonal))
    return sign, structural.reduce_sum(logarithms, axes=(aval_of(diagonal).ndim - 1,))


@_sign_and_logarithm.defjvp
def _sign_and_logarithm_jvp(primals: Any, tangents: Any) -> Any:
    """The logarithm of the determinant changes by the trace of a^-1 da; the sign turns by its imaginary part."""
    sign, logarithm = _sign_and_logarithm(*primals)
    factors, _, order = cholesky_lu.lu(*primals)
    inverse = triangular_solve(factors, _below(factors, order), **SIDES, lower=False, unit_diagonal=False)
    change = _trace_of_product(inverse, *tangents)
    if not dtypes.is_complex(aval_of(sign).dtype):
        return (sign, logarithm), (structural.full_like(sign, 0), change)
    real, angle = elementwise.real(change), elementwise.imag(change)
    turned = elementwise.mul(sign, elementwise.complex(structural.full_like(angle, 0), angle))
    return (sign, logarithm), (turned, real)


# --------------------------------------------------------------------------------------------------------------- parts
def _product(x: Any) -> Any:
    return reductions.reduce_prod(x, axes=(aval_of(x).ndim - 1,))


def _parity(factors: Any, pivots: Any) -> Any:
    """Return the sign of the permutation of rows, 1 or -1."""
    shape, dtype = aval_of(pivots).shape, aval_of(factors).dtype
    stayed = elementwise.eq(pivots, structural.iota(dtype=dtypes.int32, shape=shape, dimension=len(shape) - 1))
    return _product(elementwise.select_n(stayed, structural.full(shape, -1, dtype), structural.full(shape, 1, dtype)))


def _below(factors: Any, order: Any) -> Any:
    """Return L^-1 P."""
    shape = aval_of(factors).shape
    numbers = structural.iota(dtype=dtypes.int32, shape=shape, dimension=len(shape) - 1)
    moved = elementwise.eq(M.rows(order, numbers), numbers)
    return triangular_solve(factors, M.to(moved, aval_of(factors).dtype), **SIDES, lower=True, unit_diagonal=True)


def _trace_of_product(x: Any, y: Any) -> Any:
    """Return the trace of x y; it is linear in y, with a derivative that needs no products of matrices."""
    both = elementwise.mul(M.transposed(x), y)
    return structural.reduce_sum(both, axes=(aval_of(both).ndim - 2, aval_of(both).ndim - 1))
