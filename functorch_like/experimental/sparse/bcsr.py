"""`BCSR`: values and columns, row after row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import numpy as fnp
from functorch_like import tree
from functorch_like.core import aval_of
from functorch_like.errors import UnsupportedError
from functorch_like.experimental.sparse.bcoo import BCOO
from functorch_like.experimental.sparse.checks import checked_bcsr, expect, sizes
from functorch_like.experimental.sparse.conversion import bcoo_extract, bcoo_fromdense
from functorch_like.experimental.sparse.element_products import row_numbers
from functorch_like.experimental.sparse.format import METHODS, JAXSparse, Layout, method
from functorch_like.experimental.sparse.layouts import bcoo_update_layout
from functorch_like.experimental.sparse.lifting import over_batches
from functorch_like.experimental.sparse.ordering import bcoo_sort_indices, sum_duplicates
from functorch_like.experimental.sparse.rearranging import bcoo_broadcast_in_dim, bcoo_concatenate
from functorch_like.numpy import promotion
from functorch_like.transforms.eager_jit import eager_jit
from functorch_like.tree_util import GetAttrKey

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike


class BCSR(JAXSparse):
    """Sparse matrix in compressed rows: row i has the stored elements `indptr[i]` to `indptr[i + 1]`.

    Elements from `indptr[-1]` on are padding. Its functions convert it to a BCOO, which costs little beside them.

    Args:
        args: `data` of shape (*batches, nse, *dense), the column of each, `indices` of shape (*batches, nse), and
            `indptr` of shape (*batches, rows + 1).
        shape: of the array: batches, rows, columns, dense dimensions.
        indices_sorted: a promise that the columns of each row are in order.
        unique_indices: a promise that none is stored twice.

    Raises:
        ShapeError: where shapes do not fit.
        DtypeError: for indices that are not integers.
        BoundsError: for columns out of bounds, and row pointers that fall or are out of bounds, where they are known.
        ArgumentError: for promises that do not hold, where values are known.

    Example:
        >>> from functorch_like.experimental import sparse
        >>> m = sparse.BCSR((fnp.asarray([1.0, 2.0]), fnp.asarray([0, 2]), fnp.asarray([0, 1, 2])), shape=(2, 3))
        >>> m, m.todense().tolist()
        (BCSR(float32[2, 3], nse=2), [[1.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    """

    __slots__ = ("_tail", "data", "indices", "indices_sorted", "indptr", "unique_indices")
    data: Any
    indices: Any
    indptr: Any
    indices_sorted: bool
    unique_indices: bool

    def __init__(
        self,
        args: tuple[Any, Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        data, indices, indptr, n_dense = checked_bcsr(args, shape, indices_sorted, unique_indices)
        tail = tuple(shape)[len(shape) - n_dense - 2 :]
        self._set(data, indices, indptr, tail, bool(indices_sorted), bool(unique_indices))

    def _set(self, data: Any, indices: Any, indptr: Any, tail: tuple[int, ...], is_sorted: bool, unique: bool) -> None:
        self.data, self.indices, self.indptr, self._tail = data, indices, indptr, tail
        self.indices_sorted, self.unique_indices = is_sorted, unique

    @classmethod
    def _of(
        cls, data: Any, indices: Any, indptr: Any, tail: Sequence[int], *, is_sorted: bool = False, unique: bool = False
    ) -> BCSR:
        """Return an array of parts that fit; `tail` has the sizes of rows, columns and dense dimensions."""
        made = object.__new__(cls)
        made._set(data, indices, indptr, tuple(tail), is_sorted, unique)
        return made

    @property
    def layout(self) -> Layout:
        """Numbers of batch, sparse and dense dimensions."""
        return Layout(aval_of(self.indices).ndim - 1, 2, len(self._tail) - 2)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        n = aval_of(self.indices).ndim - 1
        return (*np.broadcast_shapes(*(aval_of(x).shape[:n] for x in (self.data, self.indices, self.indptr))),
                *self._tail)  # fmt: skip

    @property
    def _sparse_shape(self) -> tuple[int, ...]:
        return self._tail[:2]

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: DTypeLike = np.int32, n_dense: int = 0, n_batch: int = 0
    ) -> BCSR:
        """Return a dense array as a BCSR; see `bcsr_fromdense`."""
        return bcsr_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """Return a BCOO of two sparse dimensions as a BCSR.

        Raises:
            UnsupportedError: for another number of sparse dimensions.
        """
        return from_bcoo(arr)

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: DTypeLike | None = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCSR:
        """Return an array of scipy.sparse, of any format, as a BCSR; see `BCOO.from_scipy_sparse`."""
        return METHODS["bcsr_from_scipy"](mat, index_dtype, n_batch, n_dense)

    def to_scipy_sparse(self) -> Any:
        """Return a `scipy.sparse.csr_array`, without padding."""
        return METHODS["bcsr_to_scipy"](self)

    def to_bcoo(self) -> BCOO:
        """Return the array as a BCOO."""
        return to_bcoo(self)

    def _as_operand(self) -> tuple[BCSR, bool]:
        return self, False

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """Return the array with each element stored once; see `bcoo_sum_duplicates`."""
        return from_bcoo(sum_duplicates(self.to_bcoo(), nse, remove_zeros))

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """Return the array with its axes permuted, as a BCOO; reversed by default."""
        return self.to_bcoo().transpose(axes)

    def tree_flatten(self) -> tuple[tuple[Array, Array, Array], object]:
        """Return the leaves and the static part."""
        return (self.data, self.indices, self.indptr), (self._tail, self.indices_sorted, self.unique_indices)

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Sequence[Any]) -> BCSR:
        """Return an array of leaves, which are not checked."""
        made = object.__new__(cls)
        made._set(*children, *aux_data)
        return made


def _with_keys(m: BCSR) -> Any:
    return [(GetAttrKey(k), getattr(m, k)) for k in ("data", "indices", "indptr")], m.tree_flatten()[1]


tree.register_pytree_node(BCSR, lambda m: m.tree_flatten(), BCSR.tree_unflatten, _with_keys)


def is_bcsr(mat: Any, what: str) -> BCSR:
    """Return a BCSR as it is.

    Raises:
        DtypeError: for anything else.
    """
    return expect(mat, BCSR, what, "BCSR.fromdense(x), or BCSR.from_bcoo(mat)")


@eager_jit(static=("n_batch", "rows", "width"))
def coordinates(indices: Any, indptr: Any, n_batch: int, rows: int, width: int) -> Any:
    """Return the row and column of each stored element; those of padding are the numbers of rows and columns."""

    def one(columns: Any, starts: Any) -> Any:
        dtype, nse = aval_of(columns).dtype, aval_of(columns).shape[0]
        row = row_numbers(starts, nse, dtype)
        return fnp.stack([row, fnp.where(row < rows, columns, np.array(width, dtype))], axis=-1)

    return over_batches(one, n_batch, indices, indptr)


def to_bcoo(mat: BCSR) -> BCOO:
    """Return a BCSR as a BCOO."""
    indices = coordinates(mat.indices, mat.indptr, mat.n_batch, *mat._sparse_shape)
    return BCOO._of(mat.data, indices, mat._tail, is_sorted=mat.indices_sorted, unique=mat.unique_indices)


def from_bcoo(arr: BCOO) -> BCSR:
    """Return a BCOO of two sparse dimensions as a BCSR."""
    if not isinstance(arr, BCOO) or arr.n_sparse != 2:
        raise promotion.error(UnsupportedError, f"BCSR of {arr!r:.60}", "give a BCOO with two sparse dimensions")
    mat = bcoo_sort_indices(arr)
    indices, indptr = _compressed(mat.indices, mat.n_batch, *mat._sparse_shape)
    return BCSR._of(mat.data, indices, indptr, mat._tail, is_sorted=True, unique=mat.unique_indices)


@eager_jit(static=("n_batch", "rows", "width"))
def _compressed(indices: Any, n_batch: int, rows: int, width: int) -> Any:
    def one(i: Any) -> Any:
        dtype = aval_of(i).dtype
        row = fnp.where((i[:, 1] < width) & (i[:, 0] < rows), i[:, 0], np.array(rows, dtype))
        starts = fnp.searchsorted(row, fnp.arange(rows + 1, dtype=dtype), side="left")
        return i[:, 1], starts.astype(dtype)

    return over_batches(one, n_batch, indices)


@method
def bcsr_fromdense(
    mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: DTypeLike = np.int32
) -> BCSR:
    """Return a dense array as a BCSR; arguments and errors as of `bcoo_fromdense`.

    Raises:
        UnsupportedError: where the number of sparse dimensions is not two.
    """
    return from_bcoo(bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype))


@method
def bcsr_todense(mat: BCSR) -> Array:
    """Return the dense array of a BCSR."""
    return is_bcsr(mat, "bcsr_todense").todense()


@method
def bcsr_extract(indices: ArrayLike, indptr: ArrayLike, mat: ArrayLike) -> Array:
    """Return the elements of a dense array at the indices of a BCSR.

    Args:
        indices: columns, (*batches, nse).
        indptr: row pointers, (*batches, rows + 1).
        mat: dense.

    Returns:
        (*batches, nse, *dense).
    """
    dense: Any = fnp.asarray(mat)
    n = aval_of(indices).ndim - 1
    at = coordinates(fnp.asarray(indices), fnp.asarray(indptr), n, *dense.shape[n : n + 2])
    data = fnp.zeros((*dense.shape[:n], aval_of(at).shape[-2], *dense.shape[n + 2 :]), dense.dtype)
    return bcoo_extract(BCOO._of(data, at, dense.shape[n:], is_sorted=True), dense, assume_unique=True).data


@method
def bcsr_broadcast_in_dim(mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> BCSR:
    """Return the array with new batch or dense dimensions; arguments as of `bcoo_broadcast_in_dim`."""
    mat, new = is_bcsr(mat, "bcsr_broadcast_in_dim"), sizes(shape, "bcsr_broadcast_in_dim")
    places = tuple(int(p) for p in broadcast_dimensions)
    first = places[mat.n_batch] if len(places) == mat.ndim else 0
    if places[mat.n_batch :] != tuple(range(first, len(new))) or new[first:] != mat._tail:
        out = bcoo_broadcast_in_dim(mat.to_bcoo(), shape=new, broadcast_dimensions=places)
        return from_bcoo(bcoo_update_layout(out, n_batch=out.n_batch + out.n_sparse - 2, on_inefficient=None))
    added = [k for k in range(first) if k not in places]  # batch dimensions, which share indices
    lead = lambda x: fnp.expand_dims(x, added) if added else x
    data = fnp.broadcast_to(lead(mat.data), (*new[:first], mat.nse, *new[first + 2 :]))
    return BCSR._of(
        data, lead(mat.indices), lead(mat.indptr), mat._tail, is_sorted=mat.indices_sorted, unique=mat.unique_indices
    )


@method
def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Return arrays joined along an axis; as `bcoo_concatenate`."""
    return from_bcoo(
        bcoo_concatenate([is_bcsr(m, "bcsr_concatenate").to_bcoo() for m in operands], dimension=dimension)
    )


@method
def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """Return a BCSR in which each element is stored once; as `bcoo_sum_duplicates`."""
    return is_bcsr(mat, "bcsr_sum_duplicates").sum_duplicates(nse, remove_zeros=False)


@method
def bcsr_eliminate_zeros(mat: BCSR, nse: int | None = None) -> BCSR:
    """Return a BCSR without stored zeros; as `bcoo_eliminate_zeros`."""
    return is_bcsr(mat, "bcsr_eliminate_zeros").sum_duplicates(nse, remove_zeros=True)
