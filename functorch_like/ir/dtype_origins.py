"""Values whose dtype NumPy chose: NumPy arrays, arrays made of them, and results computed from these.

NumPy makes float64 by default. If such a value widens another one, `widening.py` issues a warning with the origin
recorded here. Origins are read while operations are traced; calls of compiled functions cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import ArrayImpl, Tracer
from functorch_like.ir.array_notes import ArrayNotes
from functorch_like.ir.jaxpr import Atom, Equation, Var
from functorch_like.ir.trace_to_jaxpr import StageTracer

#: Descriptions of arrays whose dtype NumPy chose.
_MADE: ArrayNotes[str] = ArrayNotes()


def made(array: Any, text: str = "made of a NumPy array") -> Any:
    """Record that an array has the dtype of the NumPy array that it was made of; return the array."""
    if dtypes.real_part(array.dtype) == dtypes.float64:
        _MADE.add(array, text)
    return array


def follow(operands: Iterable[Any], results: Iterable[Any]) -> None:
    """Record the results of a program that have 64 bits by NumPy alone; at first calls, since C++ runs later ones."""
    arrays = [x for x in operands if type(x) is ArrayImpl or isinstance(x, np.ndarray)]
    wide = [origin(x) for x in arrays if x.ndim and dtypes.real_part(x.dtype) == dtypes.float64]
    if wide and all(wide):
        for x in results:
            made(x, _computed_from(wide[0]))


def _computed_from(text: str) -> str:
    return f"computed from {text.removeprefix('computed from ').removeprefix('made of ')}"


def chosen(x: Any) -> None:
    """Record that the user has named the dtype of a value."""
    x = _innermost(x)
    if type(x) is StageTracer:
        trace: Any = x._trace
        _staged(trace, x._var)
        trace.hosts.pop(x._var, None)
    else:
        _MADE.drop(x)


def origin(x: Any) -> str:
    """Return a description of a value whose dtype NumPy chose; "" for others.

    Arrays of rank 0 count as numbers, which widen nothing.
    """
    x = _innermost(x)
    if type(x) is StageTracer:
        return _staged(x._trace, x._var)
    if isinstance(x, np.ndarray):
        return "a NumPy array" if x.ndim else ""
    return (_MADE.get(x) or "") if type(x) is ArrayImpl else ""


def hosts(values: Iterable[Any]) -> dict[int, str]:
    """Return the positions of the values whose dtype NumPy chose, with their descriptions, for `stage`."""
    return {i: text for i, x in enumerate(values) if (text := origin(x))}


def _innermost(x: Any) -> Any:
    """Return the array inside of tracers of vmap and derivatives, or the `StageTracer`."""
    while isinstance(x, Tracer) and type(x) is not StageTracer:
        x = x.beneath()
    return x


def _staged(trace: Any, var: Var) -> str:
    """Return the `origin` of a variable; follows the equations recorded since the last call."""
    origins, (equations, originals) = trace.hosts, trace.looked
    origins.update((atom, text) for atom, value in trace.originals[originals:] if (text := origin(value)))
    for equation in trace.equations[equations:]:
        origins.update(_computed(equation, origins))
    trace.looked = len(trace.equations), len(trace.originals)
    return origins.get(var, "")


def _computed(equation: Equation, known: dict[Atom, str]) -> dict[Atom, str]:
    """Return the results of an equation whose dtype NumPy alone chose; constants, with an empty text, do not count."""
    operands = [v for v in equation.inputs if isinstance(v, Var) or v in known]
    result: dict[Atom, str] = {}
    for out in equation.outputs:
        alike = [v for v in operands if _width(v) == _width(out) and not v.aval.weak_type]
        text = next(filter(None, (known.get(v) for v in alike)), "")
        # Without operands of its width, a result is a constant only if all operands are.
        if all(v in known for v in (alike if text else operands)):
            result[out] = _computed_from(text) if text else ""
    return result


def _width(atom: Atom) -> Any:
    return dtypes.real_part(atom.aval.dtype)
