"""Slices and windows at many index vectors: gather and the scatters."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from functorch_like.errors import ArgumentError
from functorch_like.lax.operands import error, ints, value
from functorch_like.primitives import elementwise
from functorch_like.primitives.indexing import gather_and_scatter_add
from functorch_like.primitives.indexing.dimension_numbers import GatherDimensionNumbers, ScatterDimensionNumbers
from functorch_like.primitives.updates.scatter import scatter as _set
from functorch_like.primitives.updates.scatter import scatter_max as _largest
from functorch_like.primitives.updates.scatter import scatter_min as _least
from functorch_like.primitives.updates.scatter import scatter_mul as _times

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike

    class Scatter(Protocol):
        """A scatter."""

        __name__: str

        def __call__(
            self,
            operand: ArrayLike,
            scatter_indices: ArrayLike,
            updates: ArrayLike,
            dimension_numbers: ScatterDimensionNumbers,
            *,
            indices_are_sorted: bool = False,
            unique_indices: bool = False,
            mode: str | None = None,
        ) -> Array:
            """Compute the result; the function's own docstring describes it."""
            ...


# ---------------------------------------------------------------------------------------------------- gather, scatter
class GatherScatterMode(enum.StrEnum):
    """Treatment of indices out of bounds: clamp them, fill in (or drop), or promise that there are none."""

    CLIP = "clip"
    FILL_OR_DROP = "fill"
    PROMISE_IN_BOUNDS = "promise_in_bounds"

    @staticmethod
    def from_any(mode: str | None) -> GatherScatterMode:
        """Return the mode with a name, which may also be "drop", or None for the default.

        Raises:
            ArgumentError: for an unknown name.

        >>> lax.GatherScatterMode.from_any("drop").value
        'fill'
        """
        try:
            return GatherScatterMode(mode_of(mode))
        except ValueError:
            raise error(
                ArgumentError, f"mode={mode!r} is unknown", "use 'clip', 'fill', 'drop' or 'promise_in_bounds'"
            ) from None


def mode_of(mode: Any) -> str:
    """Return the primitive's name of a mode for indices out of bounds."""
    if mode is not None and not isinstance(mode, str):
        raise error(ArgumentError, f"mode={mode!r} is unknown", "use 'clip', 'fill', 'drop' or 'promise_in_bounds'")
    return "fill" if mode in (None, "drop", "fill") else str(mode)


def numbers_of(dimension_numbers: Any) -> Any:
    """Return dimension numbers as tuples of ints."""
    return type(dimension_numbers)(*(ints(part, "dimension_numbers") for part in dimension_numbers))


def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Slices of one array, one for each index vector.

    Args:
        operand: array.
        start_indices: integers; the last dimension holds index vectors.
        dimension_numbers: the roles of the dimensions.
        slice_sizes: the shape of each slice.
        unique_indices: a promise that no two slices overlap.
        indices_are_sorted: a promise that the index vectors increase.
        mode: a `GatherScatterMode` or its name; by default elements out of bounds are filled.
        fill_value: value of elements out of bounds; by default NaN, the smallest signed integer, the greatest unsigned
            integer, or True.

    Returns:
        An array of the operand's dtype, with the batch dimensions of the indices and the dimensions of the slices.

    Raises:
        ShapeError: where shapes and dimension numbers do not fit.
        ArgumentError: for an unknown mode.

    >>> numbers = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> lax.gather(fnp.arange(5), fnp.asarray([[3], [1]]), numbers, (1,)).tolist()
    [3, 1]
    """
    return gather_and_scatter_add.gather(
        value(operand), value(start_indices), dimension_numbers=numbers_of(dimension_numbers),
        slice_sizes=ints(slice_sizes, "slice_sizes"), mode=mode_of(mode),
        fill_value=gather_and_scatter_add.fill_parameter(fill_value),
        indices_are_sorted=bool(indices_are_sorted), unique_indices=bool(unique_indices),
    )  # fmt: skip


_SCATTER_DOC = """{summary}

    Args:
        operand: array.
        scatter_indices: integers; the last dimension holds index vectors.
        updates: array of the operand's dtype, a window for each index vector.
        dimension_numbers: a `ScatterDimensionNumbers`: the roles of the dimensions.
        indices_are_sorted: a promise that the index vectors increase.
        unique_indices: a promise that no two windows overlap.
        mode: a `GatherScatterMode` or its name; by default elements out of bounds are dropped.

    Returns:
        An array of the operand's shape and dtype.

    Raises:
        ShapeError: where shapes and dimension numbers do not fit.
        DtypeError: where the dtypes differ.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.{name}(fnp.full(3, 2.0), fnp.asarray([[1]]), fnp.asarray([3.0]), numbers).tolist()
    [2.0, {shows}, 2.0]
    """


def _scatter(name: str, primitive: Any, summary: str, shows: str) -> Scatter:
    def function(
        operand: ArrayLike,
        scatter_indices: ArrayLike,
        updates: ArrayLike,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
    ) -> Array:
        return primitive(
            value(operand), value(scatter_indices), value(updates), dimension_numbers=numbers_of(dimension_numbers),
            mode=mode_of(mode), indices_are_sorted=bool(indices_are_sorted), unique_indices=bool(unique_indices),
        )  # fmt: skip

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _SCATTER_DOC.format(name=name, summary=summary, shows=shows)
    return function


def _minus(operand: Any, scatter_indices: Any, updates: Any, **params: Any) -> Any:
    return gather_and_scatter_add.scatter_add(operand, scatter_indices, elementwise.neg(updates), **params)


scatter = _scatter("scatter", _set, "Overwrite windows of an array; where two overlap, one of them is kept.", "3.0")
scatter_add = _scatter("scatter_add", gather_and_scatter_add.scatter_add, "Add updates to windows of an array.", "5.0")
scatter_sub = _scatter("scatter_sub", _minus, "Subtract updates from windows of an array.", "-1.0")
scatter_mul = _scatter("scatter_mul", _times, "Multiply windows of an array by updates.", "6.0")
scatter_min = _scatter("scatter_min", _least, "Take the minimum of windows of an array and updates.", "2.0")
scatter_max = _scatter("scatter_max", _largest, "Take the maximum of windows of an array and updates.", "3.0")
