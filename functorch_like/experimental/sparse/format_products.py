"""Products of sparse arrays of any format with dense ones, and `bcsr_dot_general`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ShapeError
from functorch_like.experimental.sparse import csr_products
from functorch_like.experimental.sparse.bcoo import BCOO
from functorch_like.experimental.sparse.bcsr import BCSR, coordinates, is_bcsr
from functorch_like.experimental.sparse.element_products import element_product, row_numbers
from functorch_like.experimental.sparse.format import JAXSparse, method
from functorch_like.experimental.sparse.products import Numbers, Pairs, Spec, bcoo_dot_general, dot, dot_parts, pairs_of
from functorch_like.numpy import promotion
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike, PrecisionLike


def sparse_dot_general(
    lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: Any = None, preferred_element_type: Any = None
) -> Any:
    """Return a product of which one operand or both are sparse, of any format; see `bcoo_dot_general`."""
    if isinstance(lhs, JAXSparse) and isinstance(rhs, JAXSparse):
        return bcoo_dot_general(
            lhs.to_bcoo(), rhs.to_bcoo(), dimension_numbers=dimension_numbers, precision=precision,
            preferred_element_type=preferred_element_type,
        )  # fmt: skip
    swapped = not isinstance(lhs, JAXSparse)
    left, right = (m.shape if isinstance(m, JAXSparse) else aval_of(fnp.asarray(m)).shape for m in (lhs, rhs))
    pairs = pairs_of(dimension_numbers, left, right, "dot_general")
    mat, dense = (rhs, lhs) if swapped else (lhs, rhs)
    dtype = None if preferred_element_type is None else fnp.dtype(preferred_element_type)
    return _dot(mat, dense, pairs.swapped() if swapped else pairs, precision, dtype, swapped)


def _dot(mat: JAXSparse, dense: Any, pairs: Pairs, precision: Any, dtype: Any, swapped: bool) -> Any:
    """Return the product of a sparse and a dense operand; arguments as of `products.dot`."""
    operand, turned = mat._as_operand()
    if turned:
        first, last = mat.ndim - 2, mat.ndim - 1
        used = {a for a, _ in (*pairs.contract, *pairs.batch)}
        if used & {first, last}:
            turn = {first: last, last: first}
            pairs = Pairs(*(tuple((turn.get(a, a), b) for a, b in part) for part in pairs))
        else:  # both axes stay, in their order
            operand = mat.to_bcoo()
    if isinstance(operand, BCOO):
        return dot(operand, dense, pairs, precision, dtype, swapped)
    x, y = promotion.promote(operand.data, dense)
    if dtype is not None:
        x, y = x.astype(dtype), y.astype(dtype)
    # The order of elements within a row does not matter to a sum over columns.
    by_rows = [a for a, _ in pairs.contract] == [operand.n_batch + 1]
    if isinstance(operand, BCSR):
        spec = Spec(
            operand._sparse_shape, operand.n_batch, operand.indices_sorted or by_rows, pairs, precision, swapped
        )
        return _dot_rows(x, operand.indices, operand.indptr, y, spec)
    spec = Spec(operand._tail, operand.n_batch, operand.rows_sorted and by_rows, pairs, precision, swapped)
    return _dot_elements(x, operand.row, operand.col, y, spec)


def _summed_axis(spec: Spec) -> int | None:
    """Return the axis of the matrix for the product of one matrix that sums over one axis of it, None for others."""
    if spec.n_batch or len(spec.pairs.contract) != 1 or spec.pairs.batch:
        return None
    axis = spec.pairs.contract[0][0]
    return axis if axis < 2 else None


@eager_jit(static=("spec",))
def _dot_elements(data: Any, row: Any, col: Any, dense: Any, spec: Spec) -> Any:
    axis = _summed_axis(spec) if aval_of(data).ndim == 1 else None
    x, free = _summed_first(dense, spec)
    if axis is None or (spec.is_sorted and csr_products.applies(data, row, dense, free)):
        return dot_parts(data, fnp.stack([row, col], axis=-1), dense, spec)
    return _in_order(element_product(data, row, col, x, spec.sparse, axis), spec)


@eager_jit(static=("spec",))
def _dot_rows(data: Any, indices: Any, indptr: Any, dense: Any, spec: Spec) -> Any:
    axis = _summed_axis(spec) if aval_of(data).ndim == 1 else None
    if axis is None:
        return dot_parts(data, coordinates(indices, indptr, spec.n_batch, *spec.sparse), dense, spec)
    x, free = _summed_first(dense, spec)

    def plain(d: Any, i: Any, p: Any, x: Any) -> Any:
        rows = row_numbers(p, aval_of(d).shape[0], aval_of(p).dtype)
        return element_product(d, rows, i, x, spec.sparse, axis)

    if axis == 0 or not csr_products.applies(data, indices, dense, free):
        return _in_order(plain(data, indices, indptr, x), spec)
    flat = fnp.reshape(x, (spec.sparse[1], free))
    out = csr_products.product_by_rows(plain, data, indices, indptr, flat, spec.sparse)
    return _in_order(fnp.reshape(out, (spec.sparse[0], *aval_of(x).shape[1:])), spec)


def _summed_first(dense: Any, spec: Spec) -> tuple[Any, int]:
    """Return a dense operand with the axis that is summed in front, and the number of its other elements."""
    axis = spec.pairs.contract[0][1] if spec.pairs.contract else 0
    moved = fnp.moveaxis(dense, axis, 0) if aval_of(dense).ndim > 1 else dense
    return moved, math.prod(aval_of(moved).shape[1:])


def _in_order(out: Any, spec: Spec) -> Any:
    """Return a product whose first axis is that of the matrix, with its axes in the order of the operands."""
    return fnp.moveaxis(out, 0, -1) if spec.swapped else out


def matrix_product(mat: JAXSparse, dense: ArrayLike, ndim: int, transpose: bool, what: str) -> Array:
    """Return the product of a sparse matrix, or its transpose, with a dense vector or matrix.

    Raises:
        ShapeError: for another number of dimensions, and where sizes differ.
    """
    x: Any = dense if promotion.is_array(dense) else fnp.asarray(dense)
    aval, axis = aval_of(x), 0 if transpose else 1
    if mat.n_batch:
        raise promotion.error(ShapeError, f"{what} of {mat!r}, which has batch dimensions", "use vmap, or m @ x")
    if aval.ndim != ndim or aval.shape[0] != mat.shape[axis]:
        wanted = f"({mat.shape[axis]},)" if ndim == 1 else f"({mat.shape[axis]}, n)"
        raise promotion.error(
            ShapeError, f"{what} of {mat!r}{', transposed,' if transpose else ''} and {aval!r}",
            f"give an operand of shape {wanted}",
        )  # fmt: skip
    return sparse_dot_general(mat, x, dimension_numbers=(((axis,), (0,)), ((), ())))


@method
def bcsr_dot_general(
    lhs: BCSR | ArrayLike, rhs: ArrayLike, *, dimension_numbers: Numbers, precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Return a product that sums over pairs of axes; arguments as of `bcoo_dot_general`.

    Args:
        lhs: a BCSR or an array.
        rhs: an array, or a BCSR if lhs is an array.
        dimension_numbers: as for `bcoo_dot_general`.
        precision: as for `bcoo_dot_general`.
        preferred_element_type: as for `bcoo_dot_general`.
    """
    if not isinstance(lhs, JAXSparse) and not isinstance(rhs, JAXSparse):
        is_bcsr(lhs, "bcsr_dot_general")
    return sparse_dot_general(
        lhs, rhs, dimension_numbers=dimension_numbers, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip
