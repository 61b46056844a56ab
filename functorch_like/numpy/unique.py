"""The distinct elements of an array: `unique` and its relatives of the array API standard.

The number of distinct elements depends on the values. Known values give a result of just that size; for traced ones
`size` is the number to return.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np

from functorch_like import dtypes
from functorch_like.core import ArrayImpl, Tracer, aval_of
from functorch_like.errors import ConcretizationError
from functorch_like.numpy import promotion
from functorch_like.numpy.at_updates import IndexUpdate
from functorch_like.numpy.axes import axis_of
from functorch_like.numpy.creation import asarray
from functorch_like.numpy.cumulative import cumsum
from functorch_like.numpy.guarded_sizes import checked_size, count_true
from functorch_like.numpy.indexing import getitem, take
from functorch_like.numpy.joining import _cut
from functorch_like.numpy.selection import where
from functorch_like.numpy.shapes import moveaxis, reshape
from functorch_like.numpy.sorting_searching import nonzero
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.ordering import sort
from functorch_like.primitives.reductions import reductions
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


class UniqueAll(NamedTuple):
    """Result of `unique_all`."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """Result of `unique_counts`."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """Result of `unique_inverse`."""

    values: Array
    inverse_indices: Array


@overload
def unique(
    ar: ArrayLike,
    return_index: Literal[False] = False,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Array: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: Literal[True],
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> tuple[Array, ...]: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    *,
    return_inverse: Literal[True],
    return_counts: bool = False,
    axis: int | None = None,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> tuple[Array, ...]: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    *,
    return_counts: Literal[True],
    axis: int | None = None,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> tuple[Array, ...]: ...
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Any:
    """The distinct elements, sorted; or the distinct slices along an axis.

    Args:
        ar: array.
        return_index: return the positions where each occurs first, too.
        return_inverse: return the positions in the result that give back the array, too.
        return_counts: return how often each occurs, too.
        axis: the axis of the slices; None for the elements of the flattened array.
        equal_nan: whether all NaN count as one element, or each as its own. (Slices with NaN are always distinct.)
        size: the number of results; required for traced values.
        fill_value: value that fills up to `size`; by default the least element. Its index is that of the least
            element, and its count 0.
        sorted: accepted for compatibility with NumPy; the result is always sorted.

    Returns:
        The distinct elements; with one of the `return_` options a tuple of them and of the selected int32 arrays.

    Raises:
        ConcretizationError: for a traced array without `size`.

    >>> fnp.unique(fnp.asarray([3, 1, 3])).tolist()
    [1, 3]
    >>> ft.jit(lambda x: fnp.unique(x, size=4, fill_value=-1))(fnp.asarray([3, 1, 3])).tolist()
    [1, 3, -1, -1]
    """
    requested = (return_index, return_inverse, return_counts)
    if axis is None and not any(requested):
        if size is not None:
            return _sorted_values(ar, bool(equal_nan), checked_size(size), fill_value)
        alone = _values_alone(ar, bool(equal_nan))
        if alone is not None:
            return alone
    result = distinct(ar, axis, equal_nan, size, fill_value, "fnp.unique")
    out = (result[0], *(part for part, is_requested in zip(result[1:], requested, strict=True) if is_requested))
    return out if len(out) > 1 else out[0]


def unique_all(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueAll:
    """The distinct elements, their first positions, the positions that give back the array, and the counts.

    Each NaN is an element of its own. `size` and `fill_value` are as for `unique`.

    Args:
        x: array; it is flattened.
        size: the number of results; required for traced values.
        fill_value: value that fills up to `size`; the least element if None.

    Returns:
        A named tuple of `values`, `indices`, `inverse_indices` (of the shape of x) and `counts`.

    >>> values, indices, inverse, counts = fnp.unique_all(fnp.asarray([3, 1, 3]))
    >>> values.tolist(), indices.tolist(), inverse.tolist(), counts.tolist()
    ([1, 3], [1, 0], [1, 0, 1], [1, 2])
    """
    return UniqueAll(*distinct(x, None, False, size, fill_value, "fnp.unique_all"))


def unique_counts(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueCounts:
    """The distinct elements, and how often each occurs; arguments as for `unique_all`.

    Args:
        x: array; it is flattened.
        size: the number of results; required for traced values.
        fill_value: value that fills up to `size`; the least element if None.

    Returns:
        A named tuple of `values` and `counts`.

    >>> [a.tolist() for a in fnp.unique_counts(fnp.asarray([3, 1, 3]))]
    [[1, 3], [1, 2]]
    """
    result = distinct(x, None, False, size, fill_value, "fnp.unique_counts")
    return UniqueCounts(result[0], result[3])


def unique_inverse(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueInverse:
    """The distinct elements, and the positions that give back the array; arguments as for `unique_all`.

    Args:
        x: array; it is flattened.
        size: the number of results; required for traced values.
        fill_value: value that fills up to `size`; the least element if None.

    Returns:
        A named tuple of `values` and `inverse_indices`, which have the shape of x.

    >>> [a.tolist() for a in fnp.unique_inverse(fnp.asarray([3, 1, 3]))]
    [[1, 3], [1, 0, 1]]
    """
    result = distinct(x, None, False, size, fill_value, "fnp.unique_inverse")
    return UniqueInverse(result[0], result[2])


def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The distinct elements; arguments as for `unique_all`.

    Args:
        x: array; it is flattened.
        size: the number of results; required for traced values.
        fill_value: value that fills up to `size`; the least element if None.

    Returns:
        A one-dimensional array of the dtype of x.

    >>> fnp.unique_values(fnp.asarray([3, 1, 3])).tolist()
    [1, 3]
    """
    if size is not None:
        return _sorted_values(x, False, checked_size(size), fill_value)
    alone = _values_alone(x, False)
    return distinct(x, None, False, size, fill_value, "fnp.unique_values")[0] if alone is None else alone


