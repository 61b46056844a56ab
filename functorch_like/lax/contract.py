"""Sums of products: dot products, matrix products."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from functorch_like import dtypes
from functorch_like.backends.precision_names import ALGORITHMS, canonical
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.lax.operands import error, ints, value
from functorch_like.primitives import structural
from functorch_like.primitives.contractions import dot_general as contract

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike, PrecisionLike

    DotDimensionNumbers: TypeAlias = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]


class Precision(enum.StrEnum):
    """Precision of products of float32 matrices, where the hardware has faster ones."""

    DEFAULT = "default"
    HIGH = "high"
    HIGHEST = "highest"


#: Dot algorithms by name, for `precision`: the dtypes that the factors are rounded to, and the dtype of the sums.
DotAlgorithmPreset = enum.StrEnum("DotAlgorithmPreset", {name: name for name in ("DEFAULT", *ALGORITHMS)})
DotAlgorithmPreset.__module__ = __name__


class DotAlgorithm(NamedTuple):
    """Computation of sums of products: the meaning of a `DotAlgorithmPreset`.

    Attributes:
        lhs_precision_type, rhs_precision_type: dtypes that operands are rounded to, or "tf32".
        accumulation_type: dtype of the sums.
        lhs_component_count, rhs_component_count: number of rounded terms that each operand is split into.
        num_primitive_operations: number of products of these terms that are added.
        allow_imprecise_accumulation: whether some sums may be kept in a narrower dtype.

    >>> x = fnp.ones((2, 2))
    >>> lax.dot(x, x, precision=lax.DotAlgorithm("bfloat16", "bfloat16", "float32")).dtype.name
    'float32'
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False

    @property
    def value(self) -> str:
        """Name of the algorithm.

        Raises:
            ArgumentError: where there is no such algorithm.
        """
        short = lambda t: (
            "TF32" if t == "tf32" else dtypes.as_dtype(t).name.replace("bfloat", "bf").replace("float", "f")
        )
        left, right, sums = (short(t).upper() for t in self[:3])
        count = self.num_primitive_operations
        name = f"{left}_{right}_{sums}" + (f"_X{count}" if count > 1 else "")
        parts = {1: 1, 3: 2, 6: 3, 9: 3}.get(count)
        if name not in ALGORITHMS or {*self[3:5]} != {parts} or self.allow_imprecise_accumulation:
            raise error(ArgumentError, f"there is no dot algorithm {self}", f"use one of {', '.join(ALGORITHMS)}")
        return name


def dtype_of(dtype: Any) -> Any:
    """Return a dtype by its name; None for None."""
    return None if dtype is None else dtypes.as_dtype(dtype)


def of_one_dtype(left: ArrayLike, right: ArrayLike) -> list[Any]:
    """Return two operands of a product, in the dtype that they promote to if theirs differ."""
    left, right = value(left), value(right)
    if aval_of(left).dtype == aval_of(right).dtype:
        return [left, right]
    dtype, _ = dtypes.promote(aval_of(left), aval_of(right))
    return [structural.convert_element_type(x, new_dtype=dtype, weak_type=False) for x in (left, right)]


# ------------------------------------------------------------------------------------------------------------- products
def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Sums of products over chosen dimensions.

    Args:
        lhs: array.
        rhs: array; where dtypes differ, both are converted to the dtype that they promote to.
        dimension_numbers: ((lhs contracting, rhs contracting), (lhs batch, rhs batch)), tuples of dimensions.
        precision: a `Precision`, its name, or a pair of these for the two operands; or a `DotAlgorithmPreset` or its
            name, such as "BF16_BF16_F32_X3"; None for the setting of `ft.default_matmul_precision` and `ft.backends`:
            full float32 by default.
        preferred_element_type: the dtype of the result; by default that of the operands.

    Returns:
        An array: the batch dimensions, then the remaining ones of lhs, then those of rhs.

    Raises:
        ShapeError: where paired sizes differ.
        DtypeError: where no dtype is that of both, under strict promotion.

    >>> lax.dot_general(fnp.ones((5, 2, 3)), fnp.ones((5, 3, 4)), (((2,), (1,)), ((0,), (0,)))).shape
    (5, 2, 4)
    """
    try:
        (lc, rc), (lb, rb) = dimension_numbers
    except (TypeError, ValueError):
        form = "((lhs contracting, rhs contracting), (lhs batch, rhs batch))"
        fix = f"give tuples of dimensions, {form}: (((1,), (0,)), ((), ())) for the product of two matrices"
        raise error(ArgumentError, f"dimension_numbers={dimension_numbers!r:.60} are not two pairs", fix) from None
    lc, rc, lb, rb = (ints(dims, "dimension_numbers") for dims in (lc, rc, lb, rb))
    left, right = of_one_dtype(lhs, rhs)
    return contract.dot_general(
        left, right, dimension_numbers=((lc, rc), (lb, rb)), precision=canonical(precision),
        preferred_element_type=dtype_of(preferred_element_type),
    )  # fmt: skip


def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
) -> Array:
    """Vector and matrix products; with `dimension_numbers`, `dot_general`.

    Args:
        lhs: vector or matrix.
        rhs: vector or matrix of the same dtype.
        precision: as for `dot_general`.
        preferred_element_type: as for `dot_general`.
        dimension_numbers: as for `dot_general`; arrays may then have more dimensions.

    Returns:
        A scalar for two vectors, a matrix for two matrices, in the operands' dtype or the preferred one.

    Raises:
        ShapeError: for other ranks, and where the contracted sizes differ.

    >>> lax.dot(fnp.asarray([1.0, 2.0]), fnp.asarray([3.0, 4.0])).item()
    11.0
    """
    if dimension_numbers is not None:
        return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)
    left, right = aval_of(lhs), aval_of(rhs)
    if left.ndim not in (1, 2) or right.ndim not in (1, 2):
        raise error(ShapeError, f"lax.dot takes vectors and matrices, got {left!r} and {right!r}", "use dot_general")
    return dot_general(lhs, rhs, (((left.ndim - 1,), (0,)), ((), ())), precision, preferred_element_type)


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array:
    """Matrix products, one for each position of the leading dimensions.

    Args:
        lhs: array of shape (..., m, k).
        rhs: array of shape (..., k, n), with the same leading dimensions.
        precision: of the products: None, a name such as "highest", or a pair of these.

    Returns:
        An array of shape (..., m, n).

    Raises:
        ShapeError: where the leading dimensions, or the contracted sizes, differ.

    >>> lax.batch_matmul(fnp.ones((5, 2, 3)), fnp.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    left, right = aval_of(lhs), aval_of(rhs)
    if left.ndim < 2 or left.ndim != right.ndim or left.shape[:-2] != right.shape[:-2]:
        raise error(
            ShapeError,
            f"lax.batch_matmul takes equal leading dimensions, got {left!r} and {right!r}",
            "broadcast the leading dimensions first",
        )
    batch = tuple(range(left.ndim - 2))
    return dot_general(lhs, rhs, (((left.ndim - 1,), (left.ndim - 2,)), (batch, batch)), precision)
