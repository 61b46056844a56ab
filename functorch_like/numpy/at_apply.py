"""`x.at[idx].apply(func)`: as in NumPy's `ufunc.at`, an element is replaced as often as its position occurs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import Tracer, aval_of
from functorch_like.lax.applying import scatter_apply
from functorch_like.numpy import promotion
from functorch_like.numpy.index_plan import Plan
from functorch_like.numpy.indexing import get
from functorch_like.primitives import structural
from functorch_like.primitives.indexing.dimension_numbers import ScatterDimensionNumbers
from functorch_like.transforms.compile_time_eval import ensure_compile_time_eval


def repeated(x: Any, plan: Plan, mode: str) -> Any:
    """Return each position's index into the raveled x, if one occurs twice or may do so; else None."""
    if not any(item[0] == "arr" and aval_of(plan.values[item[1]]).size != 1 for item in plan.items):
        return None  # slices and single positions
    size = aval_of(x).size
    places = np.arange(size, dtype=np.int32 if size < 2**31 else np.int64).reshape(aval_of(x).shape)
    if any(isinstance(v, Tracer) for v in plan.values):
        return get(places, plan, mode, size)
    with ensure_compile_time_eval():
        flat = np.asarray(get(places, plan, mode, size))
    inside = flat[flat < size]
    return flat if np.unique(inside).size < inside.size else None


def apply_repeatedly(x: Any, places: Any, func: Callable[[Any], Any]) -> Any:
    """Apply `func` at indices of the raveled x, once for each; indices beyond its end are left out."""
    shape, count = aval_of(x).shape, aval_of(places).size
    out = scatter_apply(
        structural.reshape(x, shape=(aval_of(x).size,)),
        structural.reshape(places, shape=(count, 1)),
        _scalar(func, aval_of(x).dtype),
        ScatterDimensionNumbers((), (0,), (0,)),
        update_shape=(count,),
    )
    return structural.reshape(out, shape=shape)


def _scalar(func: Callable[[Any], Any], dtype: Any) -> Callable[[Any], Any]:
    def applied(x: Any) -> Any:
        out = func(x)
        out_dtype = aval_of(out).dtype
        return promotion.convert(out, dtype) if dtypes.is_complex(dtype) or not dtypes.is_complex(out_dtype) else out

    return applied
