"""Eager calls of cheap primitives and functions: NumPy computes the first ones, if its results equal XLA's bit for bit.

A notebook, and a derivative without jit, apply hundreds of operations to many shapes, most of them a few times.
Compiling an operation takes 10 to 100 ms, and NumPy takes microseconds. So it is compiled for a signature after
`FIRST_CALLS` calls with it, for functions that users call after `FIRST_CALLS_OF_USERS`; from then on C++ runs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.backends import compilation, xla
from functorch_like.backends.xla import arrays, client, counters, events
from functorch_like.compiler.inspection import INSPECTED
from functorch_like.compiler.placement import device_for
from functorch_like.core import ArrayImpl, Primitive, abstract_eval, aval_of
from functorch_like.ir.jaxpr import Equation, Jaxpr, Literal
from functorch_like.primitives.elementwise.arithmetic import abs as abs_
from functorch_like.primitives.elementwise.arithmetic import add, mul, neg, sub
from functorch_like.primitives.elementwise.conversion import convert_element_type

#: Calls with one signature that NumPy computes; 0 compiles at once. Set for tests and measurements.
FIRST_CALLS = xla.config("first_calls_in_numpy", 32, in_trace_key=False)
#: Those of a function that users call. Half of the programs that a library makes while it starts are called once or
#: twice, and few 3 to 30 times. Benchmarks warm up with a few calls; the compilation is to be among these.
FIRST_CALLS_OF_USERS = 2
#: Largest number of elements of an operand or result. For more, XLA's threads are worth a compilation.
_MOST_ELEMENTS = 2**14
_MOST_SIGNATURES = 1024
#: Most equations of a function that NumPy computes, one after the other.
_MOST_EQUATIONS = 32
#: Operations that NumPy has to the bit, and that round. A change of sign counts: XLA makes `-(x - y)` to `y - x`.
_ROUNDING = add, sub, mul, neg, convert_element_type


def for_primitive(prim: Primitive, params: dict[str, Any]) -> HostCalls | None:
    """Return the `HostCalls` of a primitive, or None for one that XLA alone computes.

    Results of data movement are equal for all of NumPy's own dtypes. Results of arithmetic, comparison and selection
    are equal for real numbers, if the primitive is `exact`.
    """
    if client.CPU_ASYNC:  # an asynchronous call cannot wait for operands
        return None
    kinds = _kinds(prim)
    return HostCalls(prim, params, kinds) if kinds else None


def for_function(jaxpr: Jaxpr, consts: Sequence[Any], device: Any) -> HostProgram | None:
    """Return the `HostProgram` of an eager function, or None for one that XLA computes.

    Args:
        jaxpr: its first inputs are `consts`, the others the arguments.
        consts: arrays.
        device: where the results are to be: a device, or a `Partitioning`.
    """
    if client.CPU_ASYNC or not FIRST_CALLS.value or compilation.tiers == "off":
        return None
    if not _is_cpu(device) or len(jaxpr.equations) > _MOST_EQUATIONS:
        return None
    if not all(_computes(e) for e in jaxpr.equations) or not all(_is_small(a) for a in jaxpr.out_avals):
        return None
    return HostProgram(jaxpr, consts, device) if _rounds_once(jaxpr) and _keeps_signs(jaxpr) else None


def _kinds(prim: Primitive) -> str:
    """Return NumPy's kind letters of the dtypes for which NumPy computes a primitive with XLA's bits."""
    if not prim.builtin or prim.multiple_results:
        return ""
    return "biufc" if prim.kind == "movement" else "biuf" if prim.exact else ""


def _computes(e: Equation) -> bool:
    kinds = _kinds(e.prim)
    return bool(kinds) and _takes(kinds, [v.aval for v in (*e.inputs, *e.outputs)])


def _takes(kinds: str, avals: Sequence[ShapedArray]) -> bool:
    """Return True for small operands and results of dtypes with these kind letters."""
    return all(_is_small(aval) and aval.dtype.kind in kinds for aval in avals)


def _rounds_once(jaxpr: Jaxpr) -> bool:
    """Return True if no float that was rounded enters an operation that rounds, and none has a literal 0.

    XLA may round a product and the sum of it once, fold `x * 3 * 5`, and leave `x + 0` out, which changes -0.
    """
    refused: set[Any] = set()  # floats that were rounded, and what moves zeros of literals
    for e in jaxpr.equations:
        (out,) = e.outputs
        rounds = e.prim in _ROUNDING and e.inputs[0].aval.dtype.kind == "f"
        after = any(not v.value.all() if type(v) is Literal else v in refused for v in e.inputs)
        if rounds and after:
            return False
        if rounds or after:
            refused.add(out)
    return True


def _keeps_signs(jaxpr: Jaxpr) -> bool:
    """Return False if XLA may change signs of zeros or of integers that overflow.

    It makes a choice of a float's product with a converted boolean: 0 for `False * -2.0`. It leaves absolute values of
    squares and of absolute values out, which are negative if they overflow.
    """
    masks: set[Any] = set()  # converted booleans, moved or not
    for e in jaxpr.equations:
        (out,) = e.outputs
        kind = e.inputs[0].aval.dtype.kind if e.inputs else ""
        if e.prim is abs_ and kind == "i" and len(jaxpr.equations) > 1:
            return False
        of_masks = any(type(v) is not Literal and v in masks for v in e.inputs)
        if e.prim is mul and kind == "f" and of_masks:
            return False
        if (e.prim is convert_element_type and kind == "b") or (e.prim.kind == "movement" and of_masks):
            masks.add(out)
    return True


def _is_small(aval: ShapedArray) -> bool:
    return aval.size <= _MOST_ELEMENTS and aval.dtype.isbuiltin == 1


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
        if not _takes(self._kinds, (*avals, out)):
            return None
        device, places = device_for(args), _places(args)
        if not _is_cpu(device) or len(places) > 1:
            return None
        result = computed(self._prim, self._params, [_read(x, a) for x, a in zip(args, avals, strict=True)], out)
        if result is None:
            return None
        if len(self._counts) >= _MOST_SIGNATURES:
            self._counts.clear()
        self._counts[avals] = count + 1
        counters.computed_by_numpy += 1
        events.emit("numpy", self._prim.name)
        return arrays.computed(result, out, device, bool(places))


class HostProgram:
    """The first calls of an eager function of cheap operations with one signature.

    Args:
        jaxpr: its first inputs are `consts`, the others the arguments.
        consts: arrays.
        device: the device that its results are on.
    """

    __slots__ = ("_calls", "_device", "consts", "jaxpr")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any], device: Any) -> None:
        self.jaxpr, self.consts, self._device = jaxpr, consts, device
        self._calls = 0

    def run(self, args: Sequence[Any]) -> list[Any] | None:
        """Return the results of a call; None if XLA is to compute it, and all later ones."""
        if self._calls >= min(FIRST_CALLS.value, FIRST_CALLS_OF_USERS) or INSPECTED.value is not None:
            return None
        self._calls += 1
        jaxpr, values = self.jaxpr, {}
        leaves = [*self.consts, *args]
        places = _places(leaves)
        if len(places) > 1:
            return None
        for var, x in zip(jaxpr.inputs, leaves, strict=True):
            host = _read_any(x)
            if host is None:
                return None
            with np.errstate(all="ignore"):  # a number may be infinite in the narrower dtype of an array
                values[var] = host if host.dtype == var.aval.dtype else host.astype(var.aval.dtype)
        read = lambda atom: atom.value if type(atom) is Literal else values[atom]
        for e in jaxpr.equations:
            (out,) = e.outputs
            result = computed(e.prim, e.params, [read(v) for v in e.inputs], out.aval)
            if result is None:
                return None
            values[out] = result
        counters.computed_by_numpy += 1
        return [
            arrays.computed(read(v), aval, self._device, bool(places))
            for v, aval in zip(jaxpr.outputs, jaxpr.out_avals, strict=True)
        ]


def computed(
    prim: Primitive, params: dict[str, Any], operands: list[np.ndarray[Any, Any]], out: ShapedArray
) -> np.ndarray[Any, Any] | None:
    """Return the result of the `ref` rule; None if XLA's may differ, or if the rule raises."""
    with np.errstate(all="ignore"):
        try:
            result = np.asarray(prim.ref(*operands, **params))
        except Exception:
            return None
    if prim.kind != "movement" and not all(map(_is_usual, (*operands, result))):
        return None
    return result if result.dtype == out.dtype and result.shape == out.shape else None


def _is_cpu(device: Any) -> bool:
    return type(device) is xla.Device and device.platform == "cpu"


def _places(args: Sequence[Any]) -> set[Any]:
    """Return the devices to which arrays on one device are committed."""
    bound = (x for x in args if type(x) is ArrayImpl and x._committed and type(x._sharding) is xla.OneDevice)
    return {x._sharding._device for x in bound}


def _read_any(x: Any) -> np.ndarray[Any, Any] | None:
    """Return an argument's value; None for one that is deleted, or not on one device."""
    if _is_plain(x):
        return arrays.read(x) if type(x) is ArrayImpl else np.asarray(x)
    return np.asarray(x) if type(x) in (bool, int, float, complex) else None


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
