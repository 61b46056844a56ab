"""Functions of each element: products of sparse and dense arrays, sums of sparse ones, functions that keep zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ShapeError
from functorch_like.experimental.sparse.bcoo import BCOO
from functorch_like.experimental.sparse.conversion import is_bcoo
from functorch_like.experimental.sparse.elements import add_up, groups, masked, placed, read, stored
from functorch_like.experimental.sparse.format import method
from functorch_like.experimental.sparse.layouts import bcoo_update_layout
from functorch_like.experimental.sparse.lifting import over_batches
from functorch_like.experimental.sparse.ordering import sum_duplicates
from functorch_like.experimental.sparse.rearranging import bcoo_broadcast_in_dim
from functorch_like.numpy import promotion
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


def at_elements(mat: BCOO, dense: Any, what: str) -> Any:
    """Return the values of a dense array, broadcast to the shape of a BCOO, at the stored elements.

    Raises:
        ShapeError: where it does not broadcast to that shape.
    """
    value: Any = dense if promotion.is_array(dense) else fnp.asarray(dense)
    shape = aval_of(value).shape
    padded = (1,) * (mat.ndim - len(shape)) + shape
    if len(shape) > mat.ndim or any(a not in (1, b) for a, b in zip(padded, mat.shape, strict=False)):
        raise promotion.error(
            ShapeError, f"{what} of {mat!r} and {aval_of(value)!r}, which does not broadcast to it",
            "the result must have the shape of the sparse array",
        )  # fmt: skip
    if not shape:
        return value
    return _at(fnp.reshape(value, padded), mat.indices, mat.n_batch, mat.n_sparse)


@eager_jit(static=("n_batch", "n_sparse"))
def _at(dense: Any, indices: Any, n_batch: int, n_sparse: int) -> Any:
    def one(x: Any, i: Any) -> Any:
        axes = [k for k in range(n_sparse) if aval_of(x).shape[k] != 1]
        flat = fnp.squeeze(x, tuple(k for k in range(n_sparse) if k not in axes))
        if not axes:
            return flat[None]
        return read(flat, i if len(axes) == n_sparse else i[:, np.array(axes)])

    return over_batches(one, n_batch, dense, indices)


@method
def bcoo_multiply_dense(sp_mat: BCOO, v: ArrayLike) -> Array:
    """Return the values of the product, element by element, of a BCOO and a dense array.

    Args:
        sp_mat: gives the indices of the result.
        v: array that broadcasts to its shape.

    Returns:
        The new values, as `data` of a BCOO with the indices of sp_mat.

    Raises:
        ShapeError: where v does not broadcast to the shape of sp_mat.
    """
    mat = is_bcoo(sp_mat, "bcoo_multiply_dense")
    return _whole(mat, fnp.multiply(mat.data, at_elements(mat, v, "bcoo_multiply_dense")))


def _whole(mat: BCOO, data: Any) -> Any:
    """Return new values in full batches."""
    shape = (*mat.shape[: mat.n_batch], mat.nse, *mat._tail[mat.n_sparse :])
    return data if aval_of(data).shape == shape else fnp.broadcast_to(data, shape)


@method
def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """Return the product, element by element, of two sparse arrays, which broadcast.

    Args:
        lhs: a BCOO.
        rhs: a BCOO.

    Returns:
        A BCOO with the indices of the operand that stores fewer elements.

    Raises:
        ShapeError: where the shapes do not broadcast.
    """
    a, b = _alike(is_bcoo(lhs, "bcoo_multiply_sparse"), is_bcoo(rhs, "bcoo_multiply_sparse"))
    a, b = (b, a) if b.nse < a.nse else (a, b)
    x, y = promotion.promote(a.data, b.data)
    data = over_batches(lambda d, i, e, j: _product(d, i, e, j, a._sparse_shape), a.n_batch, x, a.indices, y, b.indices)
    return BCOO._of(data, a.indices, a._tail, is_sorted=a.indices_sorted, unique=a.unique_indices)


def _alike(a: BCOO, b: BCOO) -> tuple[BCOO, BCOO]:
    """Return both with one shape and one layout."""
    shape = np.broadcast_shapes(a.shape, b.shape) if _fit(a, b) else None
    if shape is None:
        raise promotion.error(ShapeError, f"{a!r} and {b!r} do not broadcast", "sizes must be equal, or 1")
    a, b = (_broadcast(m, shape) for m in (a, b))
    n_batch, n_dense = min(a.n_batch, b.n_batch), min(a.n_dense, b.n_dense)
    return bcoo_update_layout(a, n_batch=n_batch, n_dense=n_dense), bcoo_update_layout(
        b, n_batch=n_batch, n_dense=n_dense
    )


def _fit(a: BCOO, b: BCOO) -> bool:
    return all(x == y or 1 in (x, y) for x, y in zip(a.shape[::-1], b.shape[::-1], strict=False))


def _broadcast(mat: BCOO, shape: tuple[int, ...]) -> BCOO:
    if mat.shape == shape:
        return mat
    return bcoo_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=range(len(shape) - mat.ndim, len(shape)))


def _product(d: Any, i: Any, e: Any, j: Any, sparse: Any) -> Any:
    """Return values d at indices i, times the sums of the values e whose indices j are the same."""
    n, m = aval_of(i).shape[0], aval_of(j).shape[0]
    if not n or not m:
        return fnp.zeros_like(d)
    keep_i, keep_j = stored(i, sparse), stored(j, sparse)
    wide = fnp.result_type(aval_of(i).dtype, aval_of(j).dtype)
    rows = fnp.concatenate([placed(i, keep_i, sparse).astype(wide), placed(j, keep_j, sparse).astype(wide)])
    order, group = groups(rows)
    number = fnp.zeros(n + m, "int32").at[order].set(group)
    sums = fnp.zeros((n + m, *aval_of(e).shape[1:]), aval_of(e).dtype).at[number[n:]]
    e = masked(e, keep_j)
    sums = sums.max(e) if aval_of(e).dtype == bool else sums.add(e)
    return fnp.multiply(masked(d, keep_i), sums[number[:n]])


def bcoo_add(a: BCOO, b: BCOO) -> BCOO:
    """Return the sum of two sparse arrays, which store all elements of both."""
    a, b = _alike(a, b)
    dtype = fnp.result_type(a.dtype, b.dtype)
    a, b = (m._with(m.data.astype(dtype)) for m in (a, b))
    tail = a._tail
    joined = [fnp.concatenate(_same_batches([m.data, n.data], a, b), axis=a.n_batch) for m, n in ((a, b),)]
    indices = fnp.concatenate(_same_batches([a.indices, b.indices], a, b), axis=a.n_batch)
    return BCOO._of(joined[0], indices, tail)


def _same_batches(parts: list[Any], a: BCOO, b: BCOO) -> list[Any]:
    batch = a.shape[: a.n_batch]
    return [fnp.broadcast_to(x, (*batch, *aval_of(x).shape[a.n_batch :])) for x in parts]


def add_dense(mat: BCOO, dense: Any) -> Any:
    """Return the dense sum of a sparse and a dense array of the same shape."""
    x, y = promotion.promote(mat.data, dense)
    return over_batches(
        lambda d, i, z: z + add_up(d, i, mat._sparse_shape, mat.indices_sorted), mat.n_batch, x, mat.indices, y
    )


def map_stored(fun: Callable[[Any], Any], mat: BCOO, linear: bool = False) -> BCOO:
    """Return the array with a function that keeps zeros applied to its values.

    Args:
        fun: of arrays.
        mat: the BCOO. Unless indices are unique, those stored twice are added up first.
        linear: True for functions of which the sum may be taken afterwards.
    """
    if not (linear or mat.unique_indices):
        mat = sum_duplicates(mat, None, False)
    return mat._with(fun(mat.data))
