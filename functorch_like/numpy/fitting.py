"""`polyfit`: the least-squares fit of a polynomial to data."""

from __future__ import annotations

import operator
import warnings
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import Tracer, aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.operands import given
from functorch_like.source_info import user_line
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: Literal[False] = False,
    w: ArrayLike | None = None,
    cov: Literal[False] = False,
) -> Array: ...
@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    *,
    full: Literal[True],
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> tuple[Array, ...]: ...
@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: Literal[False] = False,
    w: ArrayLike | None = None,
    *,
    cov: Literal[True] | str,
) -> tuple[Array, Array]: ...
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any:
    """Coefficients of the polynomial of degree `deg` with the least sum of squares of w (y - p(x)).

    Args:
        x: the points: (n,), n at least 1.
        y: the data: (n,), or (n, k) for k polynomials.
        deg: degree, a Python int.
        rcond: singular values up to this times the largest count as zero; n eps by default.
        full: return the residuals, the rank, the singular values of the scaled Vandermonde matrix, and rcond, too.
        w: weights (n,) of the differences, not of their squares.
        cov: return the covariance matrix of the coefficients, too, scaled by the residuals, or "unscaled".

    Returns:
        (deg + 1,) or (deg + 1, k), the highest power first; with `full` or `cov` a tuple.

    Raises:
        ArgumentError: for negative deg, and too few points for a scaled covariance.
        ShapeError: where shapes do not fit.

    Warns:
        numpy.exceptions.RankWarning: where the points do not determine the coefficients and `full` is False.

    >>> fnp.polyfit(fnp.arange(4.0), 2 * fnp.arange(4.0) + 1, 1).round(3).tolist()
    [2.0, 1.0]
    """
    deg = operator.index(deg)
    x, y, w = given(x, y, w)
    left, right = aval_of(x), aval_of(y)
    if deg < 0:
        raise promotion.error(ArgumentError, f"fnp.polyfit of degree {deg}", "use 0 or more")
    fits = left.ndim == 1 and left.size and right.ndim in (1, 2) and right.shape[0] == left.size
    if not fits or (w is not None and aval_of(w).shape != left.shape):
        what = "" if w is None else f" with weights {aval_of(w)!r}"
        raise promotion.error(
            ShapeError, f"fnp.polyfit of {left!r} and {right!r}{what}", "give (n,) and (n,) or (n, k), n > 0"
        )
    points = left.size
    if cov and not full and cov != "unscaled" and points <= deg + 1:
        raise promotion.error(
            ArgumentError,
            f"fnp.polyfit: {points} points are too few to scale the covariance of degree {deg}",
            "give more points, or cov='unscaled'",
        )
    if rcond is None:
        dtype = np.result_type(*(dtypes.inexact_dtype(aval_of(a).dtype) for a in (x, y)))
        rcond = points * float(fnp.finfo(dtype).eps)
    c, squares, rank, s, base = _polyfit(x, y, w, deg=deg, rcond=float(rcond), unscaled=cov == "unscaled")
    if full:
        return c, squares, rank, s, rcond
    if points <= deg or (not isinstance(rank, Tracer) and int(rank) <= deg):
        line = user_line()
        warnings.warn_explicit(
            f"fnp.polyfit: these {points} points do not determine a polynomial of degree {deg} in {left!r}; of those "
            "that fit best, the one with the least scaled coefficients is returned. Give a lower degree, more distinct "
            "points, or full=True for the rank instead of this warning",
            np.exceptions.RankWarning,
            *(("functorch_like", 0) if line is None else (line.file, line.line)),
        )
    return (c, base) if cov else c


@eager_jit(static=("deg", "rcond", "unscaled"))
def _polyfit(x: Any, y: Any, w: Any, deg: int, rcond: float, unscaled: bool) -> Any:
    x, y = map(promotion.to_inexact, promotion.promote(x, y))
    matrix = x[:, None] ** fnp.arange(deg, -1, -1)
    if w is not None:
        matrix, y = matrix * w[:, None], y * (w[:, None] if aval_of(y).ndim == 2 else w)
    size = fnp.sqrt(fnp.sum(fnp.abs(matrix) ** 2, 0))
    size = fnp.where(size == 0, 1, size)
    c, squares, rank, s = fnp.linalg.lstsq(matrix / size, y, rcond)
    c = c / (size if aval_of(c).ndim == 1 else size[:, None])
    inverse = fnp.linalg.pinv(matrix / size, rtol=rcond)
    base = (inverse @ fnp.conj(inverse.T)) / fnp.outer(size, size)
    base = base[..., None] * (1 if unscaled else squares / max(aval_of(x).size - deg - 1, 1))
    base = base[..., 0] if aval_of(y).ndim == 1 else base
    return c, squares, rank, s, base
