"""Arrays that a traced function makes of values of the host, as `fnp.asarray(0.5)` does: constants of its program.

Python may read such an array, since it has a value. Where an operation takes it, it is a literal of the jaxpr, which
XLA folds and calls do not pass. Arrays from outside of the function are inputs: one program serves all their values.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.backends import xla
from functorch_like.backends.xla import named_sharding
from functorch_like.backends.xla.mesh import default_mesh
from functorch_like.backends.xla.partition_spec import PartitionSpec
from functorch_like.core import state
from functorch_like.ir.array_notes import ArrayNotes

#: Values of up to this many elements are written into the jaxpr; larger ones become inputs.
LITERAL_SIZE = 64

#: Values of arrays that are constants, each with its number.
_VALUES: ArrayNotes[tuple[int, np.ndarray[Any, Any]]] = ArrayNotes()
_count = itertools.count()


class _State(threading.local):
    """The first number of those that are constants in this thread."""

    first = 0


_state = _State()


def array_of(host: np.ndarray[Any, Any], device: Any = None, *, weak_type: bool = False) -> Any:
    """Return `xla.device_put` of a value of the host: without a device, a constant of the program that is traced."""
    array = xla.device_put(host, device, weak_type=weak_type)
    if device is None and state.trace.staging and is_literal(host) and not (weak_type and host.ndim):
        value = np.array(host)
        value.flags.writeable = False
        _VALUES.add(array, (next(_count), value))
    return array


def placed(host: np.ndarray[Any, Any], device: Any = None, *, weak_type: bool = False) -> Any:
    """Return `array_of` in a trace or with a device, else an array where programs run by default."""
    if device is not None or state.trace.staging:
        return array_of(host, device, weak_type=weak_type)
    return put_by_default(host, weak_type=weak_type)


def put_by_default(host: np.ndarray[Any, Any], *, weak_type: bool = False) -> Any:
    """Return an array where programs run by default: on a device, or on a mesh."""
    mesh = default_mesh()
    place = None if mesh is None else named_sharding.named(mesh, PartitionSpec())
    return xla.device_put(host, place, weak_type=weak_type)


def value_of(array: Any) -> np.ndarray[Any, Any] | None:
    """Return the value that `array_of` has made an array of; None for another array."""
    note = _VALUES.get(array)
    return note[1] if note is not None and note[0] >= _state.first else None


@contextmanager
def earlier_are_inputs() -> Generator[None]:
    """Take arrays from before this block as arrays from outside, as JAX's `make_jaxpr` does.

    Programs of one function have the same inputs then, whatever was known when its captured values were made.
    """
    before, _state.first = _state.first, next(_count)
    try:
        yield
    finally:
        _state.first = before


def is_literal(host: np.ndarray[Any, Any]) -> bool:
    """Return True for a value that is written into the jaxpr.

    Where 64-bit arrays may be narrowed, the jaxpr holds none of rank above 0: they would be narrowed when it runs.
    """
    return host.size <= LITERAL_SIZE and not (host.ndim and dtypes.may_be_narrowed(host.dtype))
