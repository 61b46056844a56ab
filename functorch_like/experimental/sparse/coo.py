"""`COO`: the values, rows and columns of a sparse matrix, in three vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import numpy as fnp
from functorch_like import tree
from functorch_like.core import aval_of
from functorch_like.experimental.sparse.bcoo import BCOO
from functorch_like.experimental.sparse.checks import checked_coo, expect
from functorch_like.experimental.sparse.conversion import bcoo_fromdense
from functorch_like.experimental.sparse.format import JAXSparse, Layout, method
from functorch_like.experimental.sparse.format_products import matrix_product
from functorch_like.experimental.sparse.matrices import dense_matrix, is_swap
from functorch_like.tree_util import GetAttrKey

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike


class COO(JAXSparse):
    """Sparse matrix in coordinates: `nse` stored values, with the row and the column of each.

    An element whose row and column are the sizes of the matrix is padding and counts nowhere. Elements that are stored
    twice add up. Products with dense arrays are dense, and the transpose is a COO. Other operations give a `BCOO`.

    Args:
        args: `data`, and integers `row` and `col`, each of shape (nse,).
        shape: of the matrix.
        rows_sorted: a promise that `row` is in order.
        cols_sorted: a promise that `col` is in order.

    Raises:
        ShapeError: where shapes do not fit.
        DtypeError: for rows or columns that are not integers.
        BoundsError: for positions that are neither in bounds nor padding, where values are known.
        ArgumentError: for promises that do not hold, where values are known.

    Example:
        >>> from functorch_like.experimental import sparse
        >>> m = sparse.COO((fnp.asarray([1.0, 2.0]), fnp.asarray([0, 1]), fnp.asarray([0, 2])), shape=(2, 3))
        >>> m, (m @ fnp.ones(3)).tolist()
        (COO(float32[2, 3], nse=2), [1.0, 2.0])
    """

    __slots__ = ("_tail", "col", "cols_sorted", "data", "row", "rows_sorted")
    data: Any
    row: Any
    col: Any
    rows_sorted: bool
    cols_sorted: bool

    def __init__(
        self,
        args: tuple[Any, Any, Any],
        *,
        shape: Sequence[int],
        rows_sorted: bool = False,
        cols_sorted: bool = False,
    ) -> None:
        data, row, col, tail = checked_coo(args, shape, rows_sorted, cols_sorted)
        self._set(data, row, col, tail, bool(rows_sorted), bool(cols_sorted))

    def _set(self, data: Any, row: Any, col: Any, tail: tuple[int, ...], by_rows: bool, by_columns: bool) -> None:
        self.data, self.row, self.col, self._tail = data, row, col, tail
        self.rows_sorted, self.cols_sorted = by_rows, by_columns

    # As for BCOO, batch dimensions of the leaves are those of the array: vmap and jacrev give such arrays.
    @property
    def layout(self) -> Layout:
        """Numbers of batch, sparse and dense dimensions."""
        return Layout(aval_of(self.row).ndim - 1, 2, 0)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        n = aval_of(self.row).ndim - 1
        return (*np.broadcast_shapes(*(aval_of(x).shape[:n] for x in (self.data, self.row, self.col))), *self._tail)

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> COO:
        """Return a dense matrix as a COO; see `coo_fromdense`."""
        return coo_fromdense(mat, nse=nse, index_dtype=index_dtype)

    def to_bcoo(self) -> BCOO:
        """Return the matrix as a BCOO."""
        # Elements of a row may be in any order, so that nothing is known of the order of their indices.
        return BCOO._of(self.data, fnp.stack([self.row, self.col], axis=-1), self._tail)

    def _as_operand(self) -> tuple[COO, bool]:
        return self, False

    def transpose(self, axes: Sequence[int] | None = None) -> COO | BCOO:
        """Return the transposed matrix as a COO, without work. With batch dimensions, permute the axes of a BCOO.

        Args:
            axes: a permutation; reversed by default.
        """
        if self.n_batch:
            return self.to_bcoo().transpose(axes)
        if not is_swap(axes, self):
            return self
        made = object.__new__(COO)
        made._set(self.data, self.col, self.row, self._tail[::-1], self.cols_sorted, self.rows_sorted)
        return made

    def tree_flatten(self) -> tuple[tuple[Array, Array, Array], object]:
        """Return the leaves and the static part."""
        return (self.data, self.row, self.col), (self._tail, self.rows_sorted, self.cols_sorted)

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Sequence[Any]) -> COO:
        """Return an array of leaves, which are not checked."""
        made = object.__new__(cls)
        made._set(*children, *aux_data)
        return made


def _with_keys(m: COO) -> Any:
    return [(GetAttrKey(k), getattr(m, k)) for k in ("data", "row", "col")], m.tree_flatten()[1]


tree.register_pytree_node(COO, lambda m: m.tree_flatten(), COO.tree_unflatten, _with_keys)


def coo_from_bcoo(mat: BCOO) -> COO:
    """Return a BCOO matrix as a COO."""
    made = object.__new__(COO)
    made._set(mat.data, mat.indices[..., 0], mat.indices[..., 1], mat._tail, mat.indices_sorted, False)
    return made


def _is_coo(mat: Any, what: str) -> COO:
    return expect(mat, COO, what, "COO.fromdense(x)")


@method
def coo_fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> COO:
    """Return a dense matrix as a COO, with its elements row after row.

    Args:
        mat: matrix (rows, columns).
        nse: number of elements to store; by default as many as needed, which must be known then. If there are fewer,
            the rest is padding.
        index_dtype: of rows and columns.

    Returns:
        The COO.

    Raises:
        ShapeError: for anything but a matrix.
        ConcretizationError: for a traced matrix without nse.
        ArgumentError: for an nse that is too small, where values are known.

    Example:
        >>> from functorch_like.experimental import sparse
        >>> m = sparse.coo_fromdense(fnp.asarray([[0.0, 5.0], [6.0, 0.0]]))
        >>> m.data.tolist(), m.row.tolist(), m.col.tolist()
        ([5.0, 6.0], [0, 1], [1, 0])
    """
    return coo_from_bcoo(bcoo_fromdense(dense_matrix(mat, "coo_fromdense"), nse=nse, index_dtype=index_dtype))


@method
def coo_todense(mat: COO) -> Array:
    """Return the dense matrix of a COO; elements that are stored twice add up.

    Args:
        mat: the COO.

    Returns:
        Array (rows, columns) of the dtype of the stored values.

    Raises:
        DtypeError: for anything but a COO.

    Example:
        >>> from functorch_like.experimental import sparse
        >>> m = sparse.COO((fnp.ones(2), fnp.asarray([0, 0]), fnp.asarray([1, 1])), shape=(1, 2))
        >>> sparse.coo_todense(m).tolist()
        [[0.0, 2.0]]
    """
    return _is_coo(mat, "coo_todense").todense()


@method
def coo_matvec(mat: COO, v: ArrayLike, transpose: bool = False) -> Array:
    """Return the product of a COO and a vector.

    Args:
        mat: the COO.
        v: vector with an element for each column, or for each row with `transpose`.
        transpose: True for the product with the transposed matrix.

    Returns:
        Vector with an element for each row, or for each column with `transpose`, of the promoted dtype.

    Raises:
        DtypeError: for anything but a COO.
        ShapeError: where sizes differ.

    Example:
        >>> from functorch_like.experimental import sparse
        >>> m = sparse.COO.fromdense(fnp.asarray([[0.0, 5.0], [6.0, 0.0]]))
        >>> sparse.coo_matvec(m, fnp.asarray([1.0, 10.0]), transpose=True).tolist()
        [60.0, 5.0]
    """
    return matrix_product(_is_coo(mat, "coo_matvec"), v, 1, transpose, "coo_matvec")


@method
def coo_matmat(mat: COO, B: ArrayLike, *, transpose: bool = False) -> Array:
    """Return the product of a COO and a dense matrix.

    Args:
        mat: the COO.
        B: matrix (columns of mat, n), or (rows of mat, n) with `transpose`.
        transpose: True for the product with the transposed matrix.

    Returns:
        Matrix (rows of mat, n), or (columns of mat, n) with `transpose`, of the promoted dtype.

    Raises:
        DtypeError: for anything but a COO.
        ShapeError: where sizes differ.

    Example:
        >>> from functorch_like.experimental import sparse
        >>> m = sparse.COO.fromdense(fnp.asarray([[0.0, 5.0], [6.0, 0.0]]))
        >>> sparse.coo_matmat(m, fnp.eye(2)).tolist()
        [[0.0, 5.0], [6.0, 0.0]]
    """
    return matrix_product(_is_coo(mat, "coo_matmat"), B, 2, transpose, "coo_matmat")
