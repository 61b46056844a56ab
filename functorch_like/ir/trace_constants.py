"""Arrays that a traced function makes of values of the host, as `fnp.asarray(0.5)` does: constants of its program.

Python may read such an array, since it has a value. Where an operation takes it, it is a literal of the jaxpr, which
XLA folds and calls do not pass. Arrays from outside of the function are inputs: one program serves all their values.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.backends import xla
from functorch_like.core import state

#: Values of up to this many elements are written into the jaxpr; larger ones become inputs.
LITERAL_SIZE = 64

#: Values of arrays by the identity of the array (arrays have no hash); freed arrays are removed.
_VALUES: dict[int, tuple[weakref.ref[Any], np.ndarray[Any, Any]]] = {}


def array_of(host: np.ndarray[Any, Any], *, weak_type: bool = False) -> Any:
    """Return a value of the host as an array on the default device, free to move: a constant while one traces."""
    array = xla.device_put(host, weak_type=weak_type)
    if state.trace.staging and is_literal(host) and not (weak_type and host.ndim):
        key, value = id(array), np.array(host)
        value.flags.writeable = False
        _VALUES[key] = weakref.ref(array, lambda _: _VALUES.pop(key, None)), value
    return array


def value_of(array: Any) -> np.ndarray[Any, Any] | None:
    """Return the value that `array_of` has made an array of; None for another array."""
    entry = _VALUES.get(id(array)) if _VALUES else None
    return entry[1] if entry is not None and entry[0]() is array else None


def is_literal(host: np.ndarray[Any, Any]) -> bool:
    """Return True for a value that is written into the jaxpr.

    Where 64-bit arrays may be narrowed, the jaxpr holds none of rank above 0: they would be narrowed when it runs.
    """
    return host.size <= LITERAL_SIZE and not (host.ndim and dtypes.may_be_narrowed(host.dtype))
