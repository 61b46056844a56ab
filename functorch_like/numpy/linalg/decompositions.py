"""Factors of matrices: Cholesky, QR, singular values, eigenvalues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.shapes import arr
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.linalg import cholesky_lu, eigen
from functorch_like.primitives.linalg import matrix_algebra as M
from functorch_like.primitives.linalg import qr as orthogonal
from functorch_like.primitives.linalg import svd as singular
from functorch_like.transforms.eager_jit import eager_jit, with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


class QRResult(NamedTuple):
    """A matrix with orthonormal columns, and an upper triangular one."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """Left singular vectors, singular values, and the adjoint of the right vectors."""

    U: Array
    S: Array
    Vh: Array


class EighResult(NamedTuple):
    """Eigenvalues, and eigenvectors in columns."""

    eigenvalues: Array
    eigenvectors: Array


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors in columns."""

    eigenvalues: Array
    eigenvectors: Array


def matrices(a: Any, name: str, square: bool = False) -> Any:
    """Check that an argument is a stack of matrices, and return it.

    Raises:
        ShapeError: where it is not.
    """
    a = arr(a, f"fnp.linalg.{name}")
    aval = aval_of(a)
    if aval.ndim < 2:
        raise promotion.error(
            ShapeError, f"fnp.linalg.{name} of {aval!r}, not a matrix", "give at least two dimensions"
        )
    if square and aval.shape[-1] != aval.shape[-2]:
        raise promotion.error(ShapeError, f"fnp.linalg.{name} of {aval!r}, not square", "give square matrices")
    return a


def symmetrized(a: Any) -> Any:
    """Return the Hermitian part."""
    return elementwise.mul(elementwise.add(a, M.adjoint(a)), structural.full_like(a, 0.5))


