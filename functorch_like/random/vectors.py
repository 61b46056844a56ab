"""Random vectors and matrices: multivariate normal, orthogonal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import functorch_like.numpy as fnp
from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import shape_of
from functorch_like.primitives.linalg import qr as householder
from functorch_like.random.arguments import check_key
from functorch_like.random.continuous import float_dtype, normal, normals, parameter, spread
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike, Shape


def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
) -> Array:
    """Samples of the multivariate normal distribution.

    Args:
        key: uint32[2].
        mean: (..., n), the mean.
        cov: (..., n, n), the covariance, symmetric and positive semidefinite.
        shape: shape of the result without its last dimension; by default that to which mean and cov broadcast.
        dtype: float32 by default; float64, float16, bfloat16. Computed in float32 at least.
        method: the factorization of cov: "cholesky", which is fast and gives NaN for a singular one; "eigh" or "svd".

    Returns:
        (*shape, n).

    Raises:
        ArgumentError: for another method.
        DtypeError: for anything but a key, or a dtype that is not a float.
        ShapeError: where mean and cov differ in n, or do not broadcast to the shape.

    >>> random.multivariate_normal(random.key(0), fnp.zeros(2), fnp.eye(2), (3,)).shape
    (3, 2)
    """
    what = "random.multivariate_normal"
    key = check_key(key, what)
    if method not in ("cholesky", "eigh", "svd"):
        raise promotion.error(ArgumentError, f"{what} with method={method!r}", "use 'cholesky', 'eigh' or 'svd'")
    m, c = aval_of(mean).shape, aval_of(cov).shape
    if not m or len(c) < 2 or c[-1] != c[-2] or c[-1] != m[-1]:
        raise promotion.error(
            ShapeError,
            f"{what} got mean={aval_of(mean)!r}, cov={aval_of(cov)!r}",
            "give shapes (..., n) and (..., n, n)",
        )
    lead = promotion.broadcast_shapes(m[:-1], c[:-2]) if shape is None else shape_of(shape, what)
    result_dtype = float_dtype(dtype, what)
    mean = parameter(mean, result_dtype, (*lead, m[-1]), "mean")
    cov = parameter(cov, result_dtype, (*lead, *c[-2:]), "cov")
    return _multivariate(key, mean, cov, shape=(*lead, m[-1]), dtype=result_dtype, method=method)


@eager_jit(static=("shape", "dtype", "method"))
def _multivariate(key: Any, mean: Any, cov: Any, shape: tuple[int, ...], dtype: Any, method: str) -> Any:
    wide = dtypes.float64 if dtype == dtypes.float64 else dtypes.float32
    cov, mean = promotion.convert(cov, wide), spread(mean, wide, shape)
    if method == "cholesky":
        factor = fnp.linalg.cholesky(cov)
    elif method == "eigh":
        w, v = fnp.linalg.eigh(cov)
        factor = v * fnp.sqrt(fnp.maximum(w, 0))[..., None, :]
    else:
        u, s, _ = fnp.linalg.svd(cov)
        factor = u * fnp.sqrt(s)[..., None, :]
    points = normals(key, shape, wide)
    return promotion.convert(mean + fnp.einsum("...ij,...j->...i", factor, points), dtype)


def orthogonal(
    key: ArrayLike, n: int, shape: Shape = (), dtype: DTypeLike | None = None, m: int | None = None
) -> Array:
    """Orthogonal matrices (unitary ones for a complex dtype), distributed by the Haar measure.

    F. Mezzadri, "How to generate random matrices from the classical compact groups", arXiv:math-ph/0609050.

    Args:
        key: uint32[2].
        n: number of rows.
        shape: shape of the array of matrices.
        dtype: float32 by default; float64, complex64, complex128.
        m: number of columns; n by default. The columns are orthonormal, or the rows if they are fewer.

    Returns:
        (*shape, n, m).

    Raises:
        DtypeError: for anything but a key, or another dtype.

    >>> q = random.orthogonal(random.key(0), 3)
    >>> bool(fnp.allclose(q @ q.T, fnp.eye(3), atol=1e-5))
    True
    """
    what = "random.orthogonal"
    result_dtype = dtypes.default_float() if dtype is None else dtypes.as_dtype(dtype)
    if result_dtype not in (dtypes.float32, dtypes.float64, *dtypes.COMPLEX):
        raise promotion.error(
            DtypeError,
            f"{what} gives floats or complex numbers, not {result_dtype.name}",
            "use float32, float64 or a complex dtype",
        )
    sides = shape_of((n, n if m is None else m), what)
    return _orthogonal(check_key(key, what), shape=shape_of(shape, what), sides=sides, dtype=result_dtype)


@eager_jit(static=("shape", "sides", "dtype"))
def _orthogonal(key: Any, shape: tuple[int, ...], sides: tuple[int, int], dtype: Any) -> Any:
    if not min(sides):
        return fnp.zeros((*shape, *sides), dtype)
    z = normal(key, (*shape, max(sides), min(sides)), dtype)
    q, r = householder.qr(z, full_matrices=False, pivoting=False)
    diagonal = fnp.diagonal(r, axis1=-2, axis2=-1)
    size = abs(diagonal)
    # The factorization is made unique by a positive diagonal of R.
    q = q * fnp.where(size == 0, 1, diagonal / fnp.where(size == 0, 1, size))[..., None, :]
    return q if sides[0] >= sides[1] else fnp.swapaxes(q, -1, -2)
