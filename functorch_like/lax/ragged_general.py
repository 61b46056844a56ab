"""ragged_dot_general: sums of products over chosen dimensions, where one dimension is in groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from functorch_like import dtypes
from functorch_like.backends.precision_names import canonical
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.lax import contract
from functorch_like.lax.operands import error, ints, value
from functorch_like.lax.ragged import refuse_offset
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.contractions.ragged_dot import ragged_contract, ragged_dot

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike, PrecisionLike


class RaggedDotDimensionNumbers(NamedTuple):
    """Dimensions of `ragged_dot_general`.

    Attributes:
        dot_dimension_numbers: ((lhs contracting, rhs contracting), (lhs batch, rhs batch)), as for `dot_general`.
        lhs_ragged_dimensions: the one dimension of lhs that is in groups.
        rhs_group_dimensions: the dimension of rhs that counts groups, if rows are in groups; else none.
    """

    dot_dimension_numbers: contract.DotDimensionNumbers
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]


def ragged_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
) -> Array:
    """Sums of products over chosen dimensions, where one dimension of lhs is in groups.

    If this ragged dimension is neither contracted nor a batch, each group of rows has a matrix of its own: rhs has a
    dimension of g matrices. If it is contracted, each group of terms has a sum of its own, of g in front of the result.
    If it is a batch dimension, groups make no difference, and this is `dot_general`.

    Args:
        lhs: array.
        rhs: array; where dtypes differ, both are converted to the dtype that they promote to.
        group_sizes: integers (..., g). The leading dimensions are the batch dimensions, then those dimensions of the
            ragged one's kind that come before it; or there are none, and all have the same groups.
        ragged_dot_dimension_numbers: a `RaggedDotDimensionNumbers`.
        precision: precision of the products, as for `dot_general`.
        preferred_element_type: dtype of the result.
        group_offset: None; others are not supported.

    Returns:
        An array: the g groups if they have sums of their own, the batch dimensions, the remaining ones of lhs, those of
        rhs. Rows beyond the last group are zero.

    Raises:
        ArgumentError: where dimensions are out of range, or groups do not fit the kind of the ragged dimension.
        ShapeError: where sizes do not fit.
        DtypeError: where group sizes are not integers.

    >>> lhs, rhs = fnp.ones((5, 3)), fnp.ones((5, 4))
    >>> numbers = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), [0], [])
    >>> lax.ragged_dot_general(lhs, rhs, fnp.asarray([2, 3]), numbers)[:, 0, 0].tolist()
    [2.0, 3.0]
    """
    refuse_offset(group_offset)
    lhs, rhs = contract.of_one_dtype(lhs, rhs)
    sizes = value(group_sizes)
    (lc, rc), (lb, rb), r, group = _checked(lhs, rhs, sizes, RaggedDotDimensionNumbers(*ragged_dot_dimension_numbers))
    left, right = aval_of(lhs).shape, aval_of(rhs).shape
    if r in lb:
        _spread(sizes, _sizes(left, lb[: lb.index(r)]))
        return contract.dot_general(lhs, rhs, ((lc, rc), (lb, rb)), precision, preferred_element_type)
    free = tuple(d for d in range(len(left)) if d not in (*lb, *lc))
    others = tuple(d for d in range(len(right)) if d not in (*rb, *rc, *group))
    kind = lc if r in lc else free
    outer, inner = kind[: kind.index(r)], kind[kind.index(r) + 1 :]
    lead = _sizes(left, (*lb, *outer))
    sizes = _spread(sizes, lead)
    if inner:  # each element of the ragged dimension is several rows, or terms
        sizes = elementwise.mul(sizes, structural.full_like(sizes, math.prod(_sizes(left, inner))))
    options = {"precision": canonical(precision), "preferred_element_type": contract.dtype_of(preferred_element_type)}
    if r in lc:
        paired = dict(zip(lc, rc, strict=True))
        lhs = _merged(lhs, (*lb, *outer), (r, *inner), free)
        rhs = _merged(rhs, (*rb, *(paired[d] for d in outer)), tuple(paired[d] for d in (r, *inner)), others)
        y = ragged_contract(lhs, rhs, sizes, **options)
        if outer:
            y = structural.reduce_sum(y, axes=tuple(range(len(lb), len(lead))))
        y = structural.move(y, len(lb), 0)
        shape = (aval_of(sizes).shape[-1], *_sizes(left, lb), *_sizes(left, free), *_sizes(right, others))
        return structural.reshape(y, shape=shape)
    matrices = _merged(rhs, (*rb, *group), rc, others)
    if outer:
        shape = (*lead, *aval_of(matrices).shape[len(lb) :])
        dims = (*range(len(lb)), *range(len(lead), len(lead) + 3))
        matrices = structural.broadcast_in_dim(matrices, shape=shape, broadcast_dimensions=dims)
    y = ragged_dot(_merged(lhs, (*lb, *outer), (r, *inner), lc), matrices, sizes, **options)
    return structural.reshape(y, shape=(*lead, *_sizes(left, (r, *inner)), *_sizes(right, others)))


def _checked(lhs: Any, rhs: Any, sizes: Any, numbers: RaggedDotDimensionNumbers) -> Any:
    """Return the contracted dimensions, the batch dimensions, the ragged dimension, and the group dimensions."""
    (lc, rc), (lb, rb) = (
        tuple(ints(dims, "dot_dimension_numbers") for dims in pair) for pair in numbers.dot_dimension_numbers
    )
    lhs_ragged = ints(numbers.lhs_ragged_dimensions, "lhs_ragged_dimensions")
    group = ints(numbers.rhs_group_dimensions, "rhs_group_dimensions")
    left, right = aval_of(lhs), aval_of(rhs)
    if not dtypes.is_integer(aval_of(sizes).dtype):
        raise error(DtypeError, f"group sizes {aval_of(sizes)!r} are no integers", "convert them with astype('int32')")
    for name, dims, aval in (("lhs", (*lb, *lc), left), ("rhs", (*rb, *rc, *group), right)):
        if len(set(dims)) < len(dims) or not all(0 <= d < aval.ndim for d in dims):
            raise error(
                ArgumentError,
                f"dimensions {dims} of {name} {aval!r} in lax.ragged_dot_general",
                f"use each of 0 to {aval.ndim - 1} at most once",
            )
    if len(lhs_ragged) != 1 or not 0 <= lhs_ragged[0] < left.ndim:
        raise error(
            ArgumentError, f"lhs_ragged_dimensions={lhs_ragged} for lhs {left!r}", "give the one dimension in groups"
        )
    (r,) = lhs_ragged
    due = 0 if r in (*lb, *lc) else 1
    if len(group) != due:
        kind = "a batch dimension" if r in lb else "contracted" if r in lc else "a dimension of the result"
        raise error(
            ArgumentError,
            f"rhs_group_dimensions={group}, where the ragged dimension {r} is {kind}",
            f"give {'one dimension' if due else '()'}",
        )
    paired = lambda shape, dims: [shape[d] for d in dims]
    if paired(left.shape, (*lb, *lc)) != paired(right.shape, (*rb, *rc)):
        raise error(
            ShapeError,
            f"{left!r} and {right!r} differ in dimensions {(*lb, *lc)} and {(*rb, *rc)}, which are paired",
            "pair dimensions of equal size",
        )
    if aval_of(sizes).ndim < 1 or (group and right.shape[group[0]] != aval_of(sizes).shape[-1]):
        raise error(
            ShapeError, f"group sizes {aval_of(sizes)!r} do not fit rhs {right!r}", "give one size for each group"
        )
    return (lc, rc), (lb, rb), r, group


def _spread(sizes: Any, lead: tuple[int, ...]) -> Any:
    """Return group sizes with these leading dimensions."""
    shape = aval_of(sizes).shape
    if shape[:-1] not in ((), lead):
        raise error(
            ShapeError, f"group sizes {aval_of(sizes)!r} do not fit", f"give shape {(*lead, shape[-1])} or {shape[-1:]}"
        )
    if shape[:-1] == lead:
        return sizes
    return structural.broadcast_in_dim(sizes, shape=(*lead, shape[-1]), broadcast_dimensions=(len(lead),))


def _sizes(shape: Sequence[int], dims: Sequence[int]) -> tuple[int, ...]:
    return tuple(shape[d] for d in dims)


def _merged(x: Any, lead: Sequence[int], rows: Sequence[int], columns: Sequence[int]) -> Any:
    """Return matrices: the leading dimensions, then the dimensions of rows as one, and those of columns."""
    shape = aval_of(x).shape
    order = (*lead, *rows, *columns)
    if order != tuple(range(len(shape))):
        x = structural.transpose(x, permutation=order)
    merged = (*_sizes(shape, lead), math.prod(_sizes(shape, rows)), math.prod(_sizes(shape, columns)))
    return structural.reshape(x, shape=merged)
