"""NumPy's order of complex numbers: by the real parts, then by the imaginary ones.

NaN comes last: first the numbers whose imaginary part alone is NaN, then those whose real part is, then those with
both. If there is a NaN, the extreme is the first one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import axes_of, axis_of
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.indexing.gather_and_scatter_add import along
from functorch_like.primitives.ordering import sort
from functorch_like.primitives.reductions import reductions

#: Below and above all complex numbers.
LOWEST, HIGHEST = complex(-math.inf, -math.inf), complex(math.inf, math.inf)


def lowest(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return the number below all others of a real or complex dtype."""
    return np.asarray(LOWEST, dtype) if dtype.kind == "c" else reductions.lowest(dtype)


def highest(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return the number above all others of a real or complex dtype."""
    return np.asarray(HIGHEST, dtype) if dtype.kind == "c" else reductions.highest(dtype)


def _keys(x: Any) -> tuple[Any, ...]:
    """Return the real arrays by which complex numbers are compared, the most important first."""
    parts = elementwise.real(x), elementwise.imag(x)
    missing = [elementwise.ne(part, part) for part in parts]
    return *missing, *(
        elementwise.select_n(m, part, promotion.like(part, 0)) for m, part in zip(missing, parts, strict=True)
    )


def less(x: Any, y: Any) -> Any:
    """Return where x comes before y in a sorted array; both are complex and of one shape and dtype."""
    out = None
    for a, b in reversed(list(zip(_keys(x), _keys(y), strict=True))):
        below = elementwise.lt(a, b)
        out = below if out is None else elementwise.or_(below, elementwise.and_(elementwise.eq(a, b), out))
    return out


def extreme(x: Any, y: Any, greatest: bool, skip: bool = False) -> Any:
    """Return the greater or the lesser of two, element by element; where one is NaN, the NaN, or with `skip` the other.

    Of two NaN the first is returned. Equal numbers share the derivative evenly.
    """
    nan_x, nan_y = elementwise.ne(x, x), elementwise.ne(y, y)
    beaten = less(x, y) if greatest else less(y, x)
    first, second = (nan_y, nan_x) if skip else (nan_x, nan_y)
    chosen = elementwise.select_n(elementwise.or_(first, elementwise.not_(elementwise.or_(second, beaten))), y, x)
    half = promotion.like(x, 0.5)
    shared = elementwise.add(elementwise.mul(x, half), elementwise.mul(y, half))
    return elementwise.select_n(
        elementwise.and_(elementwise.eq(x, y), elementwise.is_finite(elementwise.abs(x))), chosen, shared
    )


def index(x: Any, axis: int, greatest: bool) -> Any:
    """Return the positions of the first extreme elements along an axis; NaN counts as extreme."""
    fold, choose = (
        (reductions.reduce_max, reductions.lowest) if greatest else (reductions.reduce_min, reductions.highest)
    )
    shape = aval_of(x).shape
    d = axis_of(axis, len(shape), "argmax" if greatest else "argmin")
    others = tuple(k for k in range(len(shape)) if k != d)
    back = lambda v: structural.broadcast_in_dim(v, shape=shape, broadcast_dimensions=others)
    x = structural.materialize(structural.stop_gradient(x))
    real, imag, missing = elementwise.real(x), elementwise.imag(x), elementwise.ne(x, x)
    ahead = elementwise.eq(real, back(fold(real, axes=(d,))))
    none = structural.full(shape, choose(aval_of(imag).dtype)[()], aval_of(imag).dtype)
    rest = elementwise.select_n(ahead, none, imag)
    ahead = elementwise.and_(ahead, elementwise.eq(rest, back(fold(rest, axes=(d,)))))
    ahead = elementwise.select_n(back(reductions.reduce_or(missing, axes=(d,))), ahead, missing)
    return reductions.argmax(ahead, axes=(d,), index_dtype=dtypes.default_int())


def reduced(x: Any, axis: Any, greatest: bool, name: str) -> Any:
    """Return the greatest or least element over axes; of equal ones the first has the derivative."""
    shape = aval_of(x).shape
    axes = axes_of(axis, len(shape), f"fnp.{name}")
    others = tuple(d for d in range(len(shape)) if d not in axes)
    kept, n = tuple(shape[d] for d in others), math.prod(shape[d] for d in axes)
    if not axes:
        return x
    if not n:
        return structural.full(kept, LOWEST if greatest else HIGHEST, aval_of(x).dtype)
    x = structural.reshape(structural.transpose(x, permutation=(*others, *axes)), shape=(*kept, n))
    at = structural.reshape(index(x, len(kept), greatest), shape=(*kept, 1))
    return structural.reshape(along(x, at, len(kept)), shape=kept)


def median(x: Any, axis: Any, keepdims: bool, name: str) -> Any:
    """Return the mean of the middle elements over axes; NaN where there is one."""
    shape = aval_of(x).shape
    axes = axes_of(axis, len(shape), f"fnp.{name}")
    others = tuple(d for d in range(len(shape)) if d not in axes)
    kept, n = tuple(shape[d] for d in others), math.prod(shape[d] for d in axes)
    if not n:
        raise promotion.error(
            ShapeError, f"fnp.{name} of {aval_of(x)!r} over empty axes {axes}", "there is no middle element"
        )
    x = structural.reshape(structural.transpose(x, permutation=(*others, *axes)), shape=(*kept, n))
    (x,) = sort.sort(x, dimension=len(kept), is_stable=True, num_keys=1)
    zeros = (0,) * len(kept)
    at = lambda i: structural.reshape(
        structural.slice(x, start_indices=(*zeros, i), limit_indices=(*kept, i + 1), strides=None), shape=kept
    )
    half, last = promotion.like(at(0), 0.5), at(n - 1)
    middle = (
        at(n // 2)
        if n % 2
        else elementwise.add(elementwise.mul(at(n // 2 - 1), half), elementwise.mul(at(n // 2), half))
    )
    out = elementwise.select_n(elementwise.ne(last, last), middle, last)
    return structural.reshape(out, shape=tuple(1 if d in axes else m for d, m in enumerate(shape))) if keepdims else out
