"""Linear algebra with sparse matrices: a direct solver, and the greatest eigenvalues of a symmetric operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from functorch_like import dtypes, lax
from functorch_like import numpy as fnp
from functorch_like.calling import api_boundary
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.experimental.sparse.direct_solve import ORDERS, solve_rows
from functorch_like.numpy import promotion

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.experimental.sparse.format import JAXSparse
    from functorch_like.typing import ArrayLike

__all__ = ["lobpcg_standard", "spsolve"]

_SOLVED = (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)


@api_boundary.public
def spsolve(
    data: ArrayLike, indices: ArrayLike, indptr: ArrayLike, b: ArrayLike, tol: float = 1e-6, reorder: int = 1
) -> Array:
    """Solve A x = b for a square sparse matrix A in compressed rows, by LU factors.

    SuperLU computes them on the host, also for arrays on a GPU. X. S. Li, "An overview of SuperLU", ACM TOMS 31 (2005).
    Under `vmap` of b alone, A is factored once.

    Args:
        data: stored elements of A, of shape (nse,), as of a `BCSR`.
        indices: the column of each.
        indptr: where each row starts in them, of shape (n + 1,).
        b: right-hand sides, of shape (n,) or (n, k).
        tol: without effect, since SuperLU exchanges rows.
        reorder: the order of columns: 0 for that of A; 1 for the least degree in A.T + A, 2 in A.T @ A; 3 for COLAMD.

    Returns:
        x, like b. It is NaN where A is singular. Its derivatives by data and b are solutions of the same system.

    Raises:
        ShapeError: where shapes do not fit.
        DtypeError: for other dtypes than those of single and double precision.
        ArgumentError: for another order.

    >>> from functorch_like.experimental import sparse
    >>> a = sparse.BCSR.fromdense(fnp.asarray([[4.0, 1.0], [0.0, 2.0]]))
    >>> sparse.linalg.spsolve(a.data, a.indices, a.indptr, fnp.asarray([6.0, 4.0])).tolist()
    [1.0, 2.0]
    """
    data, b = (promotion.to_inexact(x) for x in promotion.promote(data, b))
    if reorder not in range(len(ORDERS)):
        raise ArgumentError(f"spsolve: reorder={reorder!r} is no order", fix="use 0, 1, 2 or 3")
    if aval_of(data).dtype not in _SOLVED:
        raise DtypeError(f"spsolve takes single and double precision, got {aval_of(data)!r}", fix="convert with astype")
    shapes = [aval_of(x).shape for x in (data, indices, indptr, b)]
    if [len(s) for s in shapes[:3]] != [1, 1, 1] or shapes[0] != shapes[1] or len(shapes[3]) not in (1, 2):
        raise ShapeError(
            f"spsolve of data, indices, indptr and b of shapes {', '.join(map(str, shapes))}",
            fix="give vectors data and indices of one size, a vector indptr, and one or two dimensions of b; use vmap",
        )
    if shapes[2][0] != shapes[3][0] + 1:
        raise ShapeError(
            f"spsolve: indptr of size {shapes[2][0]} has {shapes[2][0] - 1} rows, and b has {shapes[3][0]}",
            fix="give as many right-hand sides as the matrix has rows",
        )
    return solve_rows(data, indices, indptr, b, ORDERS[reorder])


@api_boundary.public
def lobpcg_standard(
    A: ArrayLike | JAXSparse | Callable[[Any], Any], X: ArrayLike, m: int = 100, tol: float | ArrayLike | None = None
) -> tuple[Array, Array, Array]:
    """The k greatest eigenvalues of a symmetric matrix, and their eigenvectors, by products with it.

    Each step is the method of Rayleigh and Ritz in a space of 3 k dimensions: the current vectors, their residuals and
    the last changes. A. V. Knyazev, "Toward the optimal preconditioned eigensolver", SIAM J. Sci. Comput. 23 (2001).

    Args:
        A: a matrix, sparse or dense, or a function of arrays of shape (n, j) that applies it.
        X: first vectors, of shape (n, k), best random ones, since eigenvectors stay as they are; n is
            more than 3 k.
        m: the greatest number of steps.
        tol: a pair has converged when the length of its residual, A x - theta x, is below 10 n tol times the greatest
            eigenvalue's absolute value. The rounding error of the dtype by default.

    Returns:
        Eigenvalues in descending order, of shape (k,); eigenvectors, of shape (n, k); and the number of steps.

    Raises:
        ShapeError: where shapes do not fit.
        DtypeError: for complex numbers.

    >>> from functorch_like.experimental import sparse
    >>> grid = fnp.arange(10.0)
    >>> first = ft.random.normal(ft.random.key(0), (10, 2))
    >>> values, vectors, steps = sparse.linalg.lobpcg_standard(lambda x: grid[:, None] * x, first)
    >>> [round(float(v), 4) for v in values], vectors.shape
    ([9.0, 8.0], (10, 2))
    """
    X = promotion.to_inexact(X)
    aval = aval_of(X)
    if len(aval.shape) != 2 or aval.shape[0] <= 3 * aval.shape[1] or not aval.shape[1]:
        raise ShapeError(
            f"lobpcg_standard: X of shape {aval.shape}", fix="give k first vectors as columns (n, k), n more than 3 k"
        )
    if dtypes.is_complex(aval.dtype):
        raise DtypeError(f"lobpcg_standard takes real numbers, got {aval!r}", fix="use a real form of the operator")
    n, k = aval.shape
    apply = A if callable(A) else lambda x: A @ x
    eps = float(fnp.finfo(aval.dtype).eps)
    bound = 10 * n * fnp.asarray(eps if tol is None else tol, aval.dtype)
    times = lambda a, b: fnp.matmul(a, b, precision="highest")

    def open_pairs(theta: Any, rest: Any) -> Any:
        return fnp.linalg.norm(rest, axis=0) > bound * fnp.max(fnp.abs(theta))

    def rayleigh_ritz(basis: Any) -> tuple[Any, Any, Any]:
        """Return the best vectors in the space of a basis, their eigenvalues and residuals."""
        image = apply(basis)
        form = times(basis.T, image)
        theta, turn = fnp.linalg.eigh((form + form.T) / 2)
        theta, turn = theta[::-1][:k], turn[:, ::-1][:, :k]
        x = times(basis, turn)
        return x, theta, times(image, turn) - x * theta

    def step(state: Any) -> Any:
        count, x, theta, rest, change = state
        # Vectors of length 1, so that the small ones among residuals and changes keep their directions.
        unit = lambda v: v / fnp.where((size := fnp.linalg.norm(v, axis=0)) > 0, size, 1)
        basis = fnp.linalg.qr(fnp.concatenate([x, unit(rest), unit(change)], axis=1))[0]
        new, theta, rest = rayleigh_ritz(basis)
        return count + 1, new, theta, rest, new - times(x, times(x.T, new))

    x, theta, rest = rayleigh_ritz(fnp.linalg.qr(X)[0])
    more = lambda state: (state[0] < m) & fnp.any(open_pairs(state[2], state[3]))
    count, x, theta, *_ = lax.while_loop(more, step, (0, x, theta, rest, fnp.zeros_like(x)))
    return theta, x, count
