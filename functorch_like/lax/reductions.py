"""Reductions, cumulative reductions and sorting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np

from functorch_like.core import ArrayImpl, Tracer, aval_of
from functorch_like.dtypes import as_dtype
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.lax.operands import axes_of, axis_of, error, host, match, value
from functorch_like.primitives import structural
from functorch_like.primitives.ordering import sort as sorting
from functorch_like.primitives.reductions import cumlogsumexp as log_cumulative
from functorch_like.primitives.reductions import cumulative, reductions

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike

    class Reduction(Protocol):
        """A reduction."""

        __name__: str

        def __call__(self, operand: ArrayLike, axes: Sequence[int]) -> Array:
            """Compute the result; the function's own docstring describes it."""
            ...

    class Running(Protocol):
        """A cumulative reduction."""

        __name__: str

        def __call__(self, operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
            """Compute the result; the function's own docstring describes it."""
            ...


_DOC = """{summary}

    Args:
        operand: array.
        axes: dimensions to reduce; negative ones count from the end.

    Returns:
        An array without those dimensions.

    Raises:
        ShapeError: where a dimension does not exist, or is named twice.
        DtypeError: for dtypes that it does not support.

    >>> lax.{name}(fnp.asarray({at}), (0,)).item()
    {shows}
    """


def _reduction(name: str, primitive: Any, summary: str, at: str, shows: str) -> Reduction:
    def function(operand: ArrayLike, axes: Sequence[int]) -> Array:
        operand = value(operand)
        return primitive(operand, axes=axes_of(axes, aval_of(operand).ndim))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _DOC.format(name=name, summary=summary, at=at, shows=shows)
    return function


reduce_sum = _reduction("reduce_sum", structural.reduce_sum, "Sum.", "[1.0, 2.0, 4.0]", "7.0")
reduce_prod = _reduction("reduce_prod", reductions.reduce_prod, "Product.", "[1.0, 2.0, 4.0]", "8.0")
reduce_max = _reduction("reduce_max", reductions.reduce_max, "Maximum.", "[1.0, 2.0, 4.0]", "4.0")
reduce_min = _reduction("reduce_min", reductions.reduce_min, "Minimum.", "[1.0, 2.0, 4.0]", "1.0")
reduce_and = _reduction(
    "reduce_and", reductions.reduce_and, "Logical AND; for integers bitwise AND.", "[True, False]", "False"
)
reduce_or = _reduction(
    "reduce_or", reductions.reduce_or, "Logical OR; for integers bitwise OR.", "[True, False]", "True"
)
reduce_xor = _reduction(
    "reduce_xor",
    reductions.reduce_xor,
    "Logical XOR; for integers bitwise XOR.",
    "[True, True]",
    "False",
)


def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike = "int32") -> Array:
    """The position of the greatest element along a dimension; the first of equal ones. NaN counts as greatest.

    Args:
        operand: array of real numbers.
        axis: int: the dimension to reduce.
        index_dtype: integer dtype of the result.

    Returns:
        Positions in `index_dtype`, in the shape of the operand without the dimension.

    Raises:
        ShapeError: where the dimension is empty or does not exist.

    >>> lax.argmax(fnp.asarray([1.0, 3.0, 2.0]), 0, "int32").item()
    1
    """
    operand = value(operand)
    return reductions.argmax(operand, axes=(axis_of(axis, aval_of(operand).ndim),), index_dtype=as_dtype(index_dtype))


def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike = "int32") -> Array:
    """The position of the least element along a dimension; the first of equal ones. NaN counts as least.

    Args:
        operand: array of real numbers.
        axis: int: the dimension to reduce.
        index_dtype: integer dtype of the result.

    Returns:
        Positions in `index_dtype`, in the shape of the operand without the dimension.

    >>> lax.argmin(fnp.asarray([1.0, 3.0, 2.0]), 0, "int32").item()
    0
    """
    operand = value(operand)
    return reductions.argmin(operand, axes=(axis_of(axis, aval_of(operand).ndim),), index_dtype=as_dtype(index_dtype))


