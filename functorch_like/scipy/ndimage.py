"""Interpolation between the elements of arrays, under SciPy's names."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError, UnsupportedError
from functorch_like.numpy import promotion
from functorch_like.numpy.operands import given
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike

_MODES = ("constant", "nearest", "wrap", "mirror", "reflect", "grid-wrap", "grid-mirror", "grid-constant")
_SAME = {"grid-mirror": "reflect"}


def map_coordinates(
    input: ArrayLike, coordinates: Sequence[ArrayLike], order: int, mode: str = "constant", cval: ArrayLike = 0.0
) -> Array:
    """The values of an array at positions between its elements.

    Args:
        input: array of n dimensions.
        coordinates: n arrays of one shape: positions along each dimension.
        order: 0 takes the nearest element, 1 interpolates linearly.
        mode: the values beyond the ends: "constant" (`cval`), "nearest" (the last element), "wrap" (from the other end,
            which is the same point), "grid-wrap" (the array repeated), "mirror" (reflected at the last element),
            "reflect" or "grid-mirror" (reflected beyond it), "grid-constant" (`cval`, with interpolation up to it).
        cval: value for modes "constant" and "grid-constant".

    Returns:
        An array of the shape of the coordinates and the dtype of the input; integers are rounded.

    Raises:
        UnsupportedError: for other orders.
        ArgumentError: for other modes.
        ShapeError: where there are not n coordinates, or the input is empty.

    >>> ft.scipy.ndimage.map_coordinates(fnp.arange(4.0), [fnp.asarray([0.5, 2.25])], order=1).tolist()
    [0.5, 2.25]
    """
    if operator.index(order) not in (0, 1):
        raise promotion.error(
            UnsupportedError, f"map_coordinates of order {order}: splines need a filter", "use order 0 or 1"
        )
    if mode not in _MODES:
        raise promotion.error(ArgumentError, f"map_coordinates with mode={mode!r}", f"use one of {', '.join(_MODES)}")
    input, cval, *places = given(input, cval, *coordinates)
    aval = aval_of(input)
    if len(places) != aval.ndim or 0 in aval.shape:
        raise promotion.error(
            ShapeError, f"map_coordinates of {aval!r} at {len(places)} coordinates", "give one for each dimension"
        )
    return _map_coordinates(input, cval, places, order=order, mode=_SAME.get(mode, mode))


@eager_jit(static=("order", "mode"))
def _map_coordinates(input: Any, cval: Any, places: Any, order: int, mode: str) -> Any:
    shape, dtype = aval_of(input).shape, aval_of(input).dtype
    places = promotion.align_inexact(*places)
    inside, parts = True, []
    for place, n in zip(places, shape, strict=True):
        if mode == "constant":
            inside = inside & (place >= 0) & (place <= n - 1)
        place = _folded(place, n, mode)
        low = fnp.floor(place + 0.5) if order == 0 else fnp.floor(place)
        index = promotion.convert(low, dtypes.default_int())
        share = place - low
        ends = [(index, 1)] if order == 0 else [(index, 1 - share), (index + 1, share)]
        parts.append([(*_element(i, n, mode), weight) for i, weight in ends])
    total: Any = 0
    kinds = (dtypes.inexact_dtype(dtype), *(aval_of(p).dtype for p in places[:1]))
    wide = dtypes.result_type(*kinds)  # until the end, which converts to the input's dtype
    for corner in itertools.product(*parts):
        value = input[tuple(i for i, _, _ in corner)]
        value = promotion.convert(value, wide)
        for _, there, _ in corner:
            value = value if there is True else fnp.where(there, value, cval)
        total = total + math.prod((weight for _, _, weight in corner), start=value)
    total = fnp.where(inside, total, cval) if inside is not True else total
    total = promotion.broadcast(total, aval_of(places[0]).shape) if places else total
    if dtypes.is_integer(dtype):  # halves away from zero, as in SciPy
        total = fnp.trunc(total + fnp.copysign(0.5, total))
    return promotion.convert(total, dtype)


def _folded(place: Any, n: int, mode: str) -> Any:
    """Return a position inside, for modes that continue the array."""
    if mode == "nearest":
        return fnp.clip(place, 0, n - 1)
    if mode == "wrap":
        beyond = (place < 0) | (place > n - 1)
        return fnp.where(beyond, place % (n - 1), place) if n > 1 else 0 * place
    if mode == "mirror":
        place = fnp.abs(place) % (2 * (n - 1) or 1)
        return (n - 1) - fnp.abs(place - (n - 1)) if n > 1 else 0 * place
    if mode == "reflect":
        place = (place + 0.5) % (2 * n)
        return fnp.clip(n - fnp.abs(place - n) - 0.5, 0, n - 1)
    return place


def _element(i: Any, n: int, mode: str) -> tuple[Any, Any]:
    """Return the index of an element, and whether there is one."""
    if mode == "grid-wrap":
        return i % n, True
    if mode == "grid-constant":
        return fnp.clip(i, 0, n - 1), (i >= 0) & (i < n)
    return fnp.clip(i, 0, n - 1), True
