"""Problems of linear algebra under SciPy's names, where they differ from numpy.linalg's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.primitives.linalg import cholesky_lu, eigen
from functorch_like.primitives.linalg import matrix_algebra as M
from functorch_like.primitives.linalg import svd as singular
from functorch_like.scipy.linalg.decompositions import arr, matrices, qr
from functorch_like.scipy.linalg.factors import cho_factor, cho_solve, solve_triangular
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


@eager_jit(static=("lower",))
def cholesky(a: ArrayLike, lower: bool = False) -> Array:
    """The Cholesky factor of Hermitian positive definite matrices, zero in the other triangle.

    Args:
        a: (..., n, n), of which one triangle is read.
        lower: read the lower triangle and return L with a = L L^H; by default the upper one, and U with a = U^H U.

    Returns:
        The factor; NaN where a matrix is not positive definite.

    >>> ft.scipy.linalg.cholesky(fnp.asarray([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 1.0], [0.0, 2.0]]
    """
    a = promotion.to_inexact(matrices(a, "cholesky"))
    return cholesky_lu.cholesky(a) if lower else M.adjoint(cholesky_lu.cholesky(M.adjoint(a)))


@overload
def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: Literal[True] = True) -> tuple[Array, Array, Array]: ...
@overload
def svd(a: ArrayLike, full_matrices: bool = True, *, compute_uv: Literal[False]) -> Array: ...
@eager_jit(static=("full_matrices", "compute_uv"))
def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """Singular value decomposition: U, S and Vh with a = U diag(S) Vh; or S alone.

    Args:
        a: (..., m, n).
        full_matrices: return square U and Vh.
        compute_uv: False for the singular values alone.

    Returns:
        U, S (..., k) and Vh; or S alone.

    >>> ft.scipy.linalg.svd(fnp.asarray([[0.0, 2.0], [3.0, 0.0]]), compute_uv=False).tolist()
    [3.0, 2.0]
    """
    a = promotion.to_inexact(matrices(a, "svd", square=False))
    s, *uv = singular.svd(a, full_matrices=full_matrices, compute_uv=compute_uv, algorithm="default")
    return (uv[0], s, uv[1]) if compute_uv else s


def solve(a: ArrayLike, b: ArrayLike, lower: bool = False, assume_a: str = "gen") -> Array:
    """The solution x of a x = b.

    Args:
        a: (..., n, n).
        b: (n,), or (..., n, k).
        lower: read the lower triangle, where `a` is symmetric.
        assume_a: a known property of `a`: "gen", none; "sym" symmetric; "her" Hermitian; "pos" also positive
            definite, which is solved by the Cholesky factor, in half the time.

    Returns:
        x, of the shape of b.

    Raises:
        ArgumentError: for another assumption.
        ShapeError: where the sizes do not fit.

    >>> ft.scipy.linalg.solve(fnp.asarray([[4.0, 0.0], [9.0, 1.0]]), fnp.asarray([4.0, 3.0]), assume_a="pos").tolist()
    [1.0, 3.0]
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise promotion.error(
            ArgumentError, f"scipy.linalg.solve with assume_a={assume_a!r}", "use 'gen', 'sym', 'her' or 'pos'"
        )
    a = matrices(a, "solve")
    if assume_a == "pos":
        return cho_solve(cho_factor(a, lower), b)
    return fnp.linalg.solve(a if assume_a == "gen" else _whole(a, bool(lower), assume_a == "her"), arr(b, "solve"))


@eager_jit(static=("lower", "hermitian"))
def _whole(a: Any, lower: bool, hermitian: bool) -> Any:
    """Return a symmetric matrix from one of its triangles."""
    half = M.tril(a) if lower else M.triu(a)
    strict = M.tril(a, -1) if lower else M.triu(a, 1)
    return half + (M.adjoint(strict) if hermitian else M.transposed(strict))


@overload
def eigh(
    a: ArrayLike, b: ArrayLike | None = None, lower: bool = True, eigvals_only: Literal[False] = False, type: int = 1
) -> tuple[Array, Array]: ...
@overload
def eigh(
    a: ArrayLike, b: ArrayLike | None = None, lower: bool = True, *, eigvals_only: Literal[True], type: int = 1
) -> Array: ...
def eigh(
    a: ArrayLike, b: ArrayLike | None = None, lower: bool = True, eigvals_only: bool = False, type: int = 1
) -> Any:
    """Ascending eigenvalues, and eigenvectors in columns, of Hermitian matrices; with `b`, generalized ones.

    Args:
        a: (..., n, n), of which one triangle is read.
        b: (..., n, n), positive definite.
        lower: read the lower triangle; else the upper one.
        eigvals_only: return the eigenvalues alone.
        type: 1 for a v = w b v, where v^H b v = 1; 2 for a b v = w v, with the same norm; 3 for b a v = w v, where
            v^H b^-1 v = 1.

    Returns:
        w, or (w, v). NaN where `b` is not positive definite.

    Raises:
        ArgumentError: for another type.
        ShapeError: where the sizes do not fit.

    >>> w, v = ft.scipy.linalg.eigh(fnp.asarray([[2.0, 0.0], [0.0, 9.0]]), fnp.asarray([[4.0, 0.0], [0.0, 1.0]]))
    >>> w.tolist()
    [0.5, 9.0]
    """
    if type not in (1, 2, 3):
        raise promotion.error(ArgumentError, f"scipy.linalg.eigh with type={type!r}", "use 1, 2 or 3")
    a = matrices(a, "eigh")
    if b is None:
        return _eigh(a, bool(lower), bool(eigvals_only))
    b = matrices(b, "eigh")
    if aval_of(a).shape[-1] != aval_of(b).shape[-1]:
        raise promotion.error(
            ShapeError, f"scipy.linalg.eigh of {aval_of(a)!r} and {aval_of(b)!r}", "give b the size of a"
        )
    return _generalized(a, b, bool(lower), bool(eigvals_only), type)


@eager_jit(static=("lower", "values"))
def _eigh(a: Any, lower: bool, values: bool) -> Any:
    a = promotion.to_inexact(a)
    if values:
        return fnp.linalg.eigvalsh(a, "L" if lower else "U", symmetrize_input=False)
    v, w = eigen.eigh(a, lower=lower, compute_v=True)
    return w, v


@eager_jit(static=("lower", "values", "kind"))
def _generalized(a: Any, b: Any, lower: bool, values: bool, kind: int) -> Any:
    a, b = map(promotion.to_inexact, promotion.promote(a, b))
    a, b = _whole.inline(a, lower, True), _whole.inline(b, lower, True)
    factor = cholesky_lu.cholesky(b)
    back = lambda x, trans: solve_triangular(factor, x, trans, lower=True)
    if kind == 1:
        inner = M.adjoint(back(M.adjoint(back(a, 0)), 0))
    else:
        inner = fnp.matmul(fnp.matmul(M.adjoint(factor), a, precision="highest"), factor, precision="highest")
    if values:
        return _eigh.inline(inner, True, True)
    w, v = _eigh.inline(inner, True, False)
    return w, fnp.matmul(factor, v, precision="highest") if kind == 3 else back(v, "C")


def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[int, int] | None = None,
) -> Any:
    """Ascending eigenvalues, and eigenvectors, of symmetric tridiagonal matrices, computed as for dense ones.

    Args:
        d: (..., n): the diagonal.
        e: (..., n - 1): the elements beside the diagonal.
        eigvals_only: return the eigenvalues alone.
        select: "a" for all; "i" for those from one position to another, both included.
        select_range: these positions.

    Returns:
        w, or (w, v).

    Raises:
        ArgumentError: for another selection ("v", by value, would give a shape that depends on values), or positions
            out of bounds.
        ShapeError: where the sizes do not fit.

    >>> ft.scipy.linalg.eigh_tridiagonal(fnp.asarray([2.0, 2.0]), fnp.asarray([1.0]), eigvals_only=True).tolist()
    [1.0, 3.0]
    """
    d, e = arr(d, "scipy.linalg.eigh_tridiagonal"), arr(e, "scipy.linalg.eigh_tridiagonal")
    n = aval_of(d).shape[-1] if aval_of(d).ndim else 0
    if not n or not aval_of(e).ndim or aval_of(e).shape[-1] != n - 1:
        raise promotion.error(
            ShapeError, f"scipy.linalg.eigh_tridiagonal of {aval_of(d)!r} and {aval_of(e)!r}", "e has one less than d"
        )
    start, end = (0, n - 1) if select == "a" else (tuple(select_range or (-1, -1)) if select == "i" else (-1, -1))
    if not 0 <= start <= end < n:
        raise promotion.error(
            ArgumentError, f"scipy.linalg.eigh_tridiagonal with select={select!r}, select_range={select_range}",
            f"use 'a', or 'i' with two positions from 0 to {n - 1}",
        )  # fmt: skip
    return _tridiagonal(d, e, values=bool(eigvals_only), start=int(start), end=int(end))


