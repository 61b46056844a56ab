"""Factors of matrices, and solutions of systems with them: Cholesky, LU, triangular matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, overload

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.avals import ShapedArray
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.linalg.right_sides import solutions
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.linalg import cholesky_lu
from functorch_like.primitives.linalg import matrix_algebra as M
from functorch_like.primitives.linalg.cholesky_lu import solved
from functorch_like.primitives.linalg.makers import I32
from functorch_like.primitives.ordering.sort import sort
from functorch_like.scipy.linalg.decompositions import arr, matrices
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


def _solved(a: Any, b: Any, name: str, solve: Callable[[Any, Any], Any]) -> Any:
    """Check operands, and solve; a vector for each matrix of a stack counts as a column.

    Args:
        a: square matrices.
        b: right-hand sides.
        name: the function's name, for errors.
        solve: function of both, with columns in b.
    """
    a, b = matrices(a, name), arr(b, f"scipy.linalg.{name}")
    left, right = aval_of(a), aval_of(b)
    n = left.shape[-1]
    vectors = 1 < right.ndim == left.ndim - 1 and right.shape[-1] == n
    if vectors and (right.shape == left.shape[:-1] or right.shape[-2] != n):
        return solve(a, fnp.expand_dims(b, -1))[..., 0]
    if not right.ndim or right.shape[-2 if right.ndim > 1 else 0] != left.shape[-1]:
        raise promotion.error(
            ShapeError, f"scipy.linalg.{name} of {left!r} and {right!r}", f"give b {left.shape[-1]} rows, or one vector"
        )
    return solve(a, b)


def _in_single(a: Any, b: Any, solve: Callable[[Any, Any], Any]) -> Any:
    """Return `solutions`; those of systems in 16 bits, which no library solves, are computed in float32."""
    a, b = map(promotion.to_inexact, promotion.promote(a, b))
    dtype = aval_of(a).dtype
    if dtype.itemsize >= 4:
        return solutions(a, b, solve)
    a, b = (promotion.convert(x, dtypes.float32) for x in (a, b))
    return promotion.convert(solutions(a, b, solve), dtype)


def _trans(trans: Any, name: str) -> str:
    how = {0: "N", 1: "T", 2: "C"}.get(trans, str(trans).upper())
    if how not in ("N", "T", "C"):
        raise promotion.error(
            ArgumentError, f"scipy.linalg.{name} with trans={trans!r}", "use 0 or 'N', 1 or 'T', 2 or 'C'"
        )
    return how


# ------------------------------------------------------------------------------------------------------------- cholesky
def cho_factor(a: ArrayLike, lower: bool = False) -> tuple[Array, bool]:
    """The Cholesky factor of Hermitian positive definite matrices, to be passed to `cho_solve`.

    Args:
        a: (..., n, n), of which one triangle is read.
        lower: read, and return, the lower triangle; else the upper one.

    Returns:
        The factor, and `lower`. The factor is NaN where a matrix is not positive definite.

    >>> factor = ft.scipy.linalg.cho_factor(fnp.asarray([[4.0, 0.0], [0.0, 1.0]]))
    >>> ft.scipy.linalg.cho_solve(factor, fnp.asarray([4.0, 3.0])).tolist()
    [1.0, 3.0]
    """
    return _cho_factor(matrices(a, "cho_factor"), bool(lower)), bool(lower)


@eager_jit(static=("lower",))
def _cho_factor(a: Any, lower: bool) -> Any:
    a = promotion.to_inexact(a)
    return cholesky_lu.cholesky(a) if lower else M.adjoint(cholesky_lu.cholesky(M.adjoint(a)))


def cho_solve(c_and_lower: tuple[ArrayLike, bool], b: ArrayLike) -> Array:
    """The solution x of a x = b, with the factor of `a` from `cho_factor`.

    Args:
        c_and_lower: factor, and whether it is lower.
        b: (n,), or (..., n, k); or (..., n), a vector for each matrix.

    Returns:
        x, of the shape of b.

    Raises:
        ShapeError: where the sizes do not fit.

    >>> factor = ft.scipy.linalg.cho_factor(fnp.asarray([[4.0, 0.0], [0.0, 1.0]]))
    >>> ft.scipy.linalg.cho_solve(factor, fnp.asarray([2.0, 3.0])).tolist()
    [0.5, 3.0]
    """
    c, lower = c_and_lower
    return _solved(c, b, "cho_solve", lambda c, b: _cho_solve(c, b, bool(lower)))


@eager_jit(static=("lower",))
def _cho_solve(c: Any, b: Any, lower: bool) -> Any:
    first, second = (False, True) if lower else (True, False)
    half = lambda c, b, back: solved(c, b, lower=lower, back=back)
    return _in_single(c, b, lambda c, b: half(c, half(c, b, first), second))


# ------------------------------------------------------------------------------------------------------------------- lu
def lu_factor(a: ArrayLike) -> tuple[Array, Array]:
    """Both factors of P a = L U in one matrix, and the swaps of rows, one after the other; for `lu_solve`.

    Args:
        a: array of shape (..., m, n).

    Returns:
        The factors (..., m, n), and the swaps int32 (..., min(m, n)).

    >>> factor = ft.scipy.linalg.lu_factor(fnp.asarray([[0.0, 2.0], [4.0, 0.0]]))
    >>> ft.scipy.linalg.lu_solve(factor, fnp.asarray([2.0, 4.0])).tolist()
    [1.0, 1.0]
    """
    return _lu_factor(matrices(a, "lu_factor", square=False))


@eager_jit
def _lu_factor(a: Any) -> Any:
    return tuple(cholesky_lu.lu(promotion.to_inexact(a))[:2])


def lu_solve(lu_and_piv: tuple[ArrayLike, ArrayLike], b: ArrayLike, trans: int = 0) -> Array:
    """The solution x of a x = b, with the factors of `a` from `lu_factor`.

    Args:
        lu_and_piv: factors and swaps.
        b: (n,), or (..., n, k); or (..., n), a vector for each matrix.
        trans: 1 solves with the transpose of `a`, 2 with its adjoint.

    Returns:
        x, of the shape of b.

    Raises:
        ShapeError: where the sizes do not fit.
        ArgumentError: for another `trans`.

    >>> factors = ft.scipy.linalg.lu_factor(fnp.asarray([[0.0, 2.0], [1.0, 0.0]]))
    >>> ft.scipy.linalg.lu_solve(factors, fnp.asarray([2.0, 3.0])).tolist()
    [3.0, 1.0]
    """
    factors, pivots = lu_and_piv
    pivots, how = arr(pivots, "scipy.linalg.lu_solve"), _trans(trans, "lu_solve")
    return _solved(factors, b, "lu_solve", lambda factors, b: _lu_solve(factors, pivots, b, how))


@eager_jit(static=("how",))
def _lu_solve(factors: Any, pivots: Any, b: Any, how: str) -> Any:
    n = aval_of(factors).shape[-1]

    def solve(a: Any, b: Any) -> Any:
        swaps = structural.reshape(
            promotion.broadcast(pivots, aval_of(factors).shape[:-1]), shape=aval_of(a).shape[:-1]
        )
        order = cholesky_lu.lu_pivots_to_permutation(swaps, permutation_size=n)
        options = {"left_side": True, "transpose_a": how != "N", "conjugate_a": how == "C"}
        lower = lambda x: cholesky_lu.triangular_solve(a, x, lower=True, unit_diagonal=True, **options)
        upper = lambda x: cholesky_lu.triangular_solve(a, x, lower=False, unit_diagonal=False, **options)
        if how == "N":
            return upper(lower(M.permuted(b, order)))
        shape = aval_of(order).shape
        places = structural.iota(dtype=I32, shape=shape, dimension=len(shape) - 1)
        _, back = sort(order, places, dimension=len(shape) - 1, is_stable=True, num_keys=1)
        return M.permuted(lower(upper(b)), back)

    return _in_single(factors, b, solve)


@overload
def lu(a: ArrayLike, permute_l: Literal[False] = False) -> tuple[Array, Array, Array]: ...
@overload
def lu(a: ArrayLike, permute_l: Literal[True]) -> tuple[Array, Array]: ...
@eager_jit(static=("permute_l",))
def lu(a: ArrayLike, permute_l: bool = False) -> Any:
    """LU decomposition: P, L and U with a = P L U; or P L and U.

    Args:
        a: (..., m, n).
        permute_l: multiply the first two.

    Returns:
        P (..., m, m), L (..., m, k) and U (..., k, n); or the product of the first two, and U.

    >>> [f.tolist() for f in ft.scipy.linalg.lu(fnp.asarray([[0.0, 2.0], [4.0, 0.0]]))]
    [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [[4.0, 0.0], [0.0, 2.0]]]
    """
    factors, _, order = cholesky_lu.lu(promotion.to_inexact(matrices(a, "lu", square=False)))
    m, n = aval_of(factors).shape[-2:]
    k = min(m, n)
    left = M.tril(M.block(factors, (0, m), (0, k)), -1)
    left = elementwise.add(left, M.eye_like(left))
    upper = M.triu(M.block(factors, (0, k), (0, n)))
    dtype = aval_of(factors).dtype
    square = structural.zeros(ShapedArray((*aval_of(factors).shape[:-2], m, m), dtypes.real_part(dtype)))
    swap = M.transposed(M.permuted(M.eye_like(square), order))
    return (M.mm(promotion.convert(swap, dtype), left), upper) if permute_l else (swap, left, upper)


# ------------------------------------------------------------------------------------------------------------ triangles
def solve_triangular(
    a: ArrayLike, b: ArrayLike, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False
) -> Array:
    """The solution x of a x = b for triangular matrices.

    Args:
        a: (..., n, n), of which one triangle is read.
        b: (n,), or (..., n, k); or (..., n), a vector for each matrix.
        trans: 1 or "T" solves with the transpose of `a`, 2 or "C" with its adjoint.
        lower: read the lower triangle; else the upper one.
        unit_diagonal: assume that the diagonal is one; it is not read.

    Returns:
        x, of the shape of b.

    Raises:
        ShapeError: where the sizes do not fit.
        ArgumentError: for another `trans`.

    >>> ft.scipy.linalg.solve_triangular(fnp.asarray([[2.0, 1.0], [0.0, 1.0]]), fnp.asarray([4.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    how = _trans(trans, "solve_triangular")
    return _solved(
        a, b, "solve_triangular", lambda a, b: _solve_triangular(a, b, how, bool(lower), bool(unit_diagonal))
    )


@eager_jit(static=("how", "lower", "unit"))
def _solve_triangular(a: Any, b: Any, how: str, lower: bool, unit: bool) -> Any:
    options = {"left_side": True, "lower": lower, "unit_diagonal": unit}
    options |= {"transpose_a": how != "N", "conjugate_a": how == "C"}
    return _in_single(a, b, lambda a, b: cholesky_lu.triangular_solve(a, b, **options))
