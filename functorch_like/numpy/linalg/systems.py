"""Linear systems, inverses, ranks and condition numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.creation import asarray
from functorch_like.numpy.linalg.decompositions import matrices, svdvals
from functorch_like.numpy.linalg.norms import norm
from functorch_like.numpy.linalg.right_sides import solutions
from functorch_like.numpy.matrix_products import matmul
from functorch_like.numpy.shapes import arr
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.linalg import matrix_algebra as M
from functorch_like.primitives.linalg import solve as solve_primitives
from functorch_like.primitives.linalg import svd
from functorch_like.primitives.reductions import reductions
from functorch_like.transforms.eager_jit import eager_jit, with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


@with_kernel(2)
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """The solution of a x = b.

    Args:
        a: (..., n, n).
        b: (n,), or (..., n, k). Leading dimensions broadcast.

    Returns:
        x, of the shape of b; infinite or NaN where `a` is singular.

    Raises:
        ShapeError: where the sizes do not fit.

    >>> fnp.linalg.solve(fnp.asarray([[2.0, 0.0], [0.0, 4.0]]), fnp.asarray([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    a, b = matrices(a, "solve", True), arr(b, "fnp.linalg.solve")
    left, right = aval_of(a), aval_of(b)
    if not right.ndim or right.shape[-2 if right.ndim > 1 else 0] != left.shape[-1]:
        why = f"fnp.linalg.solve of {left!r} and {right!r}"
        raise promotion.error(ShapeError, why, f"give b {left.shape[-1]} rows, or one vector of {left.shape[-1]}")
    return _solve(a, b)


@eager_jit
def _solve(a: Any, b: Any) -> Any:
    return solutions(a, b, lambda a, b: solve_primitives.solve(a, b, transpose_a=False))


@with_kernel(1)
def inv(a: ArrayLike) -> Array:
    """The inverse of square matrices; infinite or NaN where there is none.

    Args:
        a: array of shape (..., n, n).

    Returns:
        An array of shape (..., n, n).

    >>> fnp.linalg.inv(fnp.asarray([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return _inv(matrices(a, "inv", True))


@eager_jit
def _inv(a: Any) -> Any:
    a = promotion.to_inexact(a)
    return solve_primitives.solve(a, M.eye_like(a), transpose_a=False)


# --------------------------------------------------------------------------------------------------- singular values
def _rtol(a: Any, rtol: Any) -> float:
    """Return a relative tolerance; by default the rounding error of the largest singular value."""
    aval = aval_of(a)
    eps = float(dtypes.finfo(dtypes.real_part(dtypes.inexact_dtype(aval.dtype))).eps)
    return max(aval.shape[-2:]) * eps if rtol is None else float(rtol)


@with_kernel(1, values=("rtol",))
def pinv(
    a: ArrayLike, rcond: ArrayLike | None = None, hermitian: bool = False, *, rtol: ArrayLike | None = None
) -> Array:
    """The Moore-Penrose inverse.

    Args:
        a: (..., m, n).
        rcond, rtol: singular values up to this times the largest count as zero; max(m, n) times the rounding
            error by default. A number, or an array that broadcasts with the dimensions before the last two.
        hermitian: accepted for compatibility with NumPy; changes nothing.

    Returns:
        (..., n, m), in floating point.

    >>> fnp.linalg.pinv(fnp.asarray([[2.0], [0.0]])).tolist()
    [[0.5, 0.0]]
    """
    a, least = matrices(a, "pinv"), rtol if rcond is None else rcond
    return _pinv_each(a, least) if promotion.is_array(least) else _pinv(a, _rtol(a, least))


@eager_jit(static=("rtol",))
def _pinv(a: Any, rtol: float) -> Any:
    return svd.pinv(promotion.to_inexact(a), rtol=rtol)


@eager_jit
def _pinv_each(a: Any, rtol: Any) -> Any:
    """Return pseudoinverses with a tolerance for each matrix."""
    s, u, vh = svd.svd(promotion.to_inexact(a), full_matrices=False, compute_uv=True)
    large = _larger(s, rtol)
    shape = aval_of(large).shape
    s, large = promotion.broadcast(s, shape), promotion.broadcast(large, shape)
    inverse = elementwise.select_n(
        large,
        structural.full_like(s, 0),
        elementwise.div(structural.full_like(s, 1), elementwise.select_n(large, structural.full_like(s, 1), s)),
    )
    inverse = promotion.convert(inverse, aval_of(u).dtype)
    columns = elementwise.mul(
        *promotion.promote_and_broadcast(M.adjoint(vh), structural.reshape(inverse, shape=(*shape[:-1], 1, shape[-1])))
    )
    return matmul(columns, M.adjoint(u))


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """Least squares: the x for which |b - a x| is least; if there are several, the one of least norm.

    Args:
        a: (m, n).
        b: (m,) or (m, k).
        rcond: singular values up to this times the largest count as zero.
        numpy_resid: True for no sums of squares, shape (0,), where m <= n or the rank is less than n, as in NumPy.

    Returns:
        x; the sums of squares of b - a x, for every rank; the rank of a; its singular values.

    Raises:
        ShapeError: where the sizes do not fit.
        ConcretizationError: for traced arrays with `numpy_resid` and m > n: the shape depends on the rank.

    >>> x, squares, rank, s = fnp.linalg.lstsq(fnp.asarray([[1.0], [1.0]]), fnp.asarray([1.0, 3.0]))
    >>> round(x.item(), 4), round(squares.item(), 4), rank.item()
    (2.0, 2.0, 1)
    """
    a, b = matrices(a, "lstsq"), arr(b, "fnp.linalg.lstsq")
    left, right = aval_of(a), aval_of(b)
    if left.ndim != 2 or right.ndim not in (1, 2) or right.shape[0] != left.shape[0]:
        why = f"fnp.linalg.lstsq of {left!r} and {right!r}"
        raise promotion.error(ShapeError, why, "give one matrix, and as many rows in b; use vmap for stacks")
    a, b = promotion.promote(a, b)
    x, squares, rank, s = _lstsq(a, b, _rtol(a, rcond))
    if numpy_resid and (left.shape[0] <= left.shape[1] or int(rank) < left.shape[1]):
        squares = squares[:0]
    return x, squares, rank, s


@eager_jit(static=("rtol",))
def _lstsq(a: Any, b: Any, rtol: float) -> Any:
    a, b = map(promotion.to_inexact, promotion.promote(a, b))
    vector = aval_of(b).ndim == 1
    if vector:
        b = structural.reshape(b, shape=(*aval_of(b).shape, 1))
    x = M.mm(svd.pinv(a, rtol=rtol), b)
    rest = elementwise.sub(b, M.mm(a, x))
    squares = structural.reduce_sum(M.real(elementwise.mul(rest, M.conj(rest))), axes=(0,))
    (s,) = svd.svd(a, full_matrices=False, compute_uv=False)
    return structural.reshape(x, shape=aval_of(x).shape[:1]) if vector else x, squares, _rank(s, rtol), s


def _rank(s: Any, rtol: Any) -> Any:
    large = _larger(s, rtol)
    return structural.reduce_sum(promotion.convert(large, dtypes.default_int()), axes=(aval_of(large).ndim - 1,))


def _larger(s: Any, rtol: Any) -> Any:
    """Return a mask of the singular values larger than `rtol` times the largest."""
    if not aval_of(s).shape[-1]:
        return elementwise.ne(s, s)
    largest = reductions.reduce_max(s, axes=(aval_of(s).ndim - 1,))
    bound = elementwise.mul(*promotion.promote_and_broadcast(largest, promotion.convert(rtol, aval_of(largest).dtype)))
    return elementwise.gt(
        *promotion.promote_and_broadcast(s, structural.reshape(bound, shape=(*aval_of(bound).shape, 1)))
    )


def matrix_rank(
    A: ArrayLike, rtol: ArrayLike | None = None, *, tol: ArrayLike | None = None, hermitian: bool = False
) -> Array:
    """Count the singular values larger than `rtol` times the largest.

    Args:
        A: (..., m, n). A vector or scalar counts as one row.
        rtol: number, or array that broadcasts with the dimensions before the last two; max(m, n) times the rounding
            error by default.
        tol: an absolute bound on singular values, instead of one relative to the largest.
        hermitian: accepted for compatibility with NumPy; changes nothing.

    Returns:
        Integers of shape (...), in the default dtype of integers.

    Raises:
        ArgumentError: where both tolerances are given.

    >>> fnp.linalg.matrix_rank(fnp.ones((3, 3))).item()
    1
    """
    A = arr(A, "fnp.linalg.matrix_rank")
    few = aval_of(A).ndim < 2
    a = matrices(structural.reshape(A, shape=(1, aval_of(A).size)) if few else A, "matrix_rank")
    if tol is not None:
        if rtol is not None:
            why = "fnp.linalg.matrix_rank takes tol or rtol, got both"
            raise promotion.error(ArgumentError, why, "give the absolute tolerance, or the relative one")
        return _rank_above(a, asarray(tol))
    return _matrix_rank_each(a, rtol) if promotion.is_array(rtol) else _matrix_rank(a, _rtol(a, rtol))


@eager_jit(static=("rtol",))
def _matrix_rank(a: Any, rtol: float) -> Any:
    return _rank(svd.svd(promotion.to_inexact(a), full_matrices=False, compute_uv=False)[0], rtol)


@eager_jit
def _matrix_rank_each(a: Any, rtol: Any) -> Any:
    return _matrix_rank.inline(a, rtol)


@eager_jit
def _rank_above(a: Any, tol: Any) -> Any:
    (s,) = svd.svd(promotion.to_inexact(a), full_matrices=False, compute_uv=False)
    tol = promotion.convert(structural.reshape(tol, shape=(*aval_of(tol).shape, 1)), aval_of(s).dtype)
    large = elementwise.gt(*promotion.promote_and_broadcast(s, tol))
    return structural.reduce_sum(promotion.convert(large, dtypes.default_int()), axes=(aval_of(large).ndim - 1,))


@with_kernel(1)
def cond(x: ArrayLike, p: int | float | str | None = None) -> Array:
    """Condition number: the norm of a matrix times that of its inverse.

    Args:
        x: (..., m, n), square unless p is None, 2 or -2.
        p: order of the norm; None for the largest singular value over the smallest.

    Returns:
        Real floats of shape (...).

    >>> fnp.linalg.cond(fnp.asarray([[4.0, 0.0], [0.0, 2.0]])).item()
    2.0
    """
    if p in (None, 2, -2):
        s = svdvals(matrices(x, "cond"))
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    x = matrices(x, "cond", True)
    return norm(x, p, axis=(-2, -1)) * norm(inv(x), p, axis=(-2, -1))