@with_kernel(1)
def cholesky(a: ArrayLike, /, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The triangular factor of Hermitian positive definite matrices.

    Args:
        a: (..., n, n).
        upper: U with a = U^H U, rather than L with a = L L^H.
        symmetrize_input: take the Hermitian part of `a`, which makes derivatives Hermitian; else only the lower
            triangle is read.

    Returns:
        The factor; NaN for a matrix that is not positive definite.

    >>> fnp.linalg.cholesky(fnp.asarray([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    return _cholesky(matrices(a, "cholesky", True), bool(upper), bool(symmetrize_input))


@eager_jit(static=("upper", "symmetrize"))
def _cholesky(a: Any, upper: bool, symmetrize: bool) -> Any:
    a = promotion.to_inexact(a)
    result = cholesky_lu.cholesky(symmetrized(a) if symmetrize else a)
    return M.adjoint(result) if upper else result


@overload
def qr(a: ArrayLike, mode: Literal["reduced", "complete"] = "reduced") -> QRResult: ...
@overload
def qr(a: ArrayLike, mode: Literal["r"]) -> Array: ...
@overload
def qr(a: ArrayLike, mode: Literal["raw"]) -> tuple[Array, Array]: ...
@with_kernel(1)
def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """QR decomposition: Q with orthonormal columns and an upper triangular R, such that Q R = a.

    Args:
        a: (..., m, n).
        mode: "reduced": min(m, n) columns; "complete": m columns; "r": R alone; "raw": a pair (h, tau) of the
            reflections that Q is a product of, as NumPy gives them: h is transposed, with R in its lower triangle.

    Returns:
        A named tuple of `Q` and `R`; or R alone, or a pair, depending on the mode. In floating point.

    Raises:
        ArgumentError: for another mode.

    >>> q, r = fnp.linalg.qr(fnp.asarray([[3.0, 1.0], [4.0, 2.0]]))
    >>> fnp.allclose(q @ r, fnp.asarray([[3.0, 1.0], [4.0, 2.0]]), atol=1e-5).item()
    True
    """
    if mode not in ("reduced", "complete", "r", "raw"):
        raise promotion.error(ArgumentError, f"fnp.linalg.qr: mode={mode!r}", "use 'reduced', 'complete', 'r' or 'raw'")
    if mode == "raw":
        return _reflections(matrices(a, "qr"))
    q, r = _qr(matrices(a, "qr"), mode == "complete")
    return r if mode == "r" else QRResult(q, r)


@eager_jit(static=("full",))
def _qr(a: Any, full: bool) -> Any:
    return tuple(orthogonal.qr(promotion.to_inexact(a), full_matrices=full))


@eager_jit
def _reflections(a: Any) -> Any:
    h, tau = orthogonal.geqrf(promotion.to_inexact(a))
    ndim = aval_of(h).ndim
    return structural.transpose(h, permutation=(*range(ndim - 2), ndim - 1, ndim - 2)), tau


@overload
def svd(
    a: ArrayLike, full_matrices: bool = True, compute_uv: Literal[True] = True, hermitian: bool = False
) -> SVDResult: ...
@overload
def svd(a: ArrayLike, full_matrices: bool = True, *, compute_uv: Literal[False], hermitian: bool = False) -> Array: ...
@with_kernel(1)
def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Singular value decomposition: a = U diag(S) Vh.

    Args:
        a: (..., m, n).
        full_matrices: return square U and Vh; else only the vectors that belong to singular values.
        compute_uv: False for the singular values alone, which is faster.
        hermitian: accepted for compatibility with NumPy; changes nothing.

    Returns:
        (U, S, Vh), or S. The vectors have derivatives where the values are distinct and not zero; with full_matrices,
        only if m = n.

    >>> fnp.linalg.svd(fnp.asarray([[0.0, 2.0], [3.0, 0.0]]))[1].tolist()
    [3.0, 2.0]
    """
    result = _svd(matrices(a, "svd"), bool(full_matrices), bool(compute_uv))
    return SVDResult(result[1], result[0], result[2]) if compute_uv else result[0]


@eager_jit(static=("full", "vectors"))
def _svd(a: Any, full: bool, vectors: bool) -> Any:
    return tuple(singular.svd(promotion.to_inexact(a), full_matrices=full, compute_uv=vectors))


@with_kernel(1)
def svdvals(x: ArrayLike, /) -> Array:
    """Singular values, from the largest to the smallest.

    Args:
        x: array of shape (..., m, n).

    Returns:
        An array of shape (..., min(m, n)).

    >>> fnp.linalg.svdvals(fnp.asarray([[0.0, 2.0], [3.0, 0.0]])).tolist()
    [3.0, 2.0]
    """
    return _svd(matrices(x, "svdvals"), False, False)[0]


@with_kernel(1)
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Eigenvalues and eigenvectors of Hermitian matrices.

    Args:
        a: (..., n, n).
        UPLO: "L" or "U": the triangle that is read if `a` is not symmetrized.
        symmetrize_input: take the Hermitian part of `a`, which makes derivatives Hermitian.

    Returns:
        Values from the smallest to the largest, and vectors in columns. Where two values are equal, the vectors have no
        derivative: it is infinite or NaN.

    >>> fnp.linalg.eigh(fnp.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues.tolist()
    [1.0, 2.0]
    """
    v, w = _eigh(matrices(a, "eigh", True), _lower(UPLO), bool(symmetrize_input), True)
    return EighResult(w, v)


@with_kernel(1)
def eigvalsh(a: ArrayLike, UPLO: str | None = None, *, symmetrize_input: bool = True) -> Array:
    """Eigenvalues of Hermitian matrices, from the smallest to the largest; arguments as for `eigh`.

    Args:
        a: array of shape (..., n, n).
        UPLO: "L" reads the lower triangle, "U" the upper one; None for "L".
        symmetrize_input: take the mean of both triangles first.

    Returns:
        An array of real numbers, of shape (..., n).

    >>> fnp.linalg.eigvalsh(fnp.asarray([[2.0, 0.0], [0.0, 1.0]])).tolist()
    [1.0, 2.0]
    """
    return _eigh(matrices(a, "eigvalsh", True), _lower(UPLO), bool(symmetrize_input), False)[0]


def _lower(uplo: str | None) -> bool:
    if uplo not in (None, "L", "U", "l", "u"):
        raise promotion.error(ArgumentError, f"UPLO={uplo!r} names no triangle", "use 'L' or 'U'")
    return uplo not in ("U", "u")


@eager_jit(static=("lower", "symmetrize", "vectors"))
def _eigh(a: Any, lower: bool, symmetrize: bool, vectors: bool) -> Any:
    a = promotion.to_inexact(a)
    return tuple(eigen.eigh(symmetrized(a) if symmetrize else a, lower=lower, compute_v=vectors))


def eig(a: ArrayLike) -> EigResult:
    """Eigenvalues and eigenvectors of square matrices, always complex.

    Args:
        a: (..., n, n).

    Returns:
        Values, in no particular order, and vectors of length 1 in columns.

    >>> fnp.linalg.eig(fnp.asarray([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues.tolist()
    [1j, -1j]
    """
    return EigResult(*_eig(matrices(a, "eig", True), True))


def eigvals(a: ArrayLike) -> Array:
    """Eigenvalues of square matrices, always complex.

    Args:
        a: array of shape (..., n, n).

    Returns:
        An array of complex numbers, of shape (..., n).

    >>> fnp.linalg.eigvals(fnp.asarray([[0.0, 1.0], [-1.0, 0.0]])).tolist()
    [1j, -1j]
    """
    return _eig(matrices(a, "eigvals", True), False)[0]


@eager_jit(static=("vectors",))
def _eig(a: Any, vectors: bool) -> Any:
    return tuple(
        eigen.eig(promotion.to_inexact(a), compute_left_eigenvectors=False, compute_right_eigenvectors=vectors)
    )