# -------------------------------------------------------------------------------------------------------- cumulative
_RUNNING_DOC = """{summary} along a dimension.

    Args:
        operand: array.
        axis: the dimension.
        reverse: accumulate from the end.

    Returns:
        An array of the operand's shape.

    Raises:
        ShapeError: where there is no such dimension.
        DtypeError: for dtypes that it does not support.

    >>> lax.{name}(fnp.asarray([2.0, 1.0, 3.0])).tolist()
    {shows}
    """


def _running(name: str, primitive: Any, summary: str, shows: str) -> Running:
    def function(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
        operand = value(operand)
        return primitive(operand, axis=axis_of(axis, aval_of(operand).ndim), reverse=bool(reverse))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _RUNNING_DOC.format(name=name, summary=summary, shows=shows)
    return function


cumsum = _running("cumsum", cumulative.cumsum, "Cumulative sum", "[2.0, 3.0, 6.0]")
cumprod = _running("cumprod", cumulative.cumprod, "Cumulative product", "[2.0, 2.0, 6.0]")
cummax = _running("cummax", cumulative.cummax, "Cumulative maximum", "[2.0, 2.0, 3.0]")
cummin = _running("cummin", cumulative.cummin, "Cumulative minimum", "[2.0, 1.0, 1.0]")
cumlogsumexp = _running(
    "cumlogsumexp",
    log_cumulative.cumlogsumexp,
    "Cumulative log of the sum of exponentials",
    "[2.0, 2.313..., 3.407...]",
)


# ------------------------------------------------------------------------------------------------------ initial values
def initial(init_value: Any, dtype: Any) -> Any:
    """Return the initial value of a reduction, in the operand's dtype."""
    if aval_of(init_value).shape:
        raise error(ShapeError, f"init_value {aval_of(init_value)!r} is not a scalar", "give a number")
    if isinstance(init_value, (ArrayImpl, Tracer)):
        return match(init_value, structural.full((), 0, dtype))[0]
    # As the initial value of integers, an infinity means the least or greatest integer of the dtype.
    if dtype.kind in "iu" and isinstance(init_value, float) and np.isinf(init_value):
        return reductions.lowest(dtype) if init_value < 0 else reductions.highest(dtype)
    return host(init_value, dtype)


def is_identity(init: Any, identity: Any) -> bool:
    """Return True if an initial value is known to be the identity; a traced value is not known."""
    return not isinstance(init, Tracer) and bool(np.asarray(init) == identity)


# -------------------------------------------------------------------------------------------------------------- sorting
@overload
def sort(
    operand: Array | np.ndarray[Any, Any], dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Array: ...
@overload
def sort(
    operand: Sequence[ArrayLike], dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> tuple[Array, ...]: ...
def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """Sort arrays in ascending order along a dimension.

    Args:
        operand: array, or a sequence of arrays of one shape that are reordered together.
        dimension: the dimension to sort along.
        is_stable: equal elements keep their order.
        num_keys: number of leading arrays that are compared, in lexicographic order.

    Returns:
        A sorted array; a tuple for a sequence. NaNs come last.

    Raises:
        ShapeError: where shapes differ, or there is no such dimension.
        ArgumentError: for a wrong number of keys.

    >>> lax.sort((fnp.asarray([3, 1]), fnp.asarray([0.0, 1.0])))[1].tolist()
    [1.0, 0.0]
    """
    several = isinstance(operand, (tuple, list))
    operands: Sequence[Any] = [value(x) for x in operand] if several else [value(operand)]
    if not operands:
        raise error(ArgumentError, "lax.sort got no arrays", "give at least one")
    at = axis_of(dimension, aval_of(operands[0]).ndim, "dimension")
    out = sorting.sort(*operands, dimension=at, is_stable=bool(is_stable), num_keys=num_keys)
    return tuple(out) if several else out[0]


def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Sort keys in ascending order along a dimension, and reorder values with them.

    Args:
        keys: array to sort.
        values: array of the same shape.
        dimension: int: the dimension to sort along.
        is_stable: keep the order of equal keys.

    Returns:
        A pair of arrays, of the operands' shape and dtypes.

    >>> lax.sort_key_val(fnp.asarray([3, 1]), fnp.asarray([0.0, 1.0]))[1].tolist()
    [1.0, 0.0]
    """
    first, second = sort((keys, values), dimension, is_stable)
    return first, second
