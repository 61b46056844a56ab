"""Warning where a NumPy array of 64 bits widens a narrower array.

Dtypes are promoted in `dtypes.py`, by rules independent of NumPy: a float32 array and a float64 one give float64. The
user may not have chosen float64, which is the default of NumPy, pandas and scikit-learn.
"""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes, source_info
from functorch_like.avals import ShapedArray
from functorch_like.backends import promotion
from functorch_like.backends.xla import events
from functorch_like.caches import known
from functorch_like.core import state, transform_stack
from functorch_like.errors import DtypeError, FtError, WideningWarning
from functorch_like.ir.dtype_origins import origin

#: The user's lines for which a warning was issued; forgotten with what was traced.
_WARNED: set[tuple[str, int]] = known(set())


def notice(operands: Sequence[Any], avals: Sequence[ShapedArray], dtype: np.dtype[Any]) -> None:
    """Issue a notice of a promotion to 64 bits that only NumPy's dtypes cause, where narrower operands are not NumPy's.

    Raises:
        DtypeError: where `backends.promotion.widening` is "raise".
    """
    if dtypes.default_float() == dtypes.float64 or (promotion.widening == "allow" and not events.has_listeners()):
        return
    strong = [(a, origin(x)) for x, a in zip(operands, avals, strict=True) if not a.weak_type]
    wide = [(a, text) for a, text in strong if dtypes.real_part(a.dtype) == dtypes.float64]
    narrow = [a for a, text in strong if dtypes.is_narrow(a.dtype) and not text]
    if narrow and wide and all(text for _, text in wide):
        _issue(_error(avals, narrow[0], *wide[0], dtype))


def _error(
    avals: Sequence[ShapedArray], narrow: ShapedArray, wide: ShapedArray, text: str, dtype: np.dtype[Any]
) -> DtypeError:
    target = dtypes.complex64 if dtypes.is_complex(wide.dtype) else dtypes.real_part(narrow.dtype)
    return DtypeError(
        f"the {wide.dtype.name} operand, {text}, widens {narrow.dtype.name} to {dtype.name}",
        operation=f"{_called()}({', '.join(map(repr, avals))})",
        chain=transform_stack(state.trace),
        at=str(source_info.user_line(state.source) or ""),
        fix=f"convert it where it comes in, X.astype({target.name!r}), to stay in {narrow.dtype.name}; or say that 64 "
        f"bits are meant: fnp.asarray(X, {wide.dtype.name!r}), or ft.set_default_dtype('float64') for all. "
        "ft.backends.promotion.widening = 'allow' ends these warnings, 'raise' makes errors of them",
    )


def _issue(error: FtError) -> None:
    """Raise the error, or warn with its text: once for each of the user's lines."""
    events.emit("widen", error.operation, why=f"{error.reason}, at {error.at}")
    rule = promotion.widening
    if rule == "raise":
        raise error
    line = source_info.user_line(state.source)
    place = ("functorch_like", 0) if line is None else (line.file, line.line)
    if rule == "warn" and place not in _WARNED:
        warnings.warn_explicit(str(error), WideningWarning, *place)
        _WARNED.add(place)  # not before: the warning may be an error, which is raised each time


#: Wrappers of the package, and the variables in which they hold the wrapped functions, or the names of these.
_WRAPPERS = {
    "boundary": ("fun",),
    "function": ("name",),
    "_as_ufunc": ("function",),
    "method": ("function",),
    "<lambda>": ("function", "body"),
}


def _called() -> str:
    """Return the name of the package's function that the user's line calls, also through a library such as pandas."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    name = ""
    while frame is not None and not source_info.is_users(frame.f_code.co_filename):
        if source_info.is_ours(frame.f_code.co_filename):
            name = _name(frame) or name
        frame = frame.f_back
    return name


def _name(frame: types.FrameType) -> str:
    """Return the user's name of the function of a frame; "" where it has none."""
    name = frame.f_code.co_name
    if name in _WRAPPERS:
        held = next((frame.f_locals[v] for v in _WRAPPERS[name] if v in frame.f_locals), "")
        name = held if isinstance(held, str) else getattr(held, "__name__", "")
    return "" if name in _WRAPPERS else name.removeprefix("_")
