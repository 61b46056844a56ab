"""The derivative of max pooling, forwards and backwards: from each window the first extreme element.

`select_and_gather_add` reads, for each window over the operand, the element of another array at the place of the
operand's extreme; `select_and_scatter_add`, its transpose, adds to that place. `select` is 'ge' for the greatest
element and 'le' for the least; a NaN is more extreme than any number. Padding is never selected; a window that holds
nothing else reads zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.backends import determinism
from functorch_like.core import BatchAxis, Primitive, SampleInput, UndefinedPrimal
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.primitives.base.accumulating import accumulated
from functorch_like.primitives.base.elementwise_makers import align
from functorch_like.primitives.base.lowering import Lowering
from functorch_like.primitives.base.window_geometry import (
    batched_params,
    emit_pad,
    emit_tap,
    few,
    padded,
    taps,
    window_attrs,
    window_params,
    window_samples,
    windowed_shape,
)
from functorch_like.primitives.windows.select_and_scatter_cpu import ORDER, WOVEN, keeps, swept, undilated
from functorch_like.primitives.windows.select_and_scatter_deterministic import scatter_in_order


def _counts(other: ShapedArray, operand: ShapedArray, params: dict[str, Any]) -> tuple[int, ...]:
    if other.dtype != operand.dtype or dtypes.is_complex(operand.dtype) or operand.dtype == dtypes.bool_:
        raise DtypeError(f"{other!r} and {operand!r} must have one real dtype", fix="convert them with astype")
    if params["select"] not in ORDER:
        raise ArgumentError(f"select={params['select']!r} is unknown", fix="use 'ge' for maxima and 'le' for minima")
    return windowed_shape(operand, undilated(operand, params))


# -------------------------------------------------------------------------------------------------------------- NumPy
def _choices(operand: Any, params: dict[str, Any]) -> tuple[Any, list[Any], dict[str, Any]]:
    """Return the number of the element chosen in each window (-1: none), and the windows' elements as slices."""
    params, greatest = undilated(ShapedArray(operand.shape, operand.dtype), params), params["select"] == "ge"
    counts = windowed_shape(ShapedArray(operand.shape, operand.dtype), params)
    line, real = padded(operand, 0, params), padded(np.ones(operand.shape, bool), False, params)
    chosen, best = np.full(counts, -1), np.zeros(counts, operand.dtype)
    cuts = list(taps(counts, params)) if chosen.size else []
    for number, tap in enumerate(cuts):
        x = line[tap]
        better = (x > best if greatest else x < best) | (x != x) & (best == best)
        take = real[tap] & (better | (chosen < 0))
        chosen, best = np.where(take, number, chosen), np.where(take, x, best)
    return chosen, cuts, params


def _gather_ref(tangents: Any, operand: Any, **params: Any) -> Any:
    chosen, cuts, params = _choices(operand, params)
    line, out = padded(tangents, 0, params), np.zeros(chosen.shape, operand.dtype)
    for number, tap in enumerate(cuts):
        out = np.where(chosen == number, line[tap], out)
    return out


def _scatter_ref(source: Any, operand: Any, **params: Any) -> Any:
    chosen, cuts, params = _choices(operand, params)
    line = padded(np.zeros_like(operand), 0, params)
    for number, tap in enumerate(cuts):
        line[tap] += np.where(chosen == number, source, np.zeros_like(source))
    return line[tuple(slice(lo, lo + n) for n, (lo, _) in zip(operand.shape, params["padding"], strict=True))]


# ----------------------------------------------------------------------------------------------------------- lowering
def _gather_lower(e: Any, tangents: Any, operand: Any, *, select: str, **params: Any) -> Any:
    (out,), x = e.outs, e.ins[1]
    if not out.size or not x.size:
        return e.full(0, out)
    direction, identity = ORDER[select]
    params = undilated(x, params)
    scalar = ShapedArray((), x.dtype)
    if not few(params):

        def pick(inner: Any, a: Any, s: Any, b: Any, t: Any) -> list[Any]:
            kept = keeps(inner, a, b, scalar, direction)
            return [inner.op("stablehlo.select", [kept, *pair], [scalar]) for pair in ((a, b), (s, t))]

        inits = [e.constant(identity(x.dtype)), e.full(0, scalar)]
        region, attrs = ([scalar] * 4, pick), window_attrs(e, params)
        return e.op("stablehlo.reduce_window", [operand, tangents, *inits], [out, out], attrs=attrs, regions=(region,))[
            1
        ]
    low, high = zip(*params["padding"], strict=True) if params["padding"] else ((), ())
    operand, _ = emit_pad(e, operand, x, identity(x.dtype), low, high)
    tangents, _ = emit_pad(e, tangents, x, 0, low, high)
    best = result = None
    for tap in taps(out.shape, params):
        here, tangent = emit_tap(e, operand, tap, out), emit_tap(e, tangents, tap, out)
        if best is None:
            best, result = here, tangent
            continue
        kept = keeps(e, best, here, out, direction)
        best = e.op("stablehlo.select", [kept, best, here], [out])
        result = e.op("stablehlo.select", [kept, result, tangent], [out])
    return result


