"""Algebra of stacks of matrices, for the rules of the primitives of linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.contractions.dot_general import dot_general
from functorch_like.primitives.indexing.gather_and_scatter_add import along


def mm(a: Any, *more: Any) -> Any:
    """Matrix products, from the left."""
    n = aval_of(a).ndim
    lead = tuple(range(n - 2))
    for b in more:
        a = dot_general(a, b, dimension_numbers=(((n - 1,), (n - 2,)), (lead, lead)), precision="highest")
    return a


def transposed(x: Any) -> Any:
    """The last two dimensions swapped."""
    n = aval_of(x).ndim
    return structural.transpose(x, permutation=(*range(n - 2), n - 1, n - 2))


def conj(x: Any) -> Any:
    """The complex conjugate; real values as they are."""
    return elementwise.conj(x) if aval_of(x).dtype.kind == "c" else x


def adjoint(x: Any) -> Any:
    """Conjugated and transposed."""
    return conj(transposed(x))


def real(x: Any) -> Any:
    """The real part, in a real dtype."""
    return elementwise.real(x) if aval_of(x).dtype.kind == "c" else x


def to(x: Any, dtype: Any) -> Any:
    """Convert to another dtype."""
    return x if aval_of(x).dtype == dtype else structural.convert_element_type(x, new_dtype=np.dtype(dtype))


def _index(x: Any, dim: int, shift: int = 0) -> Any:
    aval = aval_of(x)
    i = structural.iota(dtype=dtypes.int32, shape=aval.shape, dimension=aval.ndim + dim)
    return elementwise.add(i, structural.full(aval.shape, shift, dtypes.int32)) if shift else i


def on_diagonal(x: Any) -> Any:
    """Return a mask of the diagonal, in the shape of x."""
    return elementwise.eq(_index(x, -2), _index(x, -1))


def only(where: Any, x: Any) -> Any:
    """x there, zero elsewhere."""
    return elementwise.select_n(where, structural.full_like(x, 0), x)


def tril(x: Any, k: int = 0) -> Any:
    """Return the elements on the k-th diagonal and below it; zero elsewhere."""
    return only(elementwise.ge(_index(x, -2, k), _index(x, -1)), x)


def triu(x: Any, k: int = 0) -> Any:
    """Return the elements on the k-th diagonal and above it; zero elsewhere."""
    return only(elementwise.le(_index(x, -2, k), _index(x, -1)), x)


def diagonal(x: Any) -> Any:
    """Return the diagonal of square matrices, as vectors: every n + 1st element, so that the others are not read."""
    *batch, n, _ = aval_of(x).shape
    flat = structural.reshape(x, shape=(*batch, n * n))
    starts = (0,) * (len(batch) + 1)
    return structural.slice(
        flat, start_indices=starts, limit_indices=(*batch, n * n), strides=(*(1 for _ in batch), n + 1)
    )


def eye_like(x: Any) -> Any:
    """Ones on the diagonal, zero elsewhere."""
    return only(on_diagonal(x), structural.full_like(x, 1))


def columns(v: Any, x: Any) -> Any:
    """Vectors repeated such that each entry fills a column, in the shape and dtype of x."""
    aval = aval_of(x)
    dims = (*range(aval.ndim - 2), aval.ndim - 1)
    return structural.broadcast_in_dim(to(v, aval.dtype), shape=aval.shape, broadcast_dimensions=dims)


def rows(v: Any, x: Any) -> Any:
    """Vectors repeated such that each entry fills a row, in the shape and dtype of x."""
    aval = aval_of(x)
    return structural.broadcast_in_dim(
        to(v, aval.dtype), shape=aval.shape, broadcast_dimensions=tuple(range(aval.ndim - 1))
    )


def differences(v: Any, like: Any) -> Any:
    """1 / (v[j] - v[i]) in place i, j; zero on the diagonal; infinite where two are equal."""
    gap = elementwise.sub(columns(v, like), rows(v, like))
    diagonal = on_diagonal(like)
    one = structural.full_like(like, 1)
    return only(elementwise.not_(diagonal), elementwise.div(one, elementwise.select_n(diagonal, gap, one)))


def hermitian(x: Any, lower: bool = True) -> Any:
    """The Hermitian matrix of which x has one triangle; LAPACK reads no more of x."""
    part = tril(x, -1) if lower else triu(x, 1)
    middle = to(real(only(on_diagonal(x), x)), aval_of(x).dtype)
    return elementwise.add(elementwise.add(part, adjoint(part)), middle)


def block(x: Any, rows: tuple[int, int], cols: tuple[int, int]) -> Any:
    """Rows and columns from one index to another."""
    shape = aval_of(x).shape
    if (0, shape[-2], 0, shape[-1]) == (*rows, *cols):
        return x
    zeros = (0,) * (len(shape) - 2)
    limits = (*shape[:-2], rows[1], cols[1])
    return structural.slice(x, start_indices=(*zeros, rows[0], cols[0]), limit_indices=limits, strides=None)


def padded(x: Any, m: int, n: int) -> Any:
    """Zeros added below and to the right."""
    aval = aval_of(x)
    if aval.shape[-2:] == (m, n):
        return x
    config = (*((0, 0, 0),) * (aval.ndim - 2), (0, m - aval.shape[-2], 0), (0, n - aval.shape[-1], 0))
    return structural.pad(x, np.zeros((), aval.dtype), padding_config=config)


def permuted(x: Any, order: Any) -> Any:
    """Rows in another order."""
    shape = aval_of(x).shape
    index = structural.broadcast_in_dim(order, shape=shape, broadcast_dimensions=tuple(range(len(shape) - 1)))
    return along(x, index, len(shape) - 2)


def longer(x: Any, by: int, fill: int) -> Any:
    """Vectors with entries added at the end."""
    config = ((0, 0, 0),) * (aval_of(x).ndim - 1) + ((0, by, 0),)
    return structural.pad(x, np.asarray(fill, aval_of(x).dtype), padding_config=config)
