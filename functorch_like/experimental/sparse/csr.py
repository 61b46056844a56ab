"""`CSR` and `CSC`: the values of a sparse matrix row after row, or column after column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from functorch_like import numpy as fnp
from functorch_like import tree
from functorch_like.experimental.sparse.bcoo import BCOO
from functorch_like.experimental.sparse.bcsr import BCSR, bcsr_fromdense
from functorch_like.experimental.sparse.checks import checked_bcsr, expect, matrix_shape
from functorch_like.experimental.sparse.format import JAXSparse, Layout, method
from functorch_like.experimental.sparse.format_products import matrix_product
from functorch_like.experimental.sparse.matrices import dense_matrix, is_swap
from functorch_like.tree_util import GetAttrKey

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike

Self = TypeVar("Self", bound="_Compressed")


class _Compressed(JAXSparse):
    """Base of `CSR` and `CSC`, which stores the matrix of a `BCSR`; that of the transpose for `CSC`.

    Attributes:
        data: the stored values.
        indices: the column of each, or the row for `CSC`.
        indptr: where each row starts in them, or each column for `CSC`; last, where padding starts.
    """

    __slots__ = ("_tail", "data", "indices", "indptr")
    data: Any
    indices: Any
    indptr: Any

    @classmethod
    def _of(cls: type[Self], data: Any, indices: Any, indptr: Any, tail: Sequence[int]) -> Self:
        """Return a matrix of parts that fit, of `tail` rows and columns."""
        made = object.__new__(cls)
        made.data, made.indices, made.indptr, made._tail = data, indices, indptr, tuple(tail)
        return made

    def _rows(self) -> BCSR:
        """Return the BCSR of the same parts."""
        raise NotImplementedError

    # As for BCSR, batch dimensions of the leaves are those of the array: vmap and jacrev give such arrays.
    @property
    def layout(self) -> Layout:
        """Numbers of batch, sparse and dense dimensions."""
        return self._rows().layout

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return (*self._rows().shape[:-2], *self._tail)

    def tree_flatten(self) -> tuple[tuple[Array, Array, Array], object]:
        """Return the leaves and the static part."""
        return (self.data, self.indices, self.indptr), self._tail

    @classmethod
    def tree_unflatten(cls: type[Self], aux_data: Any, children: Sequence[Any]) -> Self:
        """Return a matrix of leaves, which are not checked."""
        data, indices, indptr = children
        return cls._of(data, indices, indptr, aux_data)


class CSR(_Compressed):
    """Sparse matrix in compressed rows: row i has the stored elements `indptr[i]` to `indptr[i + 1]`.

    Elements from `indptr[-1]` on are padding. Elements that are stored twice add up. Products with dense arrays are
    dense, and the transpose is a `CSC` of the same arrays. Other operations give a `BCOO`.

    Args:
        args: `data` and integers `indices`, the column of each, of shape (nse,); `indptr`, of shape (rows + 1,).
        shape: of the matrix.

    Raises:
        ShapeError: where shapes do not fit.
        DtypeError: for indices that are not integers.
        BoundsError: for columns out of bounds, and row pointers that fall or are out of bounds, where they are known.

    Example:
        >>> from functorch_like.experimental import sparse
        >>> m = sparse.CSR((fnp.asarray([1.0, 2.0]), fnp.asarray([0, 2]), fnp.asarray([0, 1, 2])), shape=(2, 3))
        >>> m, (m @ fnp.ones(3)).tolist(), m.T
        (CSR(float32[2, 3], nse=2), [1.0, 2.0], CSC(float32[3, 2], nse=2))
    """

    __slots__ = ()

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int]) -> None:
        tail = matrix_shape(shape, "CSR")
        self.data, self.indices, self.indptr, _ = checked_bcsr(args, tail, False, False, "CSR")
        self._tail = tail

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSR:
        """Return a dense matrix as a CSR; see `csr_fromdense`."""
        return csr_fromdense(mat, nse=nse, index_dtype=index_dtype)

    def _rows(self) -> BCSR:
        return BCSR._of(self.data, self.indices, self.indptr, self._tail)

    def to_bcoo(self) -> BCOO:
        """Return the matrix as a BCOO."""
        return self._rows().to_bcoo()

    def _as_operand(self) -> tuple[BCSR, bool]:
        return self._rows(), False

    def transpose(self, axes: Sequence[int] | None = None) -> CSR | CSC | BCOO:
        """Return the transposed matrix as a CSC, without work. With batch dimensions, permute the axes of a BCOO.

        Args:
            axes: a permutation; reversed by default.
        """
        if self.n_batch:
            return self.to_bcoo().transpose(axes)
        return CSC._of(self.data, self.indices, self.indptr, self._tail[::-1]) if is_swap(axes, self) else self


class CSC(_Compressed):
    """Sparse matrix in compressed columns: column i has the stored elements `indptr[i]` to `indptr[i + 1]`.

    Elements from `indptr[-1]` on are padding. Elements that are stored twice add up. Products with dense arrays are
    dense, and the transpose is a `CSR` of the same arrays. Other operations give a `BCOO`.

    Args:
        args: `data` and integers `indices`, the row of each, of shape (nse,); `indptr`, of shape (columns + 1,).
        shape: of the matrix.

    Raises:
        ShapeError: where shapes do not fit.
        DtypeError: for indices that are not integers.
        BoundsError: for rows out of bounds, and column pointers that fall or are out of bounds, where they are known.

    Example:
        >>> from functorch_like.experimental import sparse
        >>> m = sparse.CSC.fromdense(fnp.asarray([[0.0, 5.0], [6.0, 0.0]]))
        >>> m, m.data.tolist(), (m @ fnp.asarray([1.0, 10.0])).tolist()
        (CSC(float32[2, 2], nse=2), [6.0, 5.0], [50.0, 6.0])
    """

    __slots__ = ()

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int]) -> None:
        tail = matrix_shape(shape, "CSC")
        self.data, self.indices, self.indptr, _ = checked_bcsr(args, tail[::-1], False, False, "CSC")
        self._tail = tail

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSC:
        """Return a dense matrix as a CSC, with its elements column after column.

        Args:
            mat: matrix (rows, columns).
            nse: as of `csr_fromdense`.
            index_dtype: of the indices.

        Raises:
            ShapeError: for anything but a matrix.
            ConcretizationError: for a traced matrix without nse.
            ArgumentError: for an nse that is too small, where values are known.
        """
        turned = fnp.transpose(dense_matrix(mat, "CSC.fromdense"))
        rows = bcsr_fromdense(turned, nse=nse, index_dtype=index_dtype)
        return cls._of(rows.data, rows.indices, rows.indptr, rows._tail[::-1])

    def _rows(self) -> BCSR:
        return BCSR._of(self.data, self.indices, self.indptr, self._tail[::-1])

    def to_bcoo(self) -> BCOO:
        """Return the matrix as a BCOO."""
        turned = self._rows().to_bcoo()
        return BCOO._of(turned.data, turned.indices[..., ::-1], self._tail)

    def _as_operand(self) -> tuple[BCSR, bool]:
        return self._rows(), True

    def transpose(self, axes: Sequence[int] | None = None) -> CSC | CSR | BCOO:
        """Return the transposed matrix as a CSR, without work. With batch dimensions, permute the axes of a BCOO.

        Args:
            axes: a permutation; reversed by default.
        """
        if self.n_batch:
            return self.to_bcoo().transpose(axes)
        return CSR._of(self.data, self.indices, self.indptr, self._tail[::-1]) if is_swap(axes, self) else self


def _with_keys(m: _Compressed) -> Any:
    return [(GetAttrKey(k), getattr(m, k)) for k in ("data", "indices", "indptr")], m.tree_flatten()[1]


tree.register_pytree_node(CSR, lambda m: m.tree_flatten(), CSR.tree_unflatten, _with_keys)
tree.register_pytree_node(CSC, lambda m: m.tree_flatten(), CSC.tree_unflatten, _with_keys)


def _is_csr(mat: Any, what: str) -> CSR:
    return expect(mat, CSR, what, "CSR.fromdense(x), or mat.T for a CSC")


@method
def csr_fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSR:
    """Return a dense matrix as a CSR, with the columns of each row in order.

    Args:
        mat: matrix (rows, columns).
        nse: number of elements to store; by default as many as needed, which must be known then. If there are fewer,
            the rest is padding.
        index_dtype: of the indices.

    Returns:
        The CSR.

    Raises:
        ShapeError: for anything but a matrix.
        ConcretizationError: for a traced matrix without nse.
        ArgumentError: for an nse that is too small, where values are known.

    Example:
        >>> from functorch_like.experimental import sparse
        >>> m = sparse.csr_fromdense(fnp.asarray([[0.0, 5.0], [6.0, 7.0]]))
        >>> m.indices.tolist(), m.indptr.tolist()
        ([1, 0, 1], [0, 1, 3])
    """
    rows = bcsr_fromdense(dense_matrix(mat, "csr_fromdense"), nse=nse, index_dtype=index_dtype)
    return CSR._of(rows.data, rows.indices, rows.indptr, rows._tail)


@method
def csr_todense(mat: CSR) -> Array:
    """Return the dense matrix of a CSR; elements that are stored twice add up.

    Args:
        mat: the CSR.

    Returns:
        Array (rows, columns) of the dtype of the stored values.

    Raises:
        DtypeError: for anything but a CSR.

    Example:
        >>> from functorch_like.experimental import sparse
        >>> sparse.csr_todense(sparse.CSR.fromdense(fnp.eye(2))).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    return _is_csr(mat, "csr_todense").todense()


