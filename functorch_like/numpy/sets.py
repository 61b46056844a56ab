"""Arrays as sets: union, intersection, differences, membership.

As in `unique.py`, results have just the right size where the values are known, and `size` elements under a trace.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

import numpy as np

from functorch_like import dtypes
from functorch_like.core import Tracer, aval_of
from functorch_like.errors import ArgumentError
from functorch_like.numpy import promotion
from functorch_like.numpy.creation import asarray
from functorch_like.numpy.guarded_sizes import checked_size
from functorch_like.numpy.indexing import getitem
from functorch_like.numpy.reductions import plain
from functorch_like.numpy.sorting_searching import _searchsorted, nonzero
from functorch_like.numpy.unique import first_ones, known, no_size, unique
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.ordering import sort
from functorch_like.primitives.reductions import reductions
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, NestedArrayLike

    class SetFunction(Protocol):
        """setdiff1d and setxor1d."""

        __name__: str

        def __call__(
            self,
            ar1: NestedArrayLike,
            ar2: NestedArrayLike,
            assume_unique: bool = False,
            *,
            size: int | None = None,
            fill_value: ArrayLike | None = None,
        ) -> Array:
            """Compute the result; the function's own docstring describes it."""
            ...


_DOC = """{summary}, sorted and without repetition.

    Args:
        ar1: array, flattened.
        ar2: array, flattened.
        assume_unique: it saves no time. As in NumPy, `setdiff1d` then keeps the order of ar1, and what repeats.
        size: the number of results; required for traced values.
        fill_value: value that fills up to `size`; by default the least of the result, or 0 where the order is kept.

    Returns:
        A one-dimensional array of the common dtype; of that of ar1 from `setdiff1d`.

    Raises:
        ConcretizationError: for traced arrays without `size`.

    >>> fnp.{name}(fnp.asarray([3, 1, 2]), fnp.asarray([3, 5])).tolist()
    {value}
    """


def _operands(x: Any, y: Any) -> list[Any]:
    """Return two arrays; of a Python int that the integers beside it cannot hold, one in a dtype that can."""
    sides = (x, y), (y, x)
    wide = lambda v, w: asarray([v]).reshape(()) if promotion.beyond(v, w) else asarray(v)
    return [v if promotion.is_array(v) else wide(v, w) for v, w in sides]


def _two(ar1: Any, ar2: Any) -> list[Any]:
    pair = promotion.promote(*_operands(ar1, ar2))
    return [structural.reshape(a, shape=(aval_of(a).size,)) for a in pair]


def _known(x: Any, what: str) -> np.ndarray[Any, Any]:
    """Return the values of an array; raise where they are traced, since the size of the result depends on them."""
    host = known(x)
    if host is None:
        raise no_size(what, x)
    return host


def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """Union of two arrays, sorted and without repetition.

    Args:
        ar1: array, flattened.
        ar2: array, flattened.
        size: the number of results; required for traced values.
        fill_value: value that fills up to `size`; by default the least of the result.

    Returns:
        A one-dimensional array of the common dtype.

    Raises:
        ConcretizationError: for traced arrays without `size`.

    >>> fnp.union1d(fnp.asarray([3, 1, 2]), fnp.asarray([3, 5])).tolist()
    [1, 2, 3, 5]
    """
    a, b = _two(ar1, ar2)
    return unique(structural.concatenate(a, b, dimension=0), size=size, fill_value=fill_value)


