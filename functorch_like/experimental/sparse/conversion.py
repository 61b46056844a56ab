"""Dense arrays to BCOO and back: `bcoo_fromdense`, `bcoo_todense`, `bcoo_extract`, `todense`, `empty`, `eye`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes, tree
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.experimental.sparse.bcoo import BCOO
from functorch_like.experimental.sparse.checks import expect, known, need
from functorch_like.experimental.sparse.elements import add_up, groups, masked, read, stored
from functorch_like.experimental.sparse.format import JAXSparse, method
from functorch_like.experimental.sparse.lifting import over_batches
from functorch_like.numpy import promotion
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike, PyTree


def index_type(dtype: DTypeLike, what: str) -> np.dtype[Any]:
    """Return the dtype of indices.

    Raises:
        DtypeError: for one that is not an integer.
    """
    result = dtypes.as_dtype(dtype)
    if not dtypes.is_integer(result):
        raise promotion.error(
            DtypeError, f"index_dtype={dtype!r:.40} of {what} is not an integer", "use 'int32' or 'int64'"
        )
    return result


def is_bcoo(mat: Any, what: str) -> BCOO:
    """Return a BCOO as it is.

    Raises:
        DtypeError: for anything else.
    """
    return expect(mat, BCOO, what, "BCOO.fromdense(x), or mat.to_bcoo()")


def split(shape: tuple[int, ...], n_batch: int, n_dense: int, what: str) -> tuple[int, ...]:
    """Return the sizes of the sparse dimensions.

    Raises:
        ShapeError: where the numbers do not fit the shape.
    """
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > len(shape):
        raise promotion.error(
            ShapeError, f"n_batch={n_batch} and n_dense={n_dense} of {what} do not fit shape {shape}",
            "together they are at most the number of dimensions",
        )  # fmt: skip
    return shape[n_batch : len(shape) - n_dense]


@method
def bcoo_fromdense(
    mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: DTypeLike = np.int32
) -> BCOO:
    """Return a dense array as a BCOO.

    Args:
        mat: array.
        nse: number of elements to store in each batch; by default as many as needed, which must be known then. Batches
            with fewer are padded.
        n_batch: number of leading dimensions that become batches.
        n_dense: number of trailing dimensions whose elements are stored together.
        index_dtype: of the indices.

    Returns:
        The BCOO, sorted and without duplicates.

    Raises:
        ConcretizationError: for a traced array without nse.
        ArgumentError: for an nse that is too small, where values are known.
        ShapeError: where n_batch and n_dense do not fit.

    Example:
        >>> from functorch_like.experimental import sparse
        >>> sparse.bcoo_fromdense(fnp.asarray([[0.0, 5.0], [6.0, 0.0]])).indices.tolist()
        [[0, 1], [1, 0]]
    """
    what = "bcoo_fromdense"
    dense: Any = mat if promotion.is_array(mat) else fnp.asarray(mat)
    shape = aval_of(dense).shape
    sparse = split(shape, n_batch, n_dense, what)
    dtype = index_type(index_dtype, what)
    values = known(dense)
    if nse is None or values is not None:
        values = need(dense, f"{what} without nse", "pass nse=, the number of elements to store")
        flags = (values != 0).any(tuple(range(len(shape) - n_dense, len(shape)))) if n_dense else values != 0
        most = int(flags.reshape(int(np.prod(shape[:n_batch])), -1).sum(-1).max(initial=0))
        if nse is not None and nse < most:
            raise promotion.error(
                ArgumentError, f"nse={nse} of {what} is too small for {most} elements that are not zero",
                "leave it out, or pass more",
            )  # fmt: skip
        nse = most if nse is None else nse
    data, indices = _fromdense(fnp.asarray(dense), int(nse), n_batch, n_dense, dtype)
    return BCOO._of(data, indices, (*sparse, *shape[len(shape) - n_dense :]), is_sorted=True, unique=True)


@eager_jit(static=("nse", "n_batch", "n_dense", "dtype"))
def _fromdense(mat: Any, nse: int, n_batch: int, n_dense: int, dtype: np.dtype[Any]) -> Any:
    def one(x: Any) -> Any:
        n_sparse = aval_of(x).ndim - n_dense
        sparse = aval_of(x).shape[:n_sparse]
        flags = x != 0
        flags = fnp.any(flags, axis=tuple(range(n_sparse, n_sparse + n_dense))) if n_dense else flags
        if n_sparse:
            positions = fnp.nonzero(flags, size=nse, fill_value=np.array(sparse))
            indices = fnp.stack([i.astype(dtype) for i in positions], axis=-1)
        else:
            indices = fnp.zeros((nse, 0), dtype)
        data = read(x, indices)
        return (masked(data, fnp.arange(nse) < 1) if not n_sparse else data), indices

    return over_batches(one, n_batch, mat)


@method
def bcoo_todense(mat: BCOO) -> Array:
    """Return the dense array of a BCOO; elements that are stored twice add up.

    Args:
        mat: the BCOO.

    Raises:
        DtypeError: for anything but a BCOO.
    """
    mat = is_bcoo(mat, "bcoo_todense")
    return _todense(mat.data, mat.indices, mat._sparse_shape, mat.n_batch, mat.indices_sorted, mat.unique_indices)


@eager_jit(static=("sparse", "n_batch", "is_sorted", "unique"))
def _todense(data: Any, indices: Any, sparse: Any, n_batch: int, is_sorted: bool, unique: bool) -> Any:
    # Padding has one index for all, so that indices are unique only without it.
    return over_batches(lambda d, i: add_up(d, i, sparse, is_sorted), n_batch, data, indices)


@method
def bcoo_extract(sparr: BCOO, arr: ArrayLike, *, assume_unique: bool | None = None) -> BCOO:
    """Return the elements of a dense array at the indices of a BCOO.

    Args:
        sparr: gives the indices.
        arr: dense, of the same shape.
        assume_unique: True to read a value for each stored element, even where indices are stored twice; by default
            the promise of sparr. Otherwise the value counts at the first of them.

    Raises:
        ShapeError: where shapes differ.
    """
    mat = is_bcoo(sparr, "bcoo_extract")
    dense: Any = arr if promotion.is_array(arr) else fnp.asarray(arr)
    if aval_of(dense).shape != mat.shape:
        raise promotion.error(ShapeError, f"bcoo_extract of {aval_of(dense)!r} at {mat!r}", "give both one shape")
    unique = mat.unique_indices if assume_unique is None else assume_unique
    return mat._with(_extract(fnp.asarray(dense), mat.indices, mat.n_batch, mat._sparse_shape, bool(unique)))


@eager_jit(static=("n_batch", "sparse", "unique"))
def _extract(dense: Any, indices: Any, n_batch: int, sparse: Any, unique: bool) -> Any:
    def one(x: Any, at: Any) -> Any:
        values = masked(read(x, at), stored(at, sparse))
        if unique:
            return values
        order, group = groups(at)
        first = fnp.concatenate([fnp.ones(min(1, aval_of(group).size), bool), group[1:] != group[:-1]])
        return masked(values, fnp.zeros(aval_of(group).shape, bool).at[order].set(first))

    return over_batches(one, n_batch, dense, indices)


@method
def todense(arr: PyTree) -> PyTree:
    """Return a sparse array as a dense one; a dense array as it is.

    Args:
        arr: a sparse array or an array; or a pytree of them.
    """
    is_sparse = lambda x: isinstance(x, JAXSparse)
    return tree.map(lambda x: x.todense() if isinstance(x, JAXSparse) else x, arr, is_leaf=is_sparse)