def known(x: Any) -> np.ndarray[Any, Any] | None:
    """Return the values of an array as a NumPy array; None where they are traced."""
    concrete = x.concrete() if isinstance(x, Tracer) else x
    if concrete is None:
        return None
    host = np.asarray(concrete)
    if host.dtype.kind != "V":
        return host
    # NumPy's set functions do not support bfloat16, int4 and the like; these dtypes hold them exactly.
    return host.astype(np.float32 if dtypes.is_float(host.dtype) else np.int8)


def _values_alone(ar: Any, equal_nan: bool) -> Any:
    """Return the distinct elements of an array that is not a tracer, by NumPy; None for arrays that need `distinct`.

    Without positions NumPy sorts several times faster, and no program is compiled for the size of the result.
    """
    if type(ar) is not ArrayImpl and type(ar) is not np.ndarray:
        return None
    aval = aval_of(ar)
    if aval.weak_type or aval.dtype.kind not in "biuf" or getattr(ar, "_committed", False):
        return None
    host = np.asarray(ar).reshape(-1)
    if host.dtype != aval.dtype:
        return None
    # np.unique makes a hash table, which takes 20 times as long for a million different elements.
    values = np.sort(host)
    new = np.concatenate((np.ones(min(1, host.size), bool), values[1:] != values[:-1]))
    if host.dtype.kind == "f" and equal_nan:
        new[1:] &= ~np.isnan(values[:-1])
    values = values[new]
    if host.dtype.kind == "f":  # of equal elements take the first: zeros of both signs, NaNs
        missing = np.isnan(host)
        if missing.any():
            values[np.isnan(values)] = host[np.argmax(missing)] if equal_nan else host[missing]
        zero = host == 0
        if zero.any():
            values[values == 0] = host[np.argmax(zero)]
    return asarray(values)


def _sorted_values(ar: Any, equal_nan: bool, size: int, fill: Any) -> Any:
    """Return so many distinct elements. Elements without their positions are sorted several times faster."""
    ar = ar if promotion.is_array(ar) else asarray(ar)
    n = aval_of(ar).size
    values, count = _first_of_equal(reshape(ar, (n,)), equal_nan=equal_nan, size=size)
    if fill is None:
        return values
    places = structural.iota(dtype=dtypes.int32, shape=(size,), dimension=0)
    return where(places < count, values, promotion.convert(asarray(fill), aval_of(values).dtype))


@eager_jit(static=("equal_nan", "size"))
def _first_of_equal(x: Any, equal_nan: bool, size: int) -> Any:
    """Return the distinct elements, filled up with the least one, and their number."""
    n = aval_of(x).size
    if not n:
        return structural.full((size,), 0, aval_of(x).dtype), structural.full((), 0, dtypes.int32)
    (ordered,) = sort.sort(x, dimension=0, is_stable=True, num_keys=1)
    new = _new_ones([structural.stop_gradient(ordered)], n, equal_nan)
    values = getitem(ordered, nonzero(new, size=size))
    if dtypes.is_float(aval_of(x).dtype):  # of zeros of both signs the first one, as where positions are sorted along
        places = structural.iota(dtype=dtypes.int32, shape=(n,), dimension=0)
        zero = elementwise.eq(x, structural.full_like(x, 0))
        place = reductions.reduce_min(where(zero, places, n - 1), axes=(0,))
        values = where(values == 0, getitem(x, place), values)
    return values, structural.reduce_sum(promotion.convert(new, dtypes.int32), axes=(0,))


