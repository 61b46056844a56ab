"""Refusal of NumPy's masked arrays that have masked elements: arrays of this package have no mask.

C++ reads a masked array as the plain array that it derives from, without its mask. So the class is registered as a
pytree node as soon as NumPy loads `numpy.ma`: flattening the arguments of a call then calls `_flatten`. Plain arrays
cost nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import source_info
from functorch_like.backends import xla
from functorch_like.errors import DtypeError
from functorch_like.on_import import on_import


def unmasked(x: Any) -> Any:
    """Return the data of a masked array without masked elements, and other NumPy arrays as they are.

    Args:
        x: array of any subclass of `numpy.ndarray`.

    Raises:
        DtypeError: for a masked array with masked elements.
    """
    ma = sys.modules.get("numpy.ma")
    if ma is None or not isinstance(x, ma.MaskedArray):
        return x
    hidden = int(np.sum(ma.getmaskarray(x)))
    if hidden:
        raise DtypeError(
            f"{hidden} of {x.size} elements of a NumPy masked array are masked, and arrays here have no mask",
            fix="put a value in their place with x.filled(value), leave them out with x.compressed(), or pass x.data "
            "and the mask as two arrays (fnp.where, where= of reductions)",
            at=str(source_info.user_line() or ""),
        )
    return np.asarray(x)


def _flatten(x: Any) -> tuple[tuple[Any], None]:
    try:
        return (unmasked(x),), None
    except DtypeError as e:
        raise e.with_traceback(None) from None


def _unflatten(_: None, children: Sequence[Any]) -> Any:
    (data,) = children
    return data


def _register(ma: Any) -> None:
    for kind in (ma.MaskedArray, type(ma.masked)):
        xla.register_node(kind, _flatten, _unflatten)


on_import("numpy.ma", _register)
