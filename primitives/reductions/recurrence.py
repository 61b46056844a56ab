"""recurrence: y[k] = f[k] y[k - 1] + b[k], the derivative of running products, and running means with weights.

The factors f are the operand a itself or, with `logs`, exp(a[k - 1] - a[k]). Then elements far apart are folded by the
difference of their own logarithms: a product of thousands of factors near one would lose digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, Primitive, SampleInput, aval_of
from functorch_like.errors import DtypeError, ShapeError
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.base import kernels
from functorch_like.primitives.base.accumulating import accumulated
from functorch_like.primitives.base.lowering import Alternative, Lowering
from functorch_like.primitives.base.window_geometry import emit_pad
from functorch_like.primitives.elementwise.arithmetic import compare
from functorch_like.primitives.reductions.makers import roomy
from functorch_like.primitives.reductions.running_loop import running_loop

#: Up to so many elements an array is folded without a loop.
FEW = 8


def shifted(x: Any, by: int, fill: Any, axis: int, reverse: bool) -> Any:
    """The elements `by` places before each (after each, if reverse); `fill` where there are none."""
    config = [(0, 0, 0)] * aval_of(x).ndim
    config[axis] = (-by, by, 0) if reverse else (by, -by, 0)
    return structural.pad(x, structural.full((), fill, aval_of(x).dtype), padding_config=tuple(config))


def _shape(a: ShapedArray, b: ShapedArray, *, axis: int, reverse: bool, logs: bool) -> ShapedArray:
    if a.shape != b.shape or a.dtype != b.dtype:
        raise ShapeError(f"recurrence takes two arrays of one shape and dtype, not {a!r} and {b!r}", fix="convert one")
    if not 0 <= axis < a.ndim:
        raise ShapeError(f"{a!r} has no axis {axis}", fix=f"use an axis below {a.ndim}")
    if logs and not dtypes.is_float(a.dtype):
        raise DtypeError(f"recurrence takes floating point logarithms, not {a!r}", fix="convert them with astype")
    if a.dtype == dtypes.bool_:
        raise DtypeError(f"recurrence takes operands that are numbers, not {a!r}", fix="convert it with astype")
    return b


def _ref(a: Any, b: Any, *, axis: int, reverse: bool, logs: bool) -> Any:
    turn = (lambda v: np.flip(v, axis)) if reverse else (lambda v: v)
    wide = [np.moveaxis(turn(roomy(v)), axis, 0) for v in (a, b)]
    if logs and len(wide[0]):
        before, after = np.roll(wide[0], 1, 0), wide[0]
        with np.errstate(invalid="ignore"):
            wide[0] = np.exp(np.where(before == after, 0, before - after))
    out, last = np.empty_like(wide[1]), np.zeros_like(wide[1][:1])[0] if wide[1].shape[0] else 0
    for k, (factor, term) in enumerate(zip(*wide, strict=True)):
        last = out[k] = np.where(last == 0, term, factor * last + term)
    return turn(np.moveaxis(out, 0, axis)).astype(b.dtype)


def _folded(logs: bool) -> Any:
    """Two steps y -> f y + b as one. Zero times an infinite factor is zero, as it is where no step is before."""

    def both(e: Any, first: Sequence[Any], second: Sequence[Any], aval: ShapedArray) -> list[Any]:
        op = lambda name, *xs: e.op(f"stablehlo.{name}", xs, [aval])
        same = lambda x, y: compare(e, "EQ", x, y, aval)
        (a, b), (c, d) = first, second
        last, factor = c, c
        if logs:  # -inf stands for no step; equal infinities are the same element
            last = op("select", same(c, e.full(-np.inf, aval)), a, c)
            gap = op("select", same(a, last), e.full(0, aval), op("subtract", a, last))
            factor = op("exponential", gap)
        none = same(b, e.full(0, aval))
        sum_ = op("select", none, d, op("add", op("multiply", b, factor), d))
        return [last if logs else op("multiply", a, c), sum_]

    return both


def _first(logs: bool) -> Any:
    """The value of `a` before the first element."""
    return -np.inf if logs else 1


def _doubling(e: Any, a: Any, b: Any, *, axis: int, reverse: bool, logs: bool) -> Any:
    """Fold spans of 1, 2, 4, ... steps."""
    (out,), by = e.outs, 1
    while by < out.shape[axis]:
        low = [(-by if reverse else by) if d == axis else 0 for d in range(out.ndim)]
        before = [emit_pad(e, x, out, fill, low, [-n for n in low])[0] for x, fill in ((a, _first(logs)), (b, 0))]
        a, b = _folded(logs)(e, before, [a, b], out)
        by *= 2
    return b


def _loop(e: Any, a: Any, b: Any, *, axis: int, reverse: bool, logs: bool) -> Any:
    if not kernels.allowed(e):
        return _doubling(e, a, b, axis=axis, reverse=reverse, logs=logs)
    return running_loop(e, [a, b], e.outs[0], axis, reverse, _folded(logs), [_first(logs), 0])


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    (a, b), (da, db) = primals, tangents
    y = recurrence(a, b, **params)
    if da is None:
        return y, recurrence(a, db, **params)
    if params["logs"]:  # of exp(a[i] - a[k]), each term of y[k]
        change = elementwise.mul(da, b)
    else:
        change = elementwise.mul(shifted(y, 1, 0, params["axis"], params["reverse"]), da)
    dy = recurrence(a, change if db is None else elementwise.add(change, db), **params)
    return y, elementwise.sub(dy, elementwise.mul(da, y)) if params["logs"] else dy


def _transpose(ct: Any, args: Sequence[Any], *, axis: int, reverse: bool, logs: bool) -> list[Any]:
    """The same from the other end: each term reaches the results behind it."""
    a, _ = args
    a = elementwise.neg(a) if logs else shifted(a, 1, 0, axis, not reverse)
    return [None, recurrence(a, ct, axis=axis, reverse=not reverse, logs=logs)]


def _batch(axis_: BatchAxis, args: Sequence[Any], dims: Sequence[Any], *, axis: int, reverse: bool, logs: bool) -> Any:
    a, b = (
        structural.widen(x, axis_.size) if d is None else structural.move(x, d, 0)
        for x, d in zip(args, dims, strict=True)
    )
    return recurrence(a, b, axis=axis + 1, reverse=reverse, logs=logs), 0


def _samples() -> list[SampleInput]:
    arrays = [((5,), 0, False), ((2, 3), 1, True), ((2, 3, 4), 1, False), ((0, 2), 0, False), ((2, 0), 1, True),
              ((1,), 0, False), ((75, 2), 0, False), ((2, 300), 1, True)]  # fmt: skip
    pair = lambda shape, dtype: (ShapedArray(shape, dtype), ShapedArray(shape, dtype))
    rows = [(pair(s, "float32"), {"axis": a, "reverse": r}) for s, a, r in arrays]
    others = [(pair((4,), d), {"axis": 0, "reverse": False}) for d in ("complex64", "bfloat16")]
    return [
        *(SampleInput(xs, params | {"logs": False}, (-1, 1)) for xs, params in rows + others),
        *(SampleInput(xs, params | {"logs": True}, (-1, 1)) for xs, params in rows),
    ]


_PAIR = lambda n, dtype="float32": (ShapedArray((n, 2), dtype),) * 2
recurrence = Primitive(
    "recurrence",
    shape=_shape,
    ref=_ref,
    lower=Lowering(
        "recurrence",
        accumulated(_doubling),
        Alternative(
            "loop", f"more than {FEW} elements, on one device",
            lambda ins, outs, *, axis, **_: outs[0].shape[axis] > FEW and 0 < outs[0].size < 2**31,
            accumulated(_loop),
            lambda: [
                (SampleInput(_PAIR(n), {"axis": 0, "reverse": r, "logs": logs}, (low, 1.1)), n > FEW)
                for n in (FEW, FEW + 1, 32, 33, 1025)
                # With logarithms the terms do not decay: with both signs, long sums would cancel.
                for r, logs, low in ((False, False, -1.1), (True, False, -1.1), (False, True, 0.1))
            ],
        ),
    ),
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    samples=_samples,
    linear=1,
)  # fmt: skip
