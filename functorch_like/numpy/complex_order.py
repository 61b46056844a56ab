"""The order of complex numbers, NumPy's: by the real parts, then by the imaginary ones.

NaN comes last: first the numbers whose imaginary part alone is NaN, then those whose real part is, then those of which
both are. Extremes are the first NaN where there is one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ShapeError
from functorch_like.numpy import promotion as P
from functorch_like.numpy.axes import axes_of, axis_of
from functorch_like.primitives.elementwise import names as E
from functorch_like.primitives.indexing.gather_and_scatter_add import along
from functorch_like.primitives.ordering import sort as sorting
from functorch_like.primitives.reductions import reductions as R
from functorch_like.primitives.structural import data_movement as S

#: Below and above all complex numbers.
LOWEST, HIGHEST = complex(-math.inf, -math.inf), complex(math.inf, math.inf)


def lowest(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return the number below all others of a real or complex dtype."""
    return np.asarray(LOWEST, dtype) if dtype.kind == "c" else R.lowest(dtype)


def highest(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return the number above all others of a real or complex dtype."""
    return np.asarray(HIGHEST, dtype) if dtype.kind == "c" else R.highest(dtype)


def _keys(x: Any) -> tuple[Any, ...]:
    """Real arrays by which complex numbers are compared, the most important first."""
    parts = E.real(x), E.imag(x)
    missing = [E.ne(part, part) for part in parts]
    return *missing, *(E.select_n(m, part, P.like(part, 0)) for m, part in zip(missing, parts, strict=True))


def less(x: Any, y: Any) -> Any:
    """Return where x comes before y in a sorted array; both are complex and of one shape and dtype."""
    out = None
    for a, b in reversed(list(zip(_keys(x), _keys(y), strict=True))):
        below = E.lt(a, b)
        out = below if out is None else E.or_(below, E.and_(E.eq(a, b), out))
    return out


def extreme(x: Any, y: Any, greatest: bool, skip: bool = False) -> Any:
    """Return the greater or the lesser of two, element by element; the first NaN, or, with `skip`, rather no NaN.

    Equal numbers share the derivative evenly.
    """
    nan_x, nan_y = E.ne(x, x), E.ne(y, y)
    beaten = less(x, y) if greatest else less(y, x)
    first, second = (nan_y, nan_x) if skip else (nan_x, nan_y)
    chosen = E.select_n(E.or_(first, E.not_(E.or_(second, beaten))), y, x)
    half = P.like(x, 0.5)
    shared = E.add(E.mul(x, half), E.mul(y, half))
    return E.select_n(E.and_(E.eq(x, y), E.is_finite(E.abs(x))), chosen, shared)


def index(x: Any, axis: int, greatest: bool) -> Any:
    """Return the positions of the first extreme elements along an axis; NaN counts as extreme."""
    fold, choose = (R.reduce_max, R.lowest) if greatest else (R.reduce_min, R.highest)
    shape = aval_of(x).shape
    d = axis_of(axis, len(shape), "argmax" if greatest else "argmin")
    others = tuple(k for k in range(len(shape)) if k != d)
    back = lambda v: S.broadcast_in_dim(v, shape=shape, broadcast_dimensions=others)
    x = S.stop_gradient(x)
    real, imag, missing = E.real(x), E.imag(x), E.ne(x, x)
    ahead = E.eq(real, back(fold(real, axes=(d,))))
    none = S.full(shape, choose(aval_of(imag).dtype)[()], aval_of(imag).dtype)
    rest = E.select_n(ahead, none, imag)
    ahead = E.and_(ahead, E.eq(rest, back(fold(rest, axes=(d,)))))
    ahead = E.select_n(back(R.reduce_or(missing, axes=(d,))), ahead, missing)
    return R.argmax(ahead, axes=(d,), index_dtype=dtypes.default_int())


def reduced(x: Any, axis: Any, greatest: bool, name: str) -> Any:
    """Return the greatest or least element over axes; of equal ones the first has the derivative."""
    shape = aval_of(x).shape
    axes = axes_of(axis, len(shape), f"fnp.{name}")
    others = tuple(d for d in range(len(shape)) if d not in axes)
    kept, n = tuple(shape[d] for d in others), math.prod(shape[d] for d in axes)
    if not axes:
        return x
    if not n:
        return S.full(kept, LOWEST if greatest else HIGHEST, aval_of(x).dtype)
    x = S.reshape(S.transpose(x, permutation=(*others, *axes)), shape=(*kept, n))
    at = S.reshape(index(x, len(kept), greatest), shape=(*kept, 1))
    return S.reshape(along(x, at, len(kept)), shape=kept)


def median(x: Any, axis: Any, keepdims: bool, name: str) -> Any:
    """Return the mean of the middle elements over axes; NaN where there is one."""
    shape = aval_of(x).shape
    axes = axes_of(axis, len(shape), f"fnp.{name}")
    others = tuple(d for d in range(len(shape)) if d not in axes)
    kept, n = tuple(shape[d] for d in others), math.prod(shape[d] for d in axes)
    if not n:
        raise P.error(ShapeError, f"fnp.{name} of {aval_of(x)!r} over empty axes {axes}", "there is no middle element")
    x = S.reshape(S.transpose(x, permutation=(*others, *axes)), shape=(*kept, n))
    (x,) = sorting.sort(x, dimension=len(kept), is_stable=True, num_keys=1)
    zeros = (0,) * len(kept)
    at = lambda i: S.reshape(
        S.slice(x, start_indices=(*zeros, i), limit_indices=(*kept, i + 1), strides=None), shape=kept
    )
    half, last = P.like(at(0), 0.5), at(n - 1)
    middle = at(n // 2) if n % 2 else E.add(E.mul(at(n // 2 - 1), half), E.mul(at(n // 2), half))
    out = E.select_n(E.ne(last, last), middle, last)
    return S.reshape(out, shape=tuple(1 if d in axes else m for d, m in enumerate(shape))) if keepdims else out