def _set_function(name: str, selection: Callable[[Any, Any], Any], summary: str, value: str, both: bool) -> SetFunction:
    """Make a function that selects elements: of the first array, or of both."""

    @eager_jit(static=("size", "sized_fill", "in_order"))
    def chosen(a: Any, b: Any, fill: Any, size: int, sized_fill: bool, in_order: bool) -> Any:
        x = structural.concatenate(a, b, dimension=0) if both else a
        n = aval_of(x).size
        if not n:
            return promotion.broadcast(promotion.convert(fill, aval_of(x).dtype), (size,))
        tag = structural.iota(dtype=dtypes.int32, shape=(n,), dimension=0)
        if in_order:
            order, mask = tag, selection(a, b)
        else:
            tag = elementwise.ge(tag, structural.full_like(tag, aval_of(a).size))
            order, new = first_ones([x], n, True, tag if both else None)
            mask = elementwise.and_(new, getitem(selection(a, b), order))
        (places,) = nonzero(mask, size=size, fill_value=n)
        last = structural.full_like(places, n)
        if not sized_fill:  # the least of the result, or 0 where it is empty
            (least,) = nonzero(mask, size=1, fill_value=n)
            places = elementwise.select_n(elementwise.lt(places, last), promotion.broadcast(least, (size,)), places)
        values = getitem(x, getitem(order, places))
        return elementwise.select_n(
            elementwise.lt(places, last),
            promotion.broadcast(promotion.convert(fill, aval_of(x).dtype), (size,)),
            values,
        )

    def function(
        ar1: NestedArrayLike,
        ar2: NestedArrayLike,
        assume_unique: bool = False,
        *,
        size: int | None = None,
        fill_value: ArrayLike | None = None,
    ) -> Array:
        ar1, ar2 = _operands(ar1, ar2)
        a, b = _two(ar1, ar2)
        dtype = aval_of(ar1 if name == "setdiff1d" else a).dtype
        in_order = bool(assume_unique) and name == "setdiff1d"
        if size is None:
            result = getattr(np, name)(_known(a, f"fnp.{name}"), _known(b, f"fnp.{name}"), in_order)
            if not isinstance(a, Tracer) and not isinstance(b, Tracer):
                return asarray(result, dtype)
            size = len(result)
        fill = asarray(0 if fill_value is None else fill_value)
        given_fill = in_order or fill_value is not None
        result = chosen(a, b, fill, size=checked_size(size), sized_fill=given_fill, in_order=in_order)
        return promotion.convert(result, dtype)

    return promotion.named(function, name, _DOC.format(summary=summary, name=name, value=value), __name__)


def _in_one(a: Any, b: Any) -> Any:
    return structural.concatenate(
        elementwise.not_(_isin.inline(a, b, False)), elementwise.not_(_isin.inline(b, a, False)), dimension=0
    )


setdiff1d = _set_function(
    "setdiff1d",
    lambda a, b: elementwise.not_(_isin.inline(a, b, False)),
    "The elements of the first array only",
    "[1, 2]",
    False,
)
setxor1d = _set_function("setxor1d", _in_one, "The elements of just one of two arrays", "[1, 2, 5]", True)
_common = _set_function("intersect1d", lambda a, b: _isin.inline(a, b, False), "The elements of both", "[3]", False)


@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: Literal[False] = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array: ...
@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    return_indices: Literal[True],
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> tuple[Array, Array, Array]: ...
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Any:
    """Intersection of two arrays, sorted and without repetition.

    Args:
        ar1: array, flattened.
        ar2: array, flattened.
        assume_unique: ignored: it would save no time.
        return_indices: return the first position of each in both arrays, too, filled up with the size of the array.
        size: the number of results; required for traced values.
        fill_value: value that fills up to `size`; by default the least of the result.

    Returns:
        A one-dimensional array; with `return_indices` a tuple of it and two arrays of int32 positions.

    Raises:
        ConcretizationError: for traced arrays without `size`.

    >>> fnp.intersect1d(fnp.asarray([3, 1, 2]), fnp.asarray([3, 2, 5])).tolist()
    [2, 3]
    """
    if not return_indices:
        return _common(ar1, ar2, size=size, fill_value=fill_value)
    a, b = _two(ar1, ar2)
    if size is None:
        size = len(np.intersect1d(_known(a, "fnp.intersect1d"), _known(b, "fnp.intersect1d")))
    fill = asarray(0 if fill_value is None else fill_value)
    return tuple(_common_places(a, b, fill, size=checked_size(size), sized_fill=fill_value is not None))


