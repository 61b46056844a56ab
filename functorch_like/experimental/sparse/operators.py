"""Operators of sparse arrays, and `astype`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.calling import api_boundary as boundary
from functorch_like.core import aval_of
from functorch_like.experimental.sparse.bcoo import BCOO
from functorch_like.experimental.sparse.elementwise import map_stored
from functorch_like.experimental.sparse.format import METHODS, JAXSparse, method
from functorch_like.experimental.sparse.sparsify import sparsify
from functorch_like.numpy import promotion


@functools.cache
def _function(name: str) -> Callable[..., Any]:
    return boundary.public(sparsify(getattr(fnp, name)))


def apply(name: str, *args: Any) -> Any:
    """Return a function of NumPy's applied to sparse arrays; NotImplemented for operands that are not arrays."""
    for x in args:
        if not (isinstance(x, (JAXSparse, np.generic, bool, int, float, complex)) or promotion.is_array(x)):
            return NotImplemented
    return _function(name)(*args)


METHODS["apply"] = apply


@method
def indexed(mat: JAXSparse, item: Any) -> Any:
    """Return `mat[item]` for an index with arrays, by the rules of dense arrays."""
    return sparsify(lambda x, at: x[at])(mat, item)


@method
def converted(mat: BCOO, dtype: Any) -> BCOO:
    """Return the array with its values converted."""
    new = dtypes.as_dtype(dtype)
    return mat if aval_of(mat.data).dtype == new else map_stored(lambda d: d.astype(new), mat, linear=True)
