"""`BCOO`: values and the indices of each, with batch and dense dimensions around the sparse ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import tree
from functorch_like.core import aval_of
from functorch_like.experimental.sparse.checks import checked_bcoo
from functorch_like.experimental.sparse.format import METHODS, JAXSparse, Layout
from functorch_like.tree_util import GetAttrKey

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import DTypeLike


class BCOO(JAXSparse):
    """Sparse array in coordinates: `nse` stored values, with the indices of each.

    An element whose indices are `shape` is padding and counts nowhere; so arrays of one `nse` hold different numbers of
    elements. Elements that are stored twice add up.

    The shape of the array is that of the batches, the sparse dimensions and the dense dimensions, in this order. A
    batch dimension of `data` or `indices` may have size 1: then all batches share these values or indices.

    Args:
        args: `data` of shape (*batches, nse, *dense) and integer `indices` of shape (*batches, nse, n_sparse).
        shape: of the array.
        indices_sorted: a promise that indices are in lexicographic order, padding last.
        unique_indices: a promise that none is stored twice.

    Raises:
        ShapeError: where shapes do not fit.
        DtypeError: for indices that are not integers.
        BoundsError: for indices that are neither in bounds nor padding, where values are known.
        ArgumentError: for promises that do not hold, where values are known.

    Example:
        >>> from functorch_like.experimental import sparse
        >>> m = sparse.BCOO((fnp.asarray([1.0, 2.0]), fnp.asarray([[0, 0], [1, 2]])), shape=(2, 3))
        >>> m, (m @ fnp.ones(3)).tolist()
        (BCOO(float32[2, 3], nse=2), [1.0, 2.0])
    """

    __slots__ = ("_dense_rank", "_tail", "data", "indices", "indices_sorted", "unique_indices")
    data: Any
    indices: Any
    indices_sorted: bool
    unique_indices: bool

    def __init__(
        self,
        args: tuple[Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        data, indices, n_dense = checked_bcoo(args, shape, indices_sorted, unique_indices)
        n_batch = aval_of(indices).ndim - 2
        self._set(data, indices, tuple(shape)[n_batch:], n_dense, bool(indices_sorted), bool(unique_indices))

    def _set(self, data: Any, indices: Any, tail: tuple[int, ...], n_dense: int, is_sorted: bool, unique: bool) -> None:
        self.data, self.indices = data, indices
        self._tail, self._dense_rank = tail, n_dense
        self.indices_sorted, self.unique_indices = is_sorted, unique

    @classmethod
    def _of(
        cls, data: Any, indices: Any, tail: Sequence[int], *, is_sorted: bool = False, unique: bool = False
    ) -> BCOO:
        """Return an array of parts that fit: values, indices, and the sizes of the sparse and dense dimensions."""
        made = object.__new__(cls)
        made._set(data, indices, tuple(tail), len(tail) - aval_of(indices).shape[-1], is_sorted, unique)
        return made

    def _with(self, data: Any) -> BCOO:
        """Return other values at the same indices."""
        return BCOO._of(data, self.indices, self._tail, is_sorted=self.indices_sorted, unique=self.unique_indices)

    # The shape follows from the leaves, so that vmap and scan may take and give arrays with batch dimensions.
    @property
    def layout(self) -> Layout:
        """Numbers of batch, sparse and dense dimensions."""
        return Layout(aval_of(self.indices).ndim - 2, len(self._tail) - self._dense_rank, self._dense_rank)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        n = aval_of(self.indices).ndim - 2
        return (*np.broadcast_shapes(aval_of(self.data).shape[:n], aval_of(self.indices).shape[:n]), *self._tail)

    @property
    def _sparse_shape(self) -> tuple[int, ...]:
        return self._tail[: len(self._tail) - self._dense_rank]

    # ------------------------------------------------------------------------------------------------------- creation
    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: DTypeLike = np.int32, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """Return a dense array as a BCOO; see `bcoo_fromdense`."""
        return METHODS["bcoo_fromdense"](mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: DTypeLike | None = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """Return an array of scipy.sparse, of any format, as a BCOO with sorted indices.

        Args:
            mat: the array or matrix.
            index_dtype: of the indices; int32 by default.
            n_dense: must be 0.
            n_batch: must be 0.

        Raises:
            ArgumentError: for anything but an array of scipy.sparse.
            UnsupportedError: for dense or batch dimensions.
        """
        return METHODS["bcoo_from_scipy"](mat, index_dtype, n_batch, n_dense)

    def to_scipy_sparse(self) -> Any:
        """Return a `scipy.sparse.coo_array`, without padding.

        Raises:
            UnsupportedError: with batch or dense dimensions.
            ConcretizationError: under transformations.
        """
        return METHODS["bcoo_to_scipy"](self)

    # ------------------------------------------------------------------------------------------------------ functions
    def to_bcoo(self) -> BCOO:
        """Return the array itself."""
        return self

    def _as_operand(self) -> tuple[BCOO, bool]:
        return self, False

    def todense(self) -> Array:
        """Return the dense array; see `bcoo_todense`."""
        return METHODS["bcoo_todense"](self)

    def sort_indices(self) -> BCOO:
        """Return the array with its indices in lexicographic order."""
        return METHODS["bcoo_sort_indices"](self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """Return the array with each index stored once; see `bcoo_sum_duplicates`."""
        return METHODS["sum_duplicates"](self, nse, remove_zeros)

    def update_layout(
        self, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
    ) -> BCOO:
        """Return the array with other numbers of batch and dense dimensions; see `bcoo_update_layout`."""
        return METHODS["bcoo_update_layout"](self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """Return the array with its axes permuted; reversed by default."""
        return METHODS["bcoo_transpose"](self, permutation=range(self.ndim)[::-1] if axes is None else axes)

    def reshape(self, *shape: int | Sequence[int]) -> BCOO:
        """Return the array with another shape; batch and dense dimensions stay."""
        return METHODS["reshape"](self, shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)

    def sum(self, axis: int | Sequence[int] | None = None) -> BCOO | Array:
        """Return the sum over axes: a BCOO, or a scalar array for all of them."""
        return METHODS["total"](self, axis)

    def astype(self, dtype: DTypeLike) -> BCOO:
        """Return the array with its values converted."""
        return METHODS["converted"](self, dtype)

    def __getitem__(self, item: Any) -> BCOO:
        return METHODS["getitem"](self, item)

    # --------------------------------------------------------------------------------------------------------- pytree
    def tree_flatten(self) -> tuple[tuple[Array, Array], object]:
        """Return the leaves and the static part."""
        return (self.data, self.indices), (
            self._tail, self._dense_rank, self.indices_sorted, self.unique_indices,
        )  # fmt: skip

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Sequence[Any]) -> BCOO:
        """Return an array of leaves, which are not checked."""
        made = object.__new__(cls)
        made._set(*children, *aux_data)
        return made


def _with_keys(m: BCOO) -> Any:
    return ((GetAttrKey("data"), m.data), (GetAttrKey("indices"), m.indices)), m.tree_flatten()[1]


tree.register_pytree_node(BCOO, lambda m: m.tree_flatten(), BCOO.tree_unflatten, _with_keys)
