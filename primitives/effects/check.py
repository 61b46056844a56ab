"""check: a condition that must hold, with a message for when it does not. `ft.checkify` makes a failure a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import core, source_info
from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.core import BatchAxis, NotDefined, Primitive, Tracer, aval_of
from functorch_like.errors import CheckError, ShapeError, UnsupportedError
from functorch_like.primitives import structural


class Message:
    """Message of a failed check.

    Args:
        fill: makes text of the values given to the check.
    """

    __slots__ = ("fill", "source")

    def __init__(self, fill: Callable[..., str]) -> None:
        self.fill, self.source = fill, xla.here()

    def text(self, at: Sequence[int], values: Sequence[Any]) -> str:
        """The message for the element of a map at an index, if there is one."""
        where = f"at mapped index {', '.join(map(str, at))}: " if len(at) else ""
        return where + self.fill(*values)

    def __repr__(self) -> str:
        return "..."


def _shape(pred: ShapedArray, *values: ShapedArray, message: Message, debug: bool) -> tuple[ShapedArray, ...]:
    for v in values:
        if v.shape[: pred.ndim] != pred.shape:
            raise ShapeError(f"{v!r} has not the leading dimensions of {pred!r}", fix="map all or none")
    return ()


def _evaluate(args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    if params["debug"]:
        return []
    for a in args:
        if isinstance(a, Tracer):
            raise core.leak(a, "check")
    holds, *values = map(np.asarray, args)
    if not holds.all():
        at = tuple(int(i) for i in np.argwhere(~holds)[0])
        message: Message = params["message"]
        text = message.text(at, [v[at] for v in values])
        raise CheckError(text, at=str(source_info.user_line(message.source) or ""))
    return []


def _lower(e: Any, *operands: Any, message: Message, debug: bool) -> list[Any]:
    if not debug:
        raise UnsupportedError(
            "compiled code cannot raise an error where a check fails",
            fix="make the error a value before compiling: err, out = jit(checkify.checkify(f))(...); err.throw()",
            at=str(source_info.user_line(message.source) or ""),
        )
    return []


def _batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    whole = [
        structural.widen(_array(a), axis.size) if d is None else structural.move(a, d, 0)
        for a, d in zip(args, dims, strict=True)
    ]
    return check(*whole, **params), []


def _array(x: Any) -> Any:
    return x if isinstance(x, (core.ArrayImpl, Tracer)) else np.asarray(x, aval_of(x).dtype)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    return check(*primals, **params), []


#: Operands are the condition, with an axis for each map around it, and values for the message, with these axes first.
check = Primitive(
    "check",
    shape=_shape,
    ref=NotDefined("a check computes nothing; tests/effects/test_checkify.py shows its effects"),
    lower=_lower,
    jvp=_jvp,
    transpose=lambda cts, args, **_: [None for _ in args],
    batch=_batch,
    samples=list,
    evaluate=_evaluate,
    effects=lambda **_: frozenset(["unordered"]),
    multiple_results=True,
)