def _scatter_lower(e: Any, source: Any, operand: Any, *, select: str, **params: Any) -> Any:
    (aval, x), (out,) = e.ins, e.outs
    if not aval.size or not out.size:
        return e.full(0, out)
    if e.platform != "cpu" and determinism.wanted():
        return scatter_in_order(e, source, operand, select=select, **params)
    direction, _ = ORDER[select]
    scalar = ShapedArray((), out.dtype)
    regions = (
        ([scalar, scalar], lambda inner, a, b: [keeps(inner, a, b, scalar, direction)]),
        ([scalar, scalar], lambda inner, a, b: [inner.op("stablehlo.add", [a, b], [scalar])]),
    )
    names = ("window_dimensions", "window_strides", "padding")
    attrs = {k: v for k, v in window_attrs(e, undilated(x, params)).items() if k in names}
    operands = [operand, source, e.full(0, scalar)]
    return e.op("stablehlo.select_and_scatter", operands, [out], attrs=attrs, regions=regions)


# ----------------------------------------------------------------------------------------------------------- primitives
def _gather_shape(tangents: ShapedArray, operand: ShapedArray, **params: Any) -> ShapedArray:
    if tangents.shape != operand.shape:
        raise ShapeError(f"{tangents!r} and {operand!r} differ in shape", fix="give a tangent for each element")
    return tangents.update(shape=_counts(tangents, operand, params))


def _scatter_shape(source: ShapedArray, operand: ShapedArray, **params: Any) -> ShapedArray:
    counts = _counts(source, operand, params)
    if source.shape != counts:
        raise ShapeError(
            f"{source!r} does not fit the {counts} windows over {operand!r}", fix="give one for each window"
        )
    return source.update(shape=operand.shape)


def _linear_jvp(primitive: Any) -> Any:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        """Apply the primitive to the first operand's tangent; the selection is constant almost everywhere."""
        change = tangents[0]
        return primitive()(*primals, **params), None if change is None else primitive()(change, primals[1], **params)

    return jvp


def _linear_transpose(primitive: Any) -> Any:
    def transpose(ct: Any, args: Sequence[Any], **params: Any) -> list[Any]:
        known = type(args[1]) is not UndefinedPrimal  # a derivative in the second operand alone is zero
        return [primitive()(ct, args[1], **params) if known else None, None]

    return transpose


def _batch(primitive: Any) -> Any:
    def batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        args, at = align(axis, args, dims)
        return primitive()(*args, **batched_params(params, at)), at

    return batch


def _samples(gathers: bool) -> list[SampleInput]:
    made = []
    dense = lambda p: {*p["base_dilation"], *p["window_dilation"]} <= {1}
    plain = [(s, p) for s, p in window_samples() if s and dense(p)]
    plain.append(((7, 7), window_params((6, 6), (1, 1))))
    for dtype, some in (("float32", plain), ("bfloat16", plain[:1]), ("int32", plain[:1])):
        for shape, params in some:
            operand = ShapedArray(shape, dtype)
            first = operand if gathers else operand.update(shape=windowed_shape(operand, params))
            params = {k: v for k, v in params.items() if "dilation" not in k}
            # Values far apart, so that finite differences change no choice.
            values = np.random.default_rng(operand.size).permutation(operand.size).reshape(shape) - operand.size // 2
            made += [
                SampleInput((first, values.astype(operand.dtype)), params | {"select": select})
                for select in ("ge", "le")
            ]
    return made


select_and_gather_add = Primitive(
    "select_and_gather_add",
    shape=_gather_shape,
    ref=_gather_ref,
    lower=_gather_lower,
    jvp=_linear_jvp(lambda: select_and_gather_add),
    transpose=_linear_transpose(lambda: select_and_scatter_add),
    batch=_batch(lambda: select_and_gather_add),
    samples=lambda: _samples(True),
    linear=0,
)
select_and_scatter_add = Primitive(
    "select_and_scatter_add",
    shape=_scatter_shape,
    ref=_scatter_ref,
    lower=Lowering("select_and_scatter_add", accumulated(_scatter_lower), WOVEN, swept(_scatter_lower)),
    jvp=_linear_jvp(lambda: select_and_scatter_add),
    transpose=_linear_transpose(lambda: select_and_gather_add),
    batch=_batch(lambda: select_and_scatter_add),
    samples=lambda: _samples(False),
    linear=0,
)
