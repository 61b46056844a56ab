"""tile, split, top_k, and optimization_barrier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from functorch_like import dtypes, tree
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, DtypeError
from functorch_like.lax.operands import axis_of, error, ints, one_int, same_rank, value
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.ordering import top_k as ranking
from functorch_like.primitives.structural import tile_split_barrier

if TYPE_CHECKING:
    from functorch_like.calling.type_variables import T
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike

    class Approximate(Protocol):
        """approx_max_k and approx_min_k."""

        __name__: str

        def __call__(
            self,
            operand: ArrayLike,
            k: int,
            reduction_dimension: int = -1,
            recall_target: float = 0.95,
            reduction_input_size_override: int = -1,
            aggregate_to_topk: bool = True,
        ) -> tuple[Array, Array]:
            """Compute the result; the function's own docstring describes it."""
            ...


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """An array repeated along its dimensions.

    Args:
        operand: array.
        reps: the number of repetitions along each dimension.

    Returns:
        An array of the operand's dtype.

    Raises:
        ArgumentError: where there are more or fewer numbers than dimensions.

    >>> lax.tile(fnp.asarray([[1, 2]]), (2, 2)).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    operand = value(operand)
    return tile_split_barrier.tile(operand, reps=same_rank(ints(reps, "reps"), aval_of(operand).ndim, "reps"))


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Split an array into parts along a dimension.

    Args:
        operand: array.
        sizes: sizes of the parts; they add up to the size of the dimension.
        axis: the dimension.

    Returns:
        A list of arrays of the operand's dtype.

    Raises:
        ShapeError: where the sizes do not add up, or there is no such dimension.

    >>> [part.tolist() for part in lax.split(fnp.arange(5), (2, 3))]
    [[0, 1], [2, 3, 4]]
    """
    operand = value(operand)
    return list(
        tile_split_barrier.split(operand, sizes=ints(sizes, "sizes"), axis=axis_of(axis, aval_of(operand).ndim))
    )


def optimization_barrier(operand: T) -> T:
    """The identity, but a barrier for XLA, which moves and fuses no computation across it.

    Args:
        operand: array, or pytree of arrays; all are computed before anything that uses one of them.

    Returns:
        The operand, in its structure.

    >>> lax.optimization_barrier((fnp.ones(2), 3.0))[0].tolist()
    [1.0, 1.0]
    """
    leaves, structure = tree.flatten(operand)
    return structure.unflatten(tile_split_barrier.optimization_barrier(*map(value, leaves)) if leaves else [])


def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> tuple[Array, Array]:
    """The k greatest elements along a dimension, in descending order, and their positions.

    Args:
        operand: array of real numbers.
        k: the number of elements.
        axis: the dimension.

    Returns:
        Values and int32 positions. NaN counts as greatest; of equal elements the first come first.

    Raises:
        ArgumentError: where the dimension has fewer elements.

    >>> [x.tolist() for x in lax.top_k(fnp.asarray([2.0, 5.0, 3.0]), 2)]
    [[5.0, 3.0], [1, 2]]
    """
    operand = value(operand)
    last = aval_of(operand).ndim - 1
    at = axis_of(axis, last + 1)
    count = one_int(k, "k")
    values, places = ranking.top_k(structural.move(operand, at, last), k=count)
    return structural.move(values, last, at), structural.move(places, last, at)


_APPROX = """The k {which} elements along a dimension, and their positions.

    Here the result is exact on every platform: `recall_target`, `reduction_input_size_override` and
    `aggregate_to_topk` are accepted for compatibility with JAX, and have no effect.

    Args:
        operand: array of floats.
        k: the number of elements.
        reduction_dimension: the dimension.
        recall_target: the share of the true elements that would suffice; above 0, at most 1.
        reduction_input_size_override: ignored.
        aggregate_to_topk: ignored; the result always has k elements.

    Returns:
        Values, in order, and int32 positions.

    Raises:
        DtypeError: for other dtypes than floats.
        ArgumentError: where the dimension has fewer elements, or recall_target is not between 0 and 1.

    >>> lax.{name}(fnp.asarray([2.0, 5.0, 3.0]), 1)[0].tolist()
    {shows}
    """


def _approx(name: str, which: str, shows: str) -> Approximate:
    def function(
        operand: ArrayLike, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
        reduction_input_size_override: int = -1, aggregate_to_topk: bool = True,
    ) -> tuple[Array, Array]:  # fmt: skip
        operand = value(operand)
        if not dtypes.is_float(aval_of(operand).dtype):
            raise error(DtypeError, f"lax.{name} takes floats, got {aval_of(operand)!r}", "use lax.top_k")
        if not 0 < recall_target <= 1:
            raise error(
                ArgumentError, f"lax.{name} got recall_target={recall_target}", "use a number above 0, at most 1"
            )
        if which == "greatest":
            return top_k(operand, k, axis=reduction_dimension)
        values, places = top_k(elementwise.neg(operand), k, axis=reduction_dimension)
        return elementwise.neg(values), places

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _APPROX.format(which=which, name=name, shows=shows)
    return function


approx_max_k = _approx("approx_max_k", "greatest", "[5.0]")
approx_min_k = _approx("approx_min_k", "least", "[2.0]")
