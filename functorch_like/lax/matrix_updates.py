"""Updates of matrices by products: symmetric_product, cholesky_update."""

from __future__ import annotations

from typing import TYPE_CHECKING

from functorch_like.core import aval_of
from functorch_like.errors import DtypeError, ShapeError
from functorch_like.lax.operands import error
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.linalg import matrix_algebra as M
from functorch_like.primitives.linalg import qr
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


@eager_jit(static=("alpha", "beta", "symmetrize_output"))
def symmetric_product(
    a_matrix: ArrayLike, c_matrix: ArrayLike, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False
) -> Array:
    """alpha A A^T + beta C, for a symmetric C.

    Args:
        a_matrix: (..., n, k).
        c_matrix: (..., n, n) of the same dtype.
        alpha, beta: numbers.
        symmetrize_output: copy the lower triangle to the upper one, so that the result is exactly symmetric.

    Returns:
        A symmetric array of the shape of c_matrix.

    Raises:
        ShapeError: where the shapes do not fit.

    >>> lax.linalg.symmetric_product(fnp.asarray([[1.0], [2.0]]), fnp.eye(2), beta=3.0).tolist()
    [[4.0, 2.0], [2.0, 7.0]]
    """
    a, c = aval_of(a_matrix), aval_of(c_matrix)
    if a.ndim < 2 or c.shape != (*a.shape[:-1], a.shape[-2]):
        raise error(
            ShapeError,
            f"lax.linalg.symmetric_product got A {a!r} and C {c!r}",
            "give C as many rows and columns as A has rows",
        )
    scaled = lambda x, by: elementwise.mul(x, structural.full_like(x, by))
    out = elementwise.add(scaled(M.mm(a_matrix, M.transposed(a_matrix)), alpha), scaled(c_matrix, beta))
    return elementwise.add(M.tril(out), M.transposed(M.tril(out, -1))) if symmetrize_output else out


@eager_jit
def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """Update the upper Cholesky factor R of A = R^T R to that of A + w w^T.

    It is computed by a QR decomposition of R with w as one more row, so nothing is squared.

    Args:
        r_matrix: (..., n, n), upper triangular, real.
        w_vector: (..., n).

    Returns:
        The factor, of the shape and dtype of r_matrix.

    Raises:
        ShapeError: where the shapes do not fit.
        DtypeError: for complex matrices.

    >>> r = lax.linalg.cholesky_update(fnp.asarray([[3.0, 1.0], [0.0, 2.0]]), fnp.asarray([4.0, 0.0]))
    >>> (r.T @ r).round(4).tolist()
    [[25.0, 3.0], [3.0, 5.0]]
    """
    r, w = aval_of(r_matrix), aval_of(w_vector)
    if r.ndim < 2 or r.shape[-1] != r.shape[-2] or w.shape != r.shape[:-1]:
        raise error(
            ShapeError,
            f"lax.linalg.cholesky_update got R {r!r} and w {w!r}",
            "give a square matrix, and a vector as long as its sides",
        )
    if r.dtype.kind == "c":
        raise error(
            DtypeError, f"lax.linalg.cholesky_update takes real matrices, got {r!r}", "factorize A + w w^H by cholesky"
        )
    row = structural.reshape(w_vector, shape=(*w.shape[:-1], 1, w.shape[-1]))
    whole = structural.concatenate(M.triu(r_matrix), row, dimension=r.ndim - 2)
    _, updated = qr.qr(whole, full_matrices=False)
    negative = elementwise.lt(M.diagonal(updated), structural.zeros(w))
    sign = elementwise.select_n(negative, structural.full_like(w_vector, 1), structural.full_like(w_vector, -1))
    return elementwise.mul(updated, M.rows(sign, updated))