def no_size(what: str, x: Any) -> Any:
    """Return the error for a result whose size is not known."""
    return promotion.error(
        ConcretizationError,
        f"{what} of a traced {aval_of(x)!r}: the number of its results is not known",
        "pass size=, the number to return, and fill_value=, the value that fills up to it",
    )


def _guarded(ar: Any, d: int | None, equal_nan: bool) -> int | None:
    """Return the number of distinct elements, where jit follows Python's control flow; None elsewhere."""
    most = aval_of(ar).size if d is None else aval_of(ar).shape[d]
    counts = _distinct(ar, axis=d, equal_nan=bool(equal_nan), size=most)[2]
    return count_true(elementwise.gt(counts, structural.full_like(counts, 0)))


def distinct(ar: Any, axis: int | None, equal_nan: bool, size: int | None, fill: Any, what: str) -> tuple[Any, ...]:
    """Return values, first positions, inverse and counts."""
    ar = ar if promotion.is_array(ar) else asarray(ar)
    aval = aval_of(ar)
    d = None if axis is None else axis_of(axis, aval.ndim, what)
    if size is None and isinstance(ar, Tracer) and ar.concrete() is None:
        size = _guarded(ar, d, equal_nan)
    if size is not None:
        index, inverse, counts = _distinct(ar, axis=d, equal_nan=bool(equal_nan), size=checked_size(size))
        return _filled(ar, index, counts, d, fill), index, inverse, counts
    host = known(ar)
    if host is None:
        raise no_size(what, ar)
    _, index, inverse, counts = np.unique(host, True, True, True, axis=d, equal_nan=bool(equal_nan))
    index, inverse, counts = (asarray(i.astype(dtypes.default_int())) for i in (index, inverse, counts))
    return _filled(ar, index, counts, d, None), index, inverse, counts


def _filled(ar: Any, index: Any, counts: Any, d: int | None, fill: Any) -> Any:
    shape, many = aval_of(ar).shape, aval_of(index).shape
    if aval_of(ar).size:
        values = take(ar, index, axis=d, mode="clip")
    else:
        values = structural.full(many if d is None else (*shape[:d], *many, *shape[d + 1 :]), 0, aval_of(ar).dtype)
    if fill is None:
        return values
    along = (slice(None), *(None,) * (aval_of(values).ndim - 1 - (d or 0)))
    return where(getitem(counts, along) > 0, values, promotion.convert(asarray(fill), aval_of(values).dtype))


@eager_jit(static=("axis", "equal_nan", "size"))
def _distinct(x: Any, axis: int | None, equal_nan: bool, size: int) -> Any:
    aval = aval_of(x)
    rows = reshape(x, (aval.size, 1)) if axis is None else moveaxis(x, axis, 0)
    n = aval_of(rows).shape[0]
    rows = reshape(rows, (n, aval_of(rows).size // max(n, 1)))
    keys = [reshape(_cut(rows, 1, i, i + 1), (n,)) for i in range(aval_of(rows).shape[1])]
    order, new = first_ones(keys, n, equal_nan)
    index = dtypes.default_int()
    group = cumsum(new, dtype=index) - 1
    inverse = IndexUpdate(structural.full((n,), 0, index))[order].set(group)
    if axis is None:
        inverse = reshape(inverse, aval.shape)
    counts = IndexUpdate(structural.full((size,), 0, index))[group].add(1)
    first = getitem(order, nonzero(new, size=size)) if n else structural.full((size,), 0, index)
    return first, inverse, counts


def first_ones(keys: list[Any], n: int, equal_nan: bool, tag: Any = None) -> tuple[Any, Any]:
    """Return the order that sorts by keys (then by a tag), and a mask of positions in it where a new key begins."""
    places = structural.iota(dtype=dtypes.default_int(), shape=(n,), dimension=0)
    keys = [structural.stop_gradient(key) for key in keys]
    keys = keys if tag is None else [*keys, tag]
    if not keys or not n:
        return places, elementwise.eq(places, structural.full_like(places, 0))
    *ordered, order = sort.sort(*keys, places, dimension=0, is_stable=True, num_keys=len(keys))
    return order, _new_ones(ordered, n, equal_nan and len(keys) == (1 if tag is None else 2))


def _new_ones(ordered: list[Any], n: int, equal_nan: bool) -> Any:
    """Return a mask of positions in sorted keys where a new key begins."""
    new = structural.full((n - 1,), False, dtypes.bool_)
    for key in ordered:
        before, after = _cut(key, 0, 0, n - 1), _cut(key, 0, 1, n)
        differs = elementwise.ne(before, after)
        if equal_nan:
            differs = elementwise.and_(
                differs,
                elementwise.not_(elementwise.and_(elementwise.ne(before, before), elementwise.ne(after, after))),
            )
        new = elementwise.or_(new, differs)
    return structural.concatenate(structural.full((1,), True, dtypes.bool_), new, dimension=0)