@eager_jit(static=("size", "sized_fill"))
def _common_places(a: Any, b: Any, fill: Any, size: int, sized_fill: bool) -> Any:
    out = []
    for x, y in ((a, b), (b, a)):
        n = aval_of(x).size
        if not n:
            out.append(structural.full((size,), 0, dtypes.default_int()))
            continue
        order, new = first_ones([x], n, True)
        (places,) = nonzero(elementwise.and_(new, getitem(_isin.inline(x, y, False), order)), size=size, fill_value=n)
        full = structural.full_like(places, n)
        out.append(elementwise.select_n(elementwise.lt(places, full), full, getitem(order, places)))
    first, second = out
    n = aval_of(a).size
    fills = promotion.broadcast(promotion.convert(fill, aval_of(a).dtype), (size,))
    if not n or not size:
        return fills, first, second
    values, there = getitem(a, first), elementwise.lt(first, structural.full_like(first, n))
    if not sized_fill:
        fills = elementwise.select_n(
            promotion.broadcast(getitem(there, 0), (size,)), fills, promotion.broadcast(getitem(values, 0), (size,))
        )
    return elementwise.select_n(there, fills, values), first, second


_METHODS = ("auto", "compare_all", "binary_search", "sort")


def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
    kind: str | None = None,
) -> Array:
    """Return True where elements are among the test elements; NaN never is.

    Args:
        element: array.
        test_elements: array, flattened.
        assume_unique: ignored: it would save no time.
        invert: return True for those that are not.
        method: "compare_all" compares all pairs; "binary_search" (or "sort") sorts the test elements and looks
            each element up; "auto" is "compare_all" for up to 16 test elements and for complex ones.
        kind: NumPy's choice of a method, None, "sort" or "table"; ignored.

    Returns:
        Booleans, of the shape of `element`.

    Raises:
        ArgumentError: for another method, or kind.

    >>> fnp.isin(fnp.asarray([1, 2, 3]), fnp.asarray([2, 5])).tolist()
    [False, True, False]
    """
    if method not in _METHODS:
        raise promotion.error(
            ArgumentError, f"fnp.isin: method={method!r} is unknown", f"use one of {', '.join(_METHODS)}"
        )
    if kind not in (None, "sort", "table"):
        raise promotion.error(ArgumentError, f"fnp.isin: kind={kind!r} is unknown", "leave it out: it is NumPy's")
    element, test = _operands(element, test_elements)
    search = method in _METHODS[2:] or (method == "auto" and aval_of(test).size > 16)
    return _isin(element, test, invert=bool(invert), search=search)


@eager_jit(static=("invert", "search"))
def _isin(element: Any, test: Any, invert: bool, search: bool = True) -> Any:
    x, test = map(plain, promotion.promote(element, test, notify=False))
    shape, n = aval_of(x).shape, aval_of(test).size
    test = structural.reshape(structural.stop_gradient(test), shape=(n,))
    x = structural.stop_gradient(x)
    if not n:
        result = structural.full(shape, False, dtypes.bool_)
    elif search and aval_of(x).dtype.kind != "c":
        (test,) = sort.sort(test, dimension=0, is_stable=False, num_keys=1)
        place = _searchsorted.inline(test, x, "left")
        result = elementwise.eq(getitem(test, (elementwise.min(place, structural.full_like(place, n - 1)),)), x)
    else:
        full = (*shape, n)
        each = structural.broadcast_in_dim(x, shape=full, broadcast_dimensions=tuple(range(len(shape))))
        result = elementwise.eq(each, structural.broadcast_in_dim(test, shape=full, broadcast_dimensions=(len(shape),)))
        result = reductions.reduce_or(result, axes=(len(shape),))
    return elementwise.not_(result) if invert else result
