"""Reductions that leave NaN out."""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.kernels import kernel
from functorch_like.numpy import reductions as N
from functorch_like.numpy import statistics as T
from functorch_like.numpy.axes import hashable
from functorch_like.primitives import elementwise as E
from functorch_like.primitives import reductions as R
from functorch_like.primitives import structure as S

_DOC = """{summary} of the elements that are not NaN{empty}.

    Args:
        a: array.
        axis: int, tuple of ints, or None for all.
        keepdims: keep the reduced axes, with size 1.

    >>> float(fnp.nan{name}(fnp.asarray([1.0, fnp.nan, 3.0])))
    {value}
    """


def _number(x: Any) -> Any:
    return E.eq(x, x)


def _extreme(x: Any, axis: Any, keepdims: bool, row: str) -> Any:
    x = N.plain(x)
    if not dtypes.is_float(aval_of(x).dtype):
        return (N._max if row == "max" else N._min).inline(x, axis, None, keepdims)
    neutral = (R.lowest if row == "max" else R.highest)(aval_of(x).dtype)
    seen = _number(x)
    filled = E.select_n(seen, S.broadcast_in_dim(neutral, shape=aval_of(x).shape, broadcast_dimensions=()), x)
    out = (N._max if row == "max" else N._min).inline(filled, axis, None, keepdims)
    return E.select_n(N._any.inline(seen, axis, keepdims), S.full_like(out, np.nan), out)


def _made(name: str, body: Any, summary: str, value: str, empty: str = "") -> Any:
    body.__name__ = f"nan{name}"
    fast = kernel(static=("axis", "keepdims"))(body)

    def function(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        return fast(a, hashable(axis), bool(keepdims))

    function.__name__ = function.__qualname__ = f"nan{name}"
    function.__doc__ = _DOC.format(summary=summary, name=name, value=value, empty=empty)
    return function


def _nansum(x: Any, axis: Any, keepdims: bool) -> Any:
    x = N.plain(x)
    inexact = dtypes.is_inexact(aval_of(x).dtype)
    return N._sum.inline(x, axis, None, keepdims, None, _number(x) if inexact else None)


def _nanmean(x: Any, axis: Any, keepdims: bool) -> Any:
    x = N.plain(x)
    return T._mean.inline(x, axis, None, keepdims, _number(x))


def _nanvar(x: Any, axis: Any, keepdims: bool) -> Any:
    x = N.plain(x)
    return T._var.inline(x, axis, None, keepdims, 0, _number(x))


nansum = _made("sum", _nansum, "Sum", "4.0")
nanmean = _made("mean", _nanmean, "Mean", "2.0", "; NaN where there are none")
nanvar = _made("var", _nanvar, "Variance", "1.0", "; NaN where there are none")
nanstd = _made(
    "std",
    lambda x, axis, keepdims: E.sqrt(_nanvar(x, axis, keepdims)),
    "Standard deviation",
    "1.0",
    "; NaN where there are none",
)
nanmax = _made(
    "max", lambda x, axis, keepdims: _extreme(x, axis, keepdims, "max"), "Greatest", "3.0", "; NaN where there are none"
)
nanmin = _made(
    "min", lambda x, axis, keepdims: _extreme(x, axis, keepdims, "min"), "Least", "1.0", "; NaN where there are none"
)
