"""Counting: histograms and their edges, and how often each whole number occurs."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ConcretizationError, DtypeError, FtError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.guarded_sizes import checked_size
from functorch_like.numpy.operands import given, known
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, NestedArrayLike


def histogram_bin_edges(
    a: ArrayLike,
    bins: int | str | NestedArrayLike = 10,
    range: Sequence[ArrayLike] | None = None,
    weights: ArrayLike | None = None,
) -> Array:
    """The edges of the bins of a histogram.

    Args:
        a: array of real numbers, flattened.
        bins: the number of bins of equal width, a Python int; or increasing edges; or the name of one of NumPy's
            rules, for which the values must be known.
        range: the lowest and highest edge; by default the least and greatest element.
        weights: ignored.

    Returns:
        (bins + 1,), in floating point.

    Raises:
        ArgumentError: for fewer than one bin, decreasing edges, and a range that decreases or is not finite.
        ConcretizationError: for a rule's name where `a` is traced.

    >>> fnp.histogram_bin_edges(fnp.asarray([0.0, 4.0]), bins=2).tolist()
    [0.0, 2.0, 4.0]
    """
    (a,) = given(a)
    return _edges(a, bins, range, "fnp.histogram_bin_edges")


#: NumPy's names of rules for the number of bins.
_RULES = ("auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges")


def _several(bins: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(bins, (list, tuple)) or (promotion.is_array(bins) and aval_of(bins).ndim > 0)


def _edges(a: Any, bins: Any, range: Any, what: str) -> Any:
    if isinstance(bins, str):
        values = known(a)
        if values is None:
            raise promotion.error(
                ConcretizationError,
                f"{what} of a traced {aval_of(a)!r} with bins={bins!r}: the number of bins is not known",
                "give the number of bins",
            )
        if bins not in _RULES:
            raise promotion.error(
                ArgumentError, f"{what}: bins={bins!r}", f"give a number, edges, or one of {', '.join(_RULES)}"
            )
        # Of integers the rules make bins of width 1 at least.
        values = values if values.dtype.kind in "iu" else values.astype(np.float64)
        bins = len(np.histogram_bin_edges(values, bins, range)) - 1
    if _several(bins):
        edges = known(bins)
        if edges is not None and (edges[1:] < edges[:-1]).any():
            raise promotion.error(ArgumentError, f"{what}: bins={bins!r}", "sort the edges: they must not decrease")
        return promotion.to_inexact(given(a, bins)[1])
    try:
        bins = operator.index(bins)
    except TypeError as e:
        if isinstance(e, FtError):  # a traced number
            raise
        raise promotion.error(ArgumentError, f"{what}: bins={bins!r}", "give an integer, or edges") from None
    if bins < 1:
        raise promotion.error(ArgumentError, f"{what} of {bins} bins", "use at least 1")
    if range is not None:
        digits = a if dtypes.is_inexact(aval_of(a).dtype) else None  # integers need not hold the ends
        _, low, high = given(digits, *range)
        ends = [known(low), known(high)]
        if not any(e is None for e in ends):
            if not ends[0] <= ends[1]:  # type: ignore[operator]
                raise promotion.error(
                    ArgumentError, f"{what}: range={range!r}", "the first number must not be the greater one"
                )
            if not np.isfinite(ends).all():  # type: ignore[arg-type]
                raise promotion.error(ArgumentError, f"{what}: range={range!r}", "give two finite numbers")
        return _spaced(a, low, high, bins=bins)
    return _spaced(a, None, None, bins=bins)


@eager_jit(static=("bins",), ints=True)
def _spaced(a: Any, low: Any, high: Any, bins: int) -> Any:
    a = promotion.to_inexact(a)
    if low is None:
        low, high = (fnp.min(a), fnp.max(a)) if aval_of(a).size else (fnp.zeros_like(a, shape=()), 1)
    low, high = promotion.align_inexact(low, high)
    same = fnp.equal(low, high)
    dtype = aval_of(a).dtype
    return fnp.linspace(fnp.where(same, low - 0.5, low), fnp.where(same, high + 0.5, high), bins + 1, dtype=dtype)


def histogram(
    a: ArrayLike,
    bins: int | str | NestedArrayLike = 10,
    range: Sequence[ArrayLike] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array]:
    """Count the elements in each bin; the last bin includes its right edge.

    Args:
        a: array of real numbers, flattened.
        bins: as for `histogram_bin_edges`.
        range: as for `histogram_bin_edges`.
        weights: array of the shape of `a`: what each element adds to its bin, instead of 1.
        density: divide by the total and the widths, so that the integral is 1.

    Returns:
        The counts (bins,), in the default int dtype, that of the weights, or floats with `density`; and the edges.

    Raises:
        ShapeError: for weights of another shape.
        ArgumentError: for weights with a rule's name.

    >>> [x.tolist() for x in fnp.histogram(fnp.asarray([1, 2, 1]), bins=2)]
    [[2, 1], [1.0, 1.5, 2.0]]
    """
    a, weights = given(a, weights)
    if weights is not None and aval_of(weights).shape != aval_of(a).shape:
        raise promotion.error(
            ShapeError, f"fnp.histogram of {aval_of(a)!r} with {aval_of(weights)!r}", "give one weight for each element"
        )
    if weights is not None and isinstance(bins, str):
        raise promotion.error(ArgumentError, f"fnp.histogram with weights and bins={bins!r}", "give the number of bins")
    edges = _edges(a, bins, range, "fnp.histogram")
    return _histogram(a, edges, weights, density=bool(density)), edges


@eager_jit(static=("density",))
def _histogram(a: Any, edges: Any, weights: Any, density: bool) -> Any:
    place = _bin(fnp.ravel(a), edges)
    total = _counted(place, aval_of(edges).size - 1, None if weights is None else fnp.ravel(weights))
    if not density:
        return total
    kinds = (dtypes.inexact_dtype(aval_of(x).dtype) for x in (total, edges))
    total = promotion.convert(total, dtypes.result_type(*kinds))
    return total / fnp.diff(edges) / fnp.sum(total)


def _bin(x: Any, edges: Any) -> Any:
    """Return the index of the bin of each element; the number of bins for elements outside of all."""
    x, edges = promotion.promote(x, edges, notify=False)
    n = aval_of(edges).size
    place = fnp.searchsorted(edges, x, side="right") - 1
    place = fnp.where(x == edges[-1], n - 2, place)
    return fnp.where((place < 0) | (place >= n - 1) | (x != x), n - 1, place)


def _counted(place: Any, n: int, weights: Any) -> Any:
    """Count the occurrences of each place; places out of bounds are ignored."""
    dtype = dtypes.default_int() if weights is None else aval_of(weights).dtype
    return fnp.zeros(n, dtype).at[place].add(1 if weights is None else weights, mode="drop")


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: int | NestedArrayLike = 10,
    range: Sequence[Sequence[ArrayLike]] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """Count the points in each rectangle.

    Args:
        x: (n,), the first coordinates.
        y: (n,), the second coordinates.
        bins: a number, a pair of numbers, edges for both, or a pair of edges.
        range: a pair of pairs: the lowest and highest edge of each.
        weights: (n,): what each point adds to its bin, instead of 1.
        density: divide by the total and the areas.

    Returns:
        The counts, and the edges of x and of y.

    >>> fnp.histogram2d(fnp.asarray([0.0, 1.0]), fnp.asarray([0.0, 1.0]), bins=2)[0].tolist()
    [[1, 0], [0, 1]]
    """
    if _several(bins) and len(bins) not in (1, 2):
        bins = [bins, bins]
    counts, (first, second) = histogramdd(fnp.stack(given(x, y), 1), bins, range, weights, density)
    return counts, first, second


def histogramdd(
    sample: NestedArrayLike,
    bins: int | NestedArrayLike = 10,
    range: Sequence[Sequence[ArrayLike] | None] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """Count the points in each box.

    Args:
        sample: (n, d): n points; or d arrays of coordinates.
        bins: a number, or one for each dimension, or edges for each.
        range: a pair of edges for each dimension, or None.
        weights: (n,): what each point adds to its bin, instead of 1.
        density: divide by the total and the volumes.

    Returns:
        The counts, and a list of the edges.

    Raises:
        ShapeError: for other shapes, and where there are not d bins, or ranges.

    >>> fnp.histogramdd(fnp.asarray([[0.0, 0.0], [1.0, 1.0]]), bins=2)[0].tolist()
    [[1, 0], [0, 1]]
    """
    points = fnp.stack(given(*sample), 1) if isinstance(sample, (list, tuple)) else given(sample)[0]
    points, weights = given(points, weights)
    aval = aval_of(points)
    if aval.ndim != 2 or (weights is not None and aval_of(weights).shape != aval.shape[:1]):
        raise promotion.error(
            ShapeError, f"fnp.histogramdd of {aval!r}", "give points as rows, and one weight for each"
        )
    d = aval.shape[1]
    each = list(bins) if _several(bins) else [bins] * d
    ranges = [None] * d if range is None else list(range)
    if len(each) != d or len(ranges) != d:
        raise promotion.error(
            ShapeError, f"fnp.histogramdd of {aval!r}: bins={bins!r}, range={range!r}", f"give {d} of each"
        )
    edges = [_edges(points[:, k], each[k], ranges[k], "fnp.histogramdd") for k in np.arange(d)]
    return _histogramdd(points, edges, weights, density=bool(density)), edges


@eager_jit(static=("density",))
def _histogramdd(sample: Any, edges: Any, weights: Any, density: bool) -> Any:
    sizes = [aval_of(e).size - 1 for e in edges]
    flat, outside = 0, False
    for k, (edge, n) in enumerate(zip(edges, sizes, strict=True)):
        place = _bin(sample[:, k], edge)
        flat, outside = flat * n + place, outside | (place >= n)
    total = int(np.prod(sizes, dtype=np.int64))
    counts = fnp.reshape(_counted(fnp.where(outside, total, flat), total, weights), sizes)
    if not density:
        return counts
    counts = promotion.to_inexact(counts)
    whole = fnp.sum(counts)
    for edge in edges:
        counts = counts / fnp.reshape(fnp.diff(edge), [-1 if e is edge else 1 for e in edges])
    return counts / whole


def bincount(x: ArrayLike, weights: ArrayLike | None = None, minlength: int = 0, *, length: int | None = None) -> Array:
    """Count the occurrences of each whole number.

    Args:
        x: whole numbers (n,).
        weights: (n,): what each element adds to its count, instead of 1.
        minlength: the least size of the result.
        length: the size of the result, required where x is traced; greater and negative numbers are left out.

    Returns:
        (max(x) + 1,), or longer, in the default int dtype or that of the weights.

    Raises:
        ConcretizationError: for traced x without `length`.
        DtypeError: where x does not have whole numbers.
        ArgumentError: for negative numbers that are known.

    >>> fnp.bincount([1, 3, 1]).tolist()
    [0, 2, 0, 1]
    """
    x, weights = given(fnp.zeros(0, int) if isinstance(x, Sequence) and not x else x, weights)
    aval = aval_of(x)
    if aval.ndim != 1 or (weights is not None and aval_of(weights).shape != aval.shape):
        raise promotion.error(
            ShapeError, f"fnp.bincount of {aval!r}", "give one dimension, and one weight for each element"
        )
    if aval.dtype.kind not in "iub":
        raise promotion.error(DtypeError, f"fnp.bincount of {aval!r}", "convert to whole numbers with astype")
    if length is None:
        values = known(x)
        if values is None:
            raise promotion.error(
                ConcretizationError,
                f"fnp.bincount of a traced {aval!r}: the size of the result is not known",
                "pass length=",
            )
        if values.size and values.min() < 0:
            raise promotion.error(ArgumentError, f"fnp.bincount of the negative number {values.min()}", "use x >= 0")
        length = max(int(values.max()) + 1 if values.size else 0, checked_size(minlength, "minlength"))
    return _bincount(x, weights, length=checked_size(length, "length"))


@eager_jit(static=("length",))
def _bincount(x: Any, weights: Any, length: int) -> Any:
    x = (
        promotion.convert(x, dtypes.default_int())
        if aval_of(x).dtype.kind == "b" or aval_of(x).dtype.itemsize < 4
        else x
    )
    return _counted(fnp.where(x < 0, length, x), length, weights)
