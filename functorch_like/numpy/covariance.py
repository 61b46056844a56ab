"""Covariance and correlation of variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.operands import given, known
from functorch_like.numpy.reductions import _dtype
from functorch_like.transforms.eager_jit import eager_jit, with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike, NestedArrayLike


@with_kernel(1, values=("y", "fweights", "aweights"))
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: NestedArrayLike | None = None,
    aweights: NestedArrayLike | None = None,
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """Covariances of variables.

    Args:
        m: observations: (variables, observations), or one variable.
        y: further variables, in the same form.
        rowvar: True if variables are rows, False if they are columns.
        bias: divide by the number of observations, rather than one less.
        ddof: divide by the number of observations minus this; it takes precedence over `bias`.
        fweights: the multiplicity of each observation: whole numbers.
        aweights: the weight of each observation.
        dtype: dtype of the result.

    Returns:
        (variables, variables); a number for one variable.

    Raises:
        ShapeError: for more than two dimensions, or weights that do not fit.
        DtypeError: for fweights that are not whole numbers.
        ArgumentError: where ddof is not an int, or a weight is negative.

    >>> fnp.cov([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    m, y, fweights, aweights = given(m, y, fweights, aweights)
    for a in (m, y):
        if a is not None and aval_of(a).ndim > 2:
            raise promotion.error(ShapeError, f"fnp.cov of {aval_of(a)!r}", "give at most two dimensions")
    if fweights is not None and aval_of(fweights).dtype.kind not in "biu":
        why = f"fnp.cov counts observations by fweights, got {aval_of(fweights)!r}"
        raise promotion.error(DtypeError, why, "give whole numbers, or pass them as aweights")
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        values = None if weights is None else known(weights)
        if values is not None and (values < 0).any():
            raise promotion.error(
                ArgumentError, f"fnp.cov with the negative weight {values.min()}", f"give {name} >= 0"
            )
    if ddof is not None and ddof != int(ddof):
        raise promotion.error(ArgumentError, f"fnp.cov with ddof={ddof}", "give an int")
    ddof = ddof if ddof is not None else 0 if bias else 1
    return _cov(m, y, fweights, aweights, rowvar=bool(rowvar), ddof=int(ddof), dtype=_dtype(dtype))


def _variables(a: Any, rowvar: bool) -> Any:
    a = promotion.to_inexact(a)
    return a.T if aval_of(a).ndim == 2 and not rowvar else fnp.atleast_2d(a)


@eager_jit(static=("rowvar", "ddof", "dtype"))
def _cov(m: Any, y: Any, fweights: Any, aweights: Any, rowvar: bool, ddof: int, dtype: Any) -> Any:
    x = _variables(m, rowvar)
    if y is not None:
        x = fnp.concatenate([x, _variables(y, rowvar)], 0)
    dtype = aval_of(x).dtype if dtype is None else dtype
    x = promotion.convert(x, dtypes.accumulator(dtype))
    n = aval_of(x).shape[1]
    weights = None
    for given_weights in (fweights, aweights):
        if given_weights is not None:
            if aval_of(given_weights).shape != (n,):
                raise promotion.error(
                    ShapeError, f"fnp.cov of {n} observations with weights {aval_of(given_weights)!r}", "give one each"
                )
            weights = given_weights if weights is None else weights * given_weights
    if weights is None:
        mean, total, freedom = fnp.mean(x, 1), n, n - ddof
    else:
        weights = promotion.convert(weights, fnp.real(x).dtype)
        total = fnp.sum(weights)
        mean = fnp.sum(x * weights, 1) / total
        freedom = total - ddof
        if aweights is not None and ddof:
            freedom = total - ddof * fnp.sum(weights * aweights) / total
    gap = x - mean[:, None]
    weighted = fnp.conj(gap if weights is None else gap * weights)
    freedom = fnp.maximum(promotion.convert(freedom, fnp.real(x).dtype), 0)
    return promotion.convert(fnp.squeeze(fnp.matmul(gap, weighted.T) / freedom), dtype)


@with_kernel(1, values=("y",))
def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, *, dtype: DTypeLike | None = None) -> Array:
    """Correlation coefficients of variables; arguments as for `cov`.

    Args:
        x: array of shape (variables, observations), or (observations,).
        y: more variables, in the same layout.
        rowvar: False if variables are columns.
        dtype: dtype of the result.

    Returns:
        A matrix of numbers from -1 to 1, one row and column for each variable.

    >>> fnp.corrcoef([[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]]).round(3).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    return _corrcoef(cov(x, y, rowvar, dtype=dtype))


@eager_jit
def _corrcoef(c: Any) -> Any:
    if not aval_of(c).ndim:
        return c / c
    size = fnp.sqrt(fnp.real(fnp.diagonal(c)))
    c = c / size[:, None] / size[None]
    bound = lambda part: fnp.clip(part, -1, 1)
    return bound(fnp.real(c)) + 1j * bound(fnp.imag(c)) if aval_of(c).dtype.kind == "c" else bound(c)
