"""Derivatives of functions with buckets: the derivative is a function with buckets of its own.

A masked program cannot be differentiated as it is: a derivative of the padding that is infinite would be multiplied by
the zero that the mask gives. So the derivative of the unmasked function is traced, and masked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.core import Tracer, aval_of, state
from functorch_like.interpreters import reverse
from functorch_like.primitives.base.shapes import zeros
from functorch_like.transforms.buckets import padding
from functorch_like.transforms.buckets.program import Alone, Bucket, Buckets
from functorch_like.transforms.buckets.sizes import Extent
from functorch_like.transforms.custom.custom_vjp import custom_vjp


def differentiable_call(
    function: Buckets, leaves: Sequence[Any], avals: Sequence[ShapedArray], extents: list[list[Extent]], rows: int
) -> tuple[list[Any], Any]:
    """Call a function whose arguments are perturbed.

    Raises:
        Alone: where the function has no program for this number of rows.
    """
    bucket = function.entry(avals, extents, rows, state.axes)
    bucket.prepare(rows)

    def primal(*xs: Any) -> list[Any]:
        return _run(function, bucket, xs, rows)

    def forth(*xs: Any) -> tuple[list[Any], tuple[Any, ...]]:
        return primal(*xs), xs

    def back(xs: tuple[Any, ...], cotangents: list[Any]) -> tuple[Any, ...]:
        backward = _backward(function, bucket)
        cts = [c for c, a in zip(cotangents, bucket.out_avals, strict=True) if dtypes.is_inexact(a.dtype)]
        operands = [*xs, *cts]
        sized = [*bucket.extents, *_inexact(bucket.out_extents, bucket.out_avals)]
        try:
            entry = backward.entry([aval_of(x) for x in operands], sized, rows, state.axes)
            back_leaves = iter(_run(backward, entry, operands, rows))
        except Alone:
            back_leaves = iter(backward.fun(*operands)[0])
        return tuple(next(back_leaves) if dtypes.is_inexact(a.dtype) else None for a in bucket.avals)

    primal.__name__ = f"{function.name} with buckets"
    call = custom_vjp(primal)
    call.defvjp(forth, back)
    return list(call(*map(padding.placed, leaves))), bucket.tree


def _run(function: Buckets, bucket: Bucket, xs: Sequence[Any], rows: int) -> list[Any]:
    """Results of the bucket's program; without buckets where another transformation traces the arguments, too."""
    if state.trace.staging or any(isinstance(x, Tracer) for x in xs):
        return function.fun(*xs)[0]
    return bucket(xs, rows)[0]


def _inexact(items: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    return [item for item, a in zip(items, avals, strict=True) if dtypes.is_inexact(a.dtype)]


def _backward(function: Buckets, bucket: Bucket) -> Buckets:
    """Cotangents of the arguments as a function of arguments and cotangents of the results."""
    cached = bucket.derived
    if cached is None:
        inexact = [dtypes.is_inexact(a.dtype) for a in bucket.avals]
        out_inexact = [dtypes.is_inexact(a.dtype) for a in bucket.out_avals]

        def backward(*operands: Any) -> tuple[list[Any], Any]:
            xs, cotangents = operands[: len(inexact)], operands[len(inexact) :]

            _, linear = reverse.linearize(lambda *ys: function.fun(*ys)[0], xs, inexact, "vjp")
            given = iter(cotangents)
            pulled = linear.transpose([next(given) if of else None for of in out_inexact])
            avals = [aval_of(x) for x, of in zip(xs, inexact, strict=True) if of]
            outs = [zeros(a) if ct is None else ct for ct, a in zip(pulled, avals, strict=True)]
            return xla.flatten(outs)

        cached = bucket.derived = Buckets(backward, f"vjp({function.name})", function.allowed, function.compiled)
    return cached
