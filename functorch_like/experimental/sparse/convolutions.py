"""Convolutions of sparse arrays: `bcoo_conv_general_dilated`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.avals import ShapedArray
from functorch_like.core import abstract_eval, aval_of
from functorch_like.errors import DtypeError, UnsupportedError
from functorch_like.experimental.sparse.bcoo import BCOO
from functorch_like.experimental.sparse.checks import known
from functorch_like.experimental.sparse.conversion import bcoo_fromdense
from functorch_like.experimental.sparse.elements import masked, placed, stored
from functorch_like.experimental.sparse.format import JAXSparse, method
from functorch_like.experimental.sparse.layouts import bcoo_update_layout
from functorch_like.experimental.sparse.ordering import sum_duplicates
from functorch_like.lax.convolution import conv_geometry
from functorch_like.numpy import promotion
from functorch_like.primitives.contractions import convolution

if TYPE_CHECKING:
    from functorch_like.typing import ArrayLike, ConvLayout, DTypeLike, Padding, PrecisionLike


@method
def bcoo_conv_general_dilated(
    lhs: BCOO | ArrayLike, rhs: BCOO | ArrayLike, *, window_strides: Sequence[int], padding: Padding,
    lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvLayout = None, feature_group_count: int = 1, batch_group_count: int = 1,
    precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None,
) -> BCOO:  # fmt: skip
    """Return the convolution of a sparse operand and a sparse kernel, as `lax.conv_general_dilated` of dense ones.

    Every pair of a stored element of the operand and one of the kernel is multiplied.

    Args:
        lhs: operand: batch, features and n spatial dimensions. A dense one is converted, all elements under jit.
        rhs: kernel: output features, input features and n spatial dimensions; likewise.
        window_strides: n steps.
        padding: "SAME", "SAME_LOWER", "VALID", or n pairs (low, high).
        lhs_dilation: n distances between neighbouring elements of the operand; 1 by default.
        rhs_dilation: likewise of the kernel.
        dimension_numbers: as for `lax.conv_dimension_numbers`.
        feature_group_count: number of groups of features, each convolved by itself.
        batch_group_count: must be 1.
        precision: has no effect, since elements are multiplied one by one.
        preferred_element_type: dtype of the result; that of the operands by default.

    Returns:
        A BCOO without batch and dense dimensions, sorted. Of traced indices, it has room for all pairs.

    Raises:
        ShapeError: where shapes do not fit together.
        UnsupportedError: for groups of the batch.
        DtypeError: for booleans.

    Example:
        >>> from functorch_like.experimental import sparse
        >>> x = sparse.BCOO.fromdense(fnp.asarray([[[0.0, 1.0, 0.0, 2.0]]]))
        >>> w = fnp.asarray([[[1.0, 10.0]]])
        >>> sparse.bcoo_conv_general_dilated(x, w, window_strides=(1,), padding="VALID").todense().tolist()
        [[[10.0, 1.0, 20.0]]]
    """
    what = "bcoo_conv_general_dilated"
    left, right = _sparse(lhs, what), _sparse(rhs, what)
    dtype = None if preferred_element_type is None else fnp.dtype(preferred_element_type)
    x, y = promotion.promote(left.data, right.data)
    geometry = conv_geometry(
        left.shape, right.shape, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers
    )
    operands = [ShapedArray(m.shape, aval_of(x).dtype) for m in (left, right)]
    groups = {"feature_group_count": feature_group_count, "batch_group_count": batch_group_count}
    out = abstract_eval(
        convolution.conv_general_dilated, operands,
        {**geometry, **groups, "precision": None, "preferred_element_type": dtype},
    )  # fmt: skip
    if batch_group_count != 1:
        raise promotion.error(UnsupportedError, f"{what} with batch_group_count={batch_group_count}", "use 1")
    x, y = (d.astype(out.dtype) for d in (x, y))
    at, keep = _meetings(left, right, geometry, feature_group_count, out.shape)
    n = left.nse * right.nse
    data = fnp.reshape(masked(x[:, None] * y[None], keep), (n,))
    indices = fnp.reshape(placed(at, keep, out.shape), (n, out.ndim))
    made = BCOO._of(data, indices, out.shape)
    return sum_duplicates(made, None if known(indices) is not None else min(n, math.prod(out.shape)), False)


def _sparse(x: Any, what: str) -> BCOO:
    """Return an operand as a BCOO without batch and dense dimensions."""
    if isinstance(x, JAXSparse):
        mat = bcoo_update_layout(x.to_bcoo(), n_batch=0, n_dense=0)
    else:
        dense: Any = x if promotion.is_array(x) else fnp.asarray(x)
        mat = bcoo_fromdense(dense, nse=None if known(dense) is not None else aval_of(dense).size)
    if mat.dtype == dtypes.bool_:
        raise promotion.error(DtypeError, f"{what} of {mat!r}", "convert it with astype")
    return mat


def _meetings(
    left: BCOO, right: BCOO, geometry: dict[str, Any], groups: int, shape: tuple[int, ...]
) -> tuple[Any, Any]:
    """Return the index in the result of each pair of stored elements, and flags of the pairs that have one.

    Args:
        left, right: operand and kernel.
        geometry: of `conv_geometry`.
        groups: of features.
        shape: of the result.

    Returns:
        Indices (nse of left, nse of right, dimensions), and flags (nse of left, nse of right).
    """
    ls, rs, os = geometry["dimension_numbers"]
    wide = fnp.result_type(aval_of(left.indices).dtype, aval_of(right.indices).dtype, "int32")
    i, j = left.indices.astype(wide)[:, None], right.indices.astype(wide)[None]
    keep = stored(i, left._sparse_shape) & stored(j, right._sparse_shape)
    outputs, inputs = right.shape[rs[0]], right.shape[rs[1]]
    batch, out = i[..., ls[0]], j[..., rs[0]]
    group = out // np.array(max(1, outputs // groups), wide)
    keep = keep & (i[..., ls[1]] == group * np.array(inputs, wide) + j[..., rs[1]])
    parts: dict[int, Any] = {os[0]: batch, os[1]: out}
    for k, stride in enumerate(geometry["window_strides"]):
        a, b = (np.array(geometry[name][k], wide) for name in ("lhs_dilation", "rhs_dilation"))
        low, step = np.array(geometry["padding"][k][0], wide), np.array(stride, wide)
        place = i[..., ls[2 + k]] * a + low - j[..., rs[2 + k]] * b
        keep = keep & (place >= 0) & (place % step == 0)
        parts[os[2 + k]] = place // step
        keep = keep & (parts[os[2 + k]] < np.array(shape[os[2 + k]], wide))
    grid = (left.nse, right.nse)
    at = fnp.stack([fnp.broadcast_to(parts[d], grid) for d in range(len(shape))], axis=-1)
    return at, fnp.broadcast_to(keep, grid)