@eager_jit(static=("values", "start", "end"))
def _tridiagonal(d: Any, e: Any, values: bool, start: int, end: int) -> Any:
    d, e = map(promotion.to_inexact, promotion.promote(d, e))
    n = aval_of(d).shape[-1]
    whole = fnp.eye(n, dtype=d.dtype) * d[..., None]
    if n > 1:
        below = fnp.pad(e, [(0, 0)] * (aval_of(e).ndim - 1) + [(0, 1)])
        whole = whole + fnp.eye(n, k=-1, dtype=d.dtype) * below[..., None, :]
    result = _eigh.inline(whole, True, values)
    part = lambda x: x[..., start : end + 1]
    return part(result) if values else tuple(map(part, result))


def qr_multiply(
    a: ArrayLike, c: ArrayLike, mode: str = "right", pivoting: bool = False, conjugate: bool = False
) -> tuple[Array, ...]:
    """The product of the Q of `qr`, in economic mode, with a matrix or vector, and R; with pivoting the order, too.

    Args:
        a: (m, n).
        c: a matrix or vector.
        mode: "right" for c Q, "left" for Q c.
        pivoting: as for `qr`.
        conjugate: take the conjugate of Q.

    Returns:
        The product, and R; with pivoting also int32 positions of columns.

    Raises:
        ArgumentError: for another mode.
        ShapeError: where the sizes do not fit.

    >>> product, r = ft.scipy.linalg.qr_multiply(fnp.eye(2), fnp.asarray([3.0, 4.0]))
    >>> abs(product).tolist()
    [3.0, 4.0]
    """
    if mode not in ("left", "right"):
        raise promotion.error(ArgumentError, f"scipy.linalg.qr_multiply with mode={mode!r}", "use 'left' or 'right'")
    q, *rest = qr(a, "economic", pivoting)
    c = arr(c, "scipy.linalg.qr_multiply")
    q = fnp.conj(q) if conjugate else q
    left, right = (q, c) if mode == "left" else (c, q)
    return (fnp.matmul(left, right, precision="highest"), *rest)
