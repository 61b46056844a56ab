"""Conversions of values that are being differentiated to numbers of Python or to NumPy: derivatives would be lost."""

from __future__ import annotations

from typing import Any

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import Trace, transform_stack
from functorch_like.errors import (
    ConcretizationError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
)

_CONSTANT = "say that its derivative is not wanted: lax.stop_gradient(x) first; or "
_DERIVATIVE = {
    "numpy.asarray": "use functorch_like.numpy in the place of numpy, which keeps derivatives (fnp.exp, fnp.stack, "
    "x.at[i].set(y)); or, if its derivative is not wanted, lax.stop_gradient(x) first",
    "float": _CONSTANT + "keep computing with the array itself, with fnp.exp for math.exp",
}

#: The errors of conversions, where they have one of their own.
KINDS: dict[str, type[ConcretizationError]] = {
    "bool": TracerBoolConversionError,
    "index": TracerIntegerConversionError,
    "numpy.asarray": TracerArrayConversionError,
}


def lost(aval: ShapedArray, what: str, trace: Trace, at: Any) -> ConcretizationError:
    """The error for a conversion to a Python number, or to NumPy, of a value that is being differentiated."""
    return KINDS.get(what, ConcretizationError)(
        f"a {aval!r} that is being differentiated would lose its derivative",
        operation=f"{what}({aval!r})",
        chain=transform_stack(trace),
        at=str(at or ""),
        fix=_DERIVATIVE.get(what, _CONSTANT + "keep computing with the array itself"),
    )


def loses_derivative(what: str, aval: ShapedArray) -> bool:
    """Return True where a conversion could lose a derivative; bool() and int() do not, since theirs is zero."""
    return what not in ("bool", "int", "index") and dtypes.is_inexact(aval.dtype)
