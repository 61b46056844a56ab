"""QR, Schur and Hessenberg forms, under SciPy's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.numpy import promotion, shapes
from functorch_like.numpy.creation import asarray
from functorch_like.primitives import structural
from functorch_like.primitives.linalg import eigen
from functorch_like.primitives.linalg import matrix_algebra as M
from functorch_like.primitives.linalg import qr as orthogonal
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


def arr(x: Any, what: str) -> Any:
    """Return an array argument; lists become arrays, as in SciPy."""
    return shapes.arr(asarray(x) if isinstance(x, (list, tuple)) else x, what)


def matrices(a: Any, name: str, square: bool = True) -> Any:
    """Check that an argument is a stack of matrices, and return it."""
    a = arr(a, f"scipy.linalg.{name}")
    aval = aval_of(a)
    if aval.ndim < 2 or (square and aval.shape[-1] != aval.shape[-2]):
        what = "square matrices" if square else "matrices"
        raise promotion.error(
            ShapeError, f"scipy.linalg.{name} of {aval!r}", f"give {what}, in the last two dimensions"
        )
    return a


def qr(a: ArrayLike, mode: str = "full", pivoting: bool = False) -> Any:
    """QR decomposition: orthonormal Q and triangular R with a = Q R; with pivoting, a[..., P] = Q R, and P, too.

    Args:
        a: (..., m, n).
        mode: "full", "economic", or "r", which gives R without Q.
        pivoting: take columns in an order in which the diagonal of R decreases.

    Returns:
        Q and R; with pivoting also the int32 positions of columns; for mode "r" without Q.

    Raises:
        ArgumentError: for another mode.

    >>> [f.shape for f in ft.scipy.linalg.qr(fnp.ones((3, 2)), mode="economic")]
    [(3, 2), (2, 2)]
    """
    if mode not in ("full", "economic", "r"):
        raise promotion.error(ArgumentError, f"scipy.linalg.qr with mode={mode!r}", "use 'full', 'economic' or 'r'")
    q, *rest = _qr(matrices(a, "qr", square=False), mode != "economic", bool(pivoting))
    return tuple(rest) if mode == "r" else (q, *rest)


@eager_jit(static=("full", "pivoting"))
def _qr(a: Any, full: bool, pivoting: bool) -> Any:
    return tuple(orthogonal.qr(promotion.to_inexact(a), full_matrices=full, pivoting=pivoting))


def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """Schur decomposition: a triangular T and a unitary Z with a = Z T Z^H.

    Args:
        a: (..., n, n).
        output: "real" leaves blocks of two in T where a real matrix has complex eigenvalues; "complex" does not.

    Returns:
        T and Z, of the shape of a.

    Raises:
        ArgumentError: for another output.

    >>> ft.scipy.linalg.schur(fnp.asarray([[1.0, 2.0], [0.0, 3.0]]))[0].tolist()
    [[1.0, 2.0], [0.0, 3.0]]
    """
    if output not in ("real", "complex"):
        raise promotion.error(ArgumentError, f"scipy.linalg.schur with output={output!r}", "use 'real' or 'complex'")
    return _schur(matrices(a, "schur"), output == "complex")


@eager_jit(static=("full",))
def _schur(a: Any, full: bool) -> Any:
    a = promotion.to_inexact(a)
    a = M.to(a, dtypes.complex_of(dtypes.real_part(aval_of(a).dtype))) if full else a
    return tuple(eigen.schur(a, compute_schur_vectors=True))


@overload
def hessenberg(a: ArrayLike, calc_q: Literal[False] = False) -> Array: ...
@overload
def hessenberg(a: ArrayLike, calc_q: Literal[True]) -> tuple[Array, Array]: ...
@eager_jit(static=("calc_q",))
def hessenberg(a: ArrayLike, calc_q: bool = False) -> Any:
    """Hessenberg form: H with a = Q H Q^H, zero below its first subdiagonal; with `calc_q`, Q, too.

    Args:
        a: array of shape (..., n, n).
        calc_q: return Q, too.

    Returns:
        H of shape (..., n, n); or a pair (H, Q).

    >>> ft.scipy.linalg.hessenberg(fnp.eye(3)).shape
    (3, 3)
    """
    packed, taus = orthogonal.hessenberg(promotion.to_inexact(matrices(a, "hessenberg")))
    form = M.triu(packed, -1)
    if not calc_q:
        return form
    n = aval_of(form).shape[-1]
    inner = orthogonal.householder_product(M.block(packed, (1, n), (0, n - 1)), taus)
    shape = aval_of(form)
    config = ((0, 0, 0),) * (shape.ndim - 2) + ((1, 0, 0), (1, 0, 0))
    q = structural.pad(inner, structural.full((), 0, shape.dtype), padding_config=config)
    corner = M.block(M.eye_like(q), (0, 1), (0, n))
    return form, structural.concatenate(corner, M.block(q, (1, n), (0, n)), dimension=shape.ndim - 2)
