"""`jax.experimental.pallas.ops.tpu.megablox`: products of groups of rows, each with a matrix of its own."""

from __future__ import annotations

from typing import Any

from functorch_like import dtypes, lax
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import DtypeError


def gmm(
    lhs: Any, rhs: Any, group_sizes: Any, preferred_element_type: Any = dtypes.float32, tiling: Any = (128, 128, 128),
    group_offset: Any = None, existing_out: Any = None, transpose_rhs: bool = False, interpret: bool = False,
) -> Any:  # fmt: skip
    """Products of the groups of rows of lhs with the matrices of rhs.

    Args:
        lhs: array [m, k].
        rhs: array [groups, k, n], or [groups, n, k] with `transpose_rhs`.
        group_sizes: integers, how many rows each group has; more than rhs has matrices if there is an offset.
        preferred_element_type: dtype of the result.
        tiling: no effect.
        group_offset: the group that the first matrix of rhs belongs to.
        existing_out: array [m, n], the result of rows of other groups; they are 0 without it.
        transpose_rhs: whether the matrices of rhs are transposed.
        interpret: no effect.

    Returns:
        An array [m, n].
    """
    if existing_out is not None and aval_of(existing_out).dtype != dtypes.as_dtype(preferred_element_type):
        raise DtypeError(
            f"existing_out is {aval_of(existing_out)!r}, the result {dtypes.as_dtype(preferred_element_type)}",
            fix="convert it with astype",
        )
    rhs = fnp.swapaxes(rhs, 1, 2) if transpose_rhs else rhs
    first, sizes = _chosen(group_sizes, group_offset, aval_of(rhs).shape[0])
    rows = fnp.arange(aval_of(lhs).shape[0])
    # The rows of the chosen groups come first.
    out = lax.ragged_dot(fnp.roll(lhs, -first, axis=0), rhs, sizes, preferred_element_type=preferred_element_type)
    out = fnp.roll(out, first, axis=0)
    inside = (rows >= first) & (rows < first + fnp.sum(sizes))
    return fnp.where(inside[:, None], out, fnp.zeros_like(out) if existing_out is None else existing_out)


def tgmm(
    lhs: Any, rhs: Any, group_sizes: Any, preferred_element_type: Any = dtypes.float32, tiling: Any = (128, 128, 128),
    group_offset: Any = None, num_actual_groups: int | None = None, existing_out: Any = None, interpret: bool = False,
) -> Any:  # fmt: skip
    """Products of the groups of columns of lhs with the groups of rows of rhs.

    Args:
        lhs: array [k, m].
        rhs: array [m, n].
        group_sizes: integers, how many columns and rows each group has.
        preferred_element_type: dtype of the result.
        tiling: no effect.
        group_offset: the first group of the result.
        num_actual_groups: the number of groups of the result; all by default.
        existing_out: array [groups, k, n] that is added.
        interpret: no effect.

    Returns:
        An array [groups, k, n].
    """
    count = aval_of(group_sizes).shape[0] if num_actual_groups is None else num_actual_groups
    first, sizes = _chosen(group_sizes, group_offset, count)
    numbers = lax.RaggedDotDimensionNumbers((((1,), (0,)), ((), ())), [1], [])
    lhs, rhs = fnp.roll(lhs, -first, axis=1), fnp.roll(rhs, -first, axis=0)
    out = lax.ragged_dot_general(lhs, rhs, sizes, numbers, preferred_element_type=preferred_element_type)
    return out if existing_out is None else out + existing_out


def _chosen(group_sizes: Any, offset: Any, count: int) -> tuple[Any, Any]:
    """Return the first row of the chosen groups, and their sizes."""
    group_sizes = fnp.asarray(group_sizes)
    if offset is None:
        return 0, group_sizes[:count]
    before = fnp.arange(aval_of(group_sizes).shape[0]) < offset
    return fnp.sum(fnp.where(before, group_sizes, 0)), lax.dynamic_slice_in_dim(group_sizes, offset, count)
