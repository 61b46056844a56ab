"""Eager calls of cheap primitives: NumPy computes the first ones, if its result equals XLA's bit for bit.

A derivative without jit applies hundreds of primitives, to many shapes, most of them a few times. Compiling a primitive
takes 15 to 100 ms, and NumPy takes microseconds. So it is compiled for a signature after `FIRST_CALLS` calls with it;
from then on C++ runs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.backends.xla import arrays, client, counters, events
from functorch_like.compiler.placement import device_for
from functorch_like.core import ArrayImpl, Primitive, abstract_eval, aval_of

#: Calls of a primitive with one signature that NumPy computes; 0 compiles at once. Set for tests and measurements.
FIRST_CALLS = xla.config("first_calls_in_numpy", 32, in_trace_key=False)
#: Largest number of elements of an operand or result. For more, XLA's threads are worth a compilation.
_MOST_ELEMENTS = 2**14
_MOST_SIGNATURES = 1024


def for_primitive(prim: Primitive, params: dict[str, Any]) -> HostCalls | None:
    """Return the `HostCalls` of a primitive, or None for one that XLA alone computes.

    Results of data movement are equal for all of NumPy's own dtypes. Results of arithmetic, comparison and selection
    are equal for real numbers, if the primitive is `exact`.
    """
    if not prim.builtin or prim.multiple_results or client.CPU_ASYNC:  # an asynchronous call cannot wait for operands
        return None
    if prim.kind == "movement":
        return HostCalls(prim, params, "biufc")
    return HostCalls(prim, params, "biuf") if prim.exact else None


class HostCalls:
    """The first calls of one primitive with one set of parameters.

    Args:
        prim, params: the primitive and its parameters.
        kinds: NumPy's kind letters of the dtypes that are computed.
    """

    __slots__ = ("_counts", "_kinds", "_params", "_prim")

    def __init__(self, prim: Primitive, params: dict[str, Any], kinds: str) -> None:
        self._prim, self._params, self._kinds = prim, params, kinds
        self._counts: dict[Any, int] = {}

    def __call__(self, args: Sequence[Any]) -> Any:
        """Return the result of a call; None if XLA is to compute it."""
        if not all(map(_is_plain, args)):
            return None
        avals = tuple(map(aval_of, args))
        count = self._counts.get(avals, 0)
        if count >= FIRST_CALLS.value:
            return None
        out: ShapedArray = abstract_eval(self._prim, avals, self._params)
        if not all(self._takes(aval) for aval in (*avals, out)):
            return None
        device = device_for(args)
        places = {x._sharding._device for x in args if type(x) is ArrayImpl and x._committed}
        if type(device) is not xla.Device or device.platform != "cpu" or len(places) > 1:
            return None
        result = self._result([_read(x, aval) for x, aval in zip(args, avals, strict=True)])
        if result is None or result.dtype != out.dtype or result.shape != out.shape:
            return None
        if len(self._counts) >= _MOST_SIGNATURES:
            self._counts.clear()
        self._counts[avals] = count + 1
        counters.computed_by_numpy += 1
        events.emit("numpy", self._prim.name)
        return arrays.computed(result, out, device, bool(places))

    def _result(self, operands: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any] | None:
        """Return the result of the `ref` rule; None if XLA's may differ, or if the rule raises."""
        with np.errstate(all="ignore"):
            try:
                result = np.asarray(self._prim.ref(*operands, **self._params))
            except Exception:
                return None
        if self._prim.kind != "movement" and not all(map(_is_usual, (*operands, result))):
            return None
        return result

    def _takes(self, aval: ShapedArray) -> bool:
        return aval.size <= _MOST_ELEMENTS and aval.dtype.kind in self._kinds and aval.dtype.isbuiltin == 1


def _is_usual(x: np.ndarray[Any, Any]) -> bool:
    """Return False for floats with a NaN, a subnormal number or the smallest normal number.

    The sign and payload of a NaN depend on the order in which a processor takes the operands. XLA's programs run with
    subnormal numbers as zeros on CPUs.
    """
    if x.dtype.kind != "f":
        return True
    size = np.abs(x)
    return bool(((size > np.finfo(x.dtype).tiny) | (size == 0)).all())


def _is_plain(x: Any) -> bool:
    """Return True for an array on one device or a NumPy array; Python numbers have no fixed dtype."""
    if type(x) is ArrayImpl:
        return type(x._sharding) is xla.OneDevice and not x.is_deleted()
    return isinstance(x, (np.ndarray, np.generic)) and x.dtype.isnative


def _read(x: Any, aval: ShapedArray) -> np.ndarray[Any, Any]:
    return arrays.read(x) if type(x) is ArrayImpl else np.asarray(x, aval.dtype)