@method
def csr_matvec(mat: CSR, v: ArrayLike, transpose: bool = False) -> Array:
    """Return the product of a CSR and a vector.

    Args:
        mat: the CSR.
        v: vector with an element for each column, or for each row with `transpose`.
        transpose: True for the product with the transposed matrix.

    Returns:
        Vector with an element for each row, or for each column with `transpose`, of the promoted dtype.

    Raises:
        DtypeError: for anything but a CSR.
        ShapeError: where sizes differ.

    Example:
        >>> from functorch_like.experimental import sparse
        >>> m = sparse.CSR.fromdense(fnp.asarray([[0.0, 5.0], [6.0, 0.0]]))
        >>> sparse.csr_matvec(m, fnp.asarray([1.0, 10.0])).tolist()
        [50.0, 6.0]
    """
    return matrix_product(_is_csr(mat, "csr_matvec"), v, 1, transpose, "csr_matvec")


@method
def csr_matmat(mat: CSR, B: ArrayLike, *, transpose: bool = False) -> Array:
    """Return the product of a CSR and a dense matrix.

    Args:
        mat: the CSR.
        B: matrix (columns of mat, n), or (rows of mat, n) with `transpose`.
        transpose: True for the product with the transposed matrix.

    Returns:
        Matrix (rows of mat, n), or (columns of mat, n) with `transpose`, of the promoted dtype.

    Raises:
        DtypeError: for anything but a CSR.
        ShapeError: where sizes differ.

    Example:
        >>> from functorch_like.experimental import sparse
        >>> m = sparse.CSR.fromdense(fnp.asarray([[0.0, 5.0], [6.0, 0.0]]))
        >>> sparse.csr_matmat(m, fnp.eye(2), transpose=True).tolist()
        [[0.0, 6.0], [5.0, 0.0]]
    """
    return matrix_product(_is_csr(mat, "csr_matmat"), B, 2, transpose, "csr_matmat")
