"""Matrix factorizations under JAX's names, of stacks of matrices in the last two dimensions; nothing is promoted.

They take float32, float64, complex64 and complex128. Where LAPACK reports a failure the results are NaN.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Literal, overload

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, UnsupportedError
from functorch_like.lax.matrix_updates import cholesky_update as cholesky_update
from functorch_like.lax.matrix_updates import symmetric_product as symmetric_product
from functorch_like.lax.operands import error, ints, one_int
from functorch_like.lax.polar_iterations import qdwh as qdwh
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.linalg import cholesky_lu, eigen
from functorch_like.primitives.linalg import matrix_algebra as M
from functorch_like.primitives.linalg import qr as orthogonal
from functorch_like.primitives.linalg import svd as singular
from functorch_like.primitives.linalg import triangular_solve as triangular
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike

__all__ = [
    "SvdAlgorithm", "cholesky", "cholesky_update", "eig", "eigh", "geqp3", "geqrf", "hessenberg", "householder_product",
    "lu", "lu_pivots_to_permutation", "ormqr", "qdwh", "qr", "schur", "svd", "symmetric_product", "triangular_solve",
    "tridiagonal", "tridiagonal_solve",
]  # fmt: skip


def _hermitian(x: Any) -> Any:
    return elementwise.mul(elementwise.add(x, M.adjoint(x)), structural.full_like(x, 0.5))


@eager_jit(static=("symmetrize_input",))
def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """Cholesky factor L with x = L L^H, of Hermitian positive definite matrices; NaN for others.

    Args:
        x: (..., n, n).
        symmetrize_input: take the Hermitian part of `x`; else only its lower triangle is read.

    Returns:
        The factor, of the shape and dtype of x.

    >>> lax.linalg.cholesky(fnp.asarray([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    square = aval_of(x).ndim > 1 and aval_of(x).shape[-1] == aval_of(x).shape[-2]  # else the primitive raises
    return cholesky_lu.cholesky(_hermitian(x) if symmetrize_input and square else x)


@eager_jit(static=("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal"))
def triangular_solve(
    a: ArrayLike, b: ArrayLike, *, left_side: bool = False, lower: bool = False, transpose_a: bool = False,
    conjugate_a: bool = False, unit_diagonal: bool = False,
) -> Array:  # fmt: skip
    """Solve x op(a) = b, or op(a) x = b, for a triangular matrix a.

    Args:
        a: (..., n, n), of which one triangle is read.
        b: (..., m, n); or (..., n, m) with left_side; or vectors, with one dimension less.
        left_side: solve op(a) x = b.
        lower: read the lower triangle; else the upper one.
        transpose_a, conjugate_a: op transposes, conjugates, or both.
        unit_diagonal: assume ones on the diagonal, which is not read.

    Returns:
        An array of the shape of b.

    >>> a, b = fnp.asarray([[2.0, 0.0], [1.0, 1.0]]), fnp.asarray([2.0, 3.0])
    >>> lax.linalg.triangular_solve(a, b, left_side=True, lower=True).tolist()
    [1.0, 2.0]
    """
    shape = aval_of(b).shape
    vector = len(shape) == aval_of(a).ndim - 1
    if vector:
        b = structural.reshape(b, shape=(*shape, 1) if left_side else (*shape[:-1], 1, shape[-1]))
    dtype = aval_of(a).dtype
    if dtype.itemsize < 4 and dtype == aval_of(b).dtype:  # no library solves systems in 16 bits
        a, b = (elementwise.convert_element_type(v, new_dtype=dtypes.float32) for v in (a, b))
    x = triangular.triangular_solve(
        a, b, left_side=left_side, lower=lower, transpose_a=transpose_a, conjugate_a=conjugate_a,
        unit_diagonal=unit_diagonal,
    )  # fmt: skip
    x = x if aval_of(x).dtype == dtype else elementwise.convert_element_type(x, new_dtype=dtype)
    return structural.reshape(x, shape=shape) if vector else x


@eager_jit
def lu(x: ArrayLike) -> tuple[Array, Array, Array]:
    """LU decomposition with row pivoting, P x = L U.

    Args:
        x: array of shape (..., m, n).

    Returns:
        Both factors in one matrix (..., m, n); the pivots, int32 (..., min(m, n)): row i is swapped with row
        pivots[i]; and the permutation of rows, int32 (..., m).

    >>> factors, pivots, permutation = lax.linalg.lu(fnp.asarray([[1.0, 2.0], [4.0, 4.0]]))
    >>> factors.tolist(), permutation.tolist()
    ([[4.0, 4.0], [0.25, 1.0]], [1, 0])
    """
    return tuple(cholesky_lu.lu(x))


@eager_jit(static=("permutation_size",))
def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """The permutation of rows that the pivots of `lu` stand for.

    Args:
        pivots: int32 of shape (..., k): row i is swapped with row pivots[i].
        permutation_size: int: number of rows.

    Returns:
        An int32 array of shape (..., permutation_size).

    >>> lax.linalg.lu_pivots_to_permutation(fnp.asarray([2, 2, 2]), 3).tolist()
    [2, 0, 1]
    """
    size = one_int(permutation_size, "permutation_size")
    return cholesky_lu.lu_pivots_to_permutation(pivots, permutation_size=size)


@eager_jit(static=("pivoting", "full_matrices"))
def qr(x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True) -> tuple[Array, ...]:
    """QR decomposition x = Q R; if pivoting, x[..., P] = Q R.

    Args:
        x: (..., m, n).
        pivoting: reorder columns so that the diagonal of R decreases in size, which shows the rank.
        full_matrices: k = m columns of Q; else k = min(m, n).

    Returns:
        Q (..., m, k) with orthonormal columns and R (..., k, n), upper triangular; if pivoting, also the permutation P
        of columns, int32 (..., n).

    >>> [f.shape for f in lax.linalg.qr(fnp.ones((3, 2)), full_matrices=False)]
    [(3, 2), (2, 2)]
    >>> lax.linalg.qr(fnp.asarray([[1.0, 3.0], [0.0, 4.0]]), pivoting=True)[2].tolist()
    [1, 0]
    """
    return tuple(orthogonal.qr(x, full_matrices=full_matrices, pivoting=pivoting))


@eager_jit
def geqrf(a: ArrayLike) -> tuple[Array, Array]:
    """QR decomposition as LAPACK stores it: R with the Householder vectors below it, and their factors.

    Args:
        a: array of shape (..., m, n).

    Returns:
        An array of shape (..., m, n), and the factors of shape (..., min(m, n)).

    >>> [f.shape for f in lax.linalg.geqrf(fnp.ones((3, 2)))]
    [(3, 2), (2,)]
    """
    return tuple(orthogonal.geqrf(a))


@eager_jit
def geqp3(a: ArrayLike) -> tuple[Array, Array, Array]:
    """QR decomposition with column pivoting, as LAPACK stores it.

    Args:
        a: array of shape (..., m, n).

    Returns:
        R with the Householder vectors below it (..., m, n), the permutation of columns int32 (..., n), and the
        factors of the vectors (..., min(m, n)).

    >>> [f.shape for f in lax.linalg.geqp3(fnp.ones((3, 2)))]
    [(3, 2), (2,), (2,)]
    """
    return tuple(orthogonal.geqp3(a))


@eager_jit
def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """The first columns of the product of Householder reflections, as `geqrf` and `hessenberg` return them.

    Args:
        a: Householder vectors in the columns, of shape (..., m, n).
        taus: their factors, of shape (..., k).

    Returns:
        An array of shape (..., m, n).

    >>> a, taus = lax.linalg.geqrf(fnp.ones((3, 2)))
    >>> lax.linalg.householder_product(a, taus).shape
    (3, 2)
    """
    return orthogonal.householder_product(a, taus)


@eager_jit(static=("left", "transpose"))
def ormqr(a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False) -> Array:
    """The product of a matrix and the square Q of Householder reflections, as `geqrf` returns them.

    LAPACK's routine of this name (`unmqr` for complex numbers): the reflections are applied one after another, and Q is
    not made. On GPUs it is.

    Args:
        a: Householder vectors in the columns, of shape (..., m, n).
        taus: their factors, of shape (..., k), at most min(m, n) of them.
        c: array of shape (..., m, p), or (..., p, m) for a Q on the right.
        left: whether the product is Q c; else it is c Q.
        transpose: whether Q is replaced by its conjugate transpose.

    Returns:
        An array of the shape of `c`.

    Raises:
        ShapeError: where the sizes do not fit.

    >>> a, taus = lax.linalg.geqrf(fnp.asarray([[3.0, 1.0], [4.0, 1.0]]))
    >>> lax.linalg.ormqr(a, taus, fnp.asarray([[3.0], [4.0]]), transpose=True).round(4).tolist()
    [[-5.0], [0.0]]
    """
    if not aval_of(taus).shape[-1] or not aval_of(c).size:
        return structural.copy(c)
    return orthogonal.ormqr(a, taus, c, left=bool(left), transpose=bool(transpose))


class SvdAlgorithm(enum.StrEnum):
    """Algorithm of `svd`: the platform's best, QR iterations, Jacobi rotations, polar factors, divide and conquer."""

    DEFAULT = "default"
    QR = "qr"
    JACOBI = "jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


@overload
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | str | None = None,
) -> tuple[Array, Array, Array]: ...
@overload
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: Literal[False],
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | str | None = None,
) -> Array: ...
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | str | None = None,
) -> Any:
    """Singular value decomposition: (U, S, Vh), or S alone.

    Args:
        x: (..., m, n).
        full_matrices: return square U and Vh.
        compute_uv: False for the singular values alone.
        subset_by_index: `(start, end)`: return values `start` to `end - 1`, the largest being 0, and their vectors.
            All are computed.
        algorithm: a `SvdAlgorithm` or its name. CPUs have the default and "qr", GPUs "jacobi" too; "divide_and_conquer"
            is the default, which it is on CPUs.

    Returns:
        U (..., m, k), S (..., k) and Vh (..., k, n); S alone without vectors.

    Raises:
        ArgumentError: for an unknown algorithm, or a subset out of range.
        UnsupportedError: for an algorithm that the platform does not have.

    >>> lax.linalg.svd(fnp.asarray([[0.0, 2.0], [3.0, 0.0]]), compute_uv=False).tolist()
    [3.0, 2.0]
    """
    how = str(algorithm or "default").lower().replace("divide_and_conquer", "default")
    if how == "polar":
        raise error(UnsupportedError, "lax.linalg.svd does not support algorithm='polar'", "leave algorithm= out")
    subset = _subset(subset_by_index, min(aval_of(x).shape[-2:], default=0))
    if subset is not None and full_matrices and compute_uv:
        raise error(
            ArgumentError, "lax.linalg.svd got subset_by_index= with full_matrices=True", "pass full_matrices=False"
        )
    return _svd(x, bool(full_matrices), bool(compute_uv), subset, how)


@eager_jit(static=("full", "vectors", "subset", "how"))
def _svd(x: Any, full: bool, vectors: bool, subset: tuple[int, int] | None, how: str) -> Any:
    s, *uv = singular.svd(x, full_matrices=full, compute_uv=vectors, algorithm=how)
    if subset is not None:
        s = _part(s, subset, -1)
        uv = [_part(v, subset, dim) for v, dim in zip(uv, (-1, -2), strict=False)]
    return (uv[0], s, uv[1]) if vectors else s


def _subset(subset: Any, size: int) -> tuple[int, int] | None:
    """Return a checked pair of positions; None for all."""
    if subset is None:
        return None
    start, end = ints(subset, "subset_by_index")
    if not 0 <= start <= end <= size:
        raise error(
            ArgumentError,
            f"subset_by_index={(start, end)} is out of range for {size} values",
            f"use 0 <= start <= end <= {size}",
        )
    return None if (start, end) == (0, size) else (start, end)


def _part(x: Any, subset: tuple[int, int], dim: int) -> Any:
    shape = aval_of(x).shape
    start, end = [0] * len(shape), list(shape)
    start[dim], end[dim] = subset
    return structural.slice(x, start_indices=tuple(start), limit_indices=tuple(end), strides=None)


def eigh(
    x: ArrayLike, *, lower: bool = True, symmetrize_input: bool = True, sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Eigenvectors and eigenvalues of Hermitian matrices; vectors first, as in JAX.

    Args:
        x: (..., n, n).
        lower: read the lower triangle; else the upper one.
        symmetrize_input: take the Hermitian part of `x` before that.
        sort_eigenvalues: has no effect: eigenvalues are always in ascending order.
        subset_by_index: `(start, end)`: return values `start` to `end - 1`, the least being 0, and their vectors.
            All are computed.

    Returns:
        A pair: eigenvectors in columns (..., n, k), and real eigenvalues (..., k) in ascending order.

    Raises:
        ArgumentError: for a subset out of range.

    >>> lax.linalg.eigh(fnp.asarray([[2.0, 0.0], [0.0, 1.0]]))[1].tolist()
    [1.0, 2.0]
    """
    return _eigh(x, bool(lower), bool(symmetrize_input), _subset(subset_by_index, (0, *aval_of(x).shape)[-1]))


@eager_jit(static=("lower", "symmetrize", "subset"))
def _eigh(x: Any, lower: bool, symmetrize: bool, subset: tuple[int, int] | None) -> Any:
    x = _hermitian(x) if symmetrize and aval_of(x).ndim > 1 else x
    v, w = eigen.eigh(x, lower=lower, compute_v=True)
    return (v, w) if subset is None else (_part(v, subset, -1), _part(w, subset, -1))


@eager_jit(static=("compute_left_eigenvectors", "compute_right_eigenvectors"))
def eig(
    x: ArrayLike, *, compute_left_eigenvectors: bool = True, compute_right_eigenvectors: bool = True
) -> tuple[Array, ...]:
    """Eigenvalues, and left and right eigenvectors as the options select; always complex.

    Args:
        x: array of shape (..., n, n).
        compute_left_eigenvectors: return left eigenvectors.
        compute_right_eigenvectors: return right eigenvectors.

    Returns:
        A tuple of the eigenvalues (..., n) and of the selected eigenvectors, left ones first, (..., n, n), in columns.

    >>> [f.shape for f in lax.linalg.eig(fnp.eye(2), compute_left_eigenvectors=False)]
    [(2,), (2, 2)]
    """
    return tuple(
        eigen.eig(
            x,
            compute_left_eigenvectors=bool(compute_left_eigenvectors),
            compute_right_eigenvectors=bool(compute_right_eigenvectors),
        )
    )


def schur(
    x: ArrayLike, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False, select_callable: None = None
) -> tuple[Array, ...]:
    """Schur decomposition x = Z T Z^H.

    Args:
        x: array of shape (..., n, n).
        compute_schur_vectors: return Z, too.
        sort_eig_vals: not supported: False.
        select_callable: not supported: None.

    Returns:
        T and Z of the shape of x; T alone without vectors. T is upper triangular, with 2 x 2 blocks where a real
        matrix has complex eigenvalues.

    Raises:
        ArgumentError: for sorted eigenvalues, which jaxlib does not support.

    >>> [f.shape for f in lax.linalg.schur(fnp.eye(2))]
    [(2, 2), (2, 2)]
    """
    if sort_eig_vals or select_callable is not None:
        raise error(ArgumentError, "lax.linalg.schur does not sort eigenvalues", "leave sort_eig_vals False")
    return _schur(x, bool(compute_schur_vectors))


@eager_jit(static=("vectors",))
def _schur(x: Any, vectors: bool) -> Any:
    return tuple(eigen.schur(x, compute_schur_vectors=vectors))


@eager_jit
def hessenberg(a: ArrayLike) -> tuple[Array, Array]:
    """Hessenberg form, with Householder vectors below it, and their factors.

    Args:
        a: array of shape (..., n, n).

    Returns:
        An array of shape (..., n, n), and the factors of shape (..., n - 1).

    >>> [f.shape for f in lax.linalg.hessenberg(fnp.ones((3, 3)))]
    [(3, 3), (2,)]
    """
    return tuple(orthogonal.hessenberg(a))


@eager_jit(static=("lower",))
def tridiagonal(a: ArrayLike, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """Tridiagonal form of Hermitian matrices: Householder vectors, diagonal, off-diagonal, factors.

    Args:
        a: array of shape (..., n, n).
        lower: read the lower triangle; else the upper one.

    Returns:
        Arrays of shapes (..., n, n), (..., n), (..., n - 1) and (..., n - 1).

    >>> [f.shape for f in lax.linalg.tridiagonal(fnp.ones((3, 3)))]
    [(3, 3), (3,), (2,), (2,)]
    """
    return tuple(orthogonal.tridiagonal(a, lower=lower))


@eager_jit
def tridiagonal_solve(dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike) -> Array:
    """Solve T x = b, where T is given by its three diagonals; dl[0] and du[-1] are not read.

    Args:
        dl: lower diagonal, of shape (..., n).
        d: diagonal, of shape (..., n).
        du: upper diagonal, of shape (..., n).
        b: right-hand sides, of shape (..., n, k).

    Returns:
        An array of shape (..., n, k).

    >>> one = fnp.ones(2)
    >>> lax.linalg.tridiagonal_solve(0 * one, 2 * one, 0 * one, fnp.ones((2, 1))).tolist()
    [[0.5], [0.5]]
    """
    return triangular.tridiagonal_solve(dl, d, du, b)
