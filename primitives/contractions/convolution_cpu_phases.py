"""Transposed convolutions of float64: products for the results of each phase, without the holes of the operand.

With a left dilation d, result o meets the kernel's element k where (o + k r - lo) is a multiple of d, for the kernel's
dilation r and padding lo. The results with one o mod d, a phase, meet the same elements, and neighbours of them meet
neighbours of the operand: a matrix product for each of these elements, as in `convolution_cpu.by_taps`. The phases are
then interleaved.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from functorch_like.primitives.base.window_geometry import FEW, dilated, emit_pad, emit_tap
from functorch_like.primitives.contractions.convolution_cpu import is_slow
from functorch_like.primitives.contractions.convolution_lowering import Conv


def has_holes(conv: Conv) -> bool:
    """Return True for a small kernel in float64, over an operand with holes and without strides along them."""
    holes = [d > 1 for d in conv.params["lhs_dilation"]]
    straight = all(s == 1 for s, hole in zip(conv.params["window_strides"], holes, strict=True) if hole)
    return any(holes) and straight and is_slow(conv) and math.prod(conv.kernel) <= FEW


class _Line(NamedTuple):
    """One dimension in space.

    Attributes:
        taps: for each phase, the kernel's elements and where each first stands in the operand.
        count: number of results of a phase.
        step: distance of their positions.
        low, high: padding that all positions need.
    """

    taps: list[list[tuple[int, int]]]
    count: int
    step: int
    low: int
    high: int


def _line(conv: Conv, i: int) -> _Line:
    p, size = conv.params, conv.left.shape[conv.specs[0][2 + i]]
    hole, step, apart, (low, _) = (p[n][i] for n in ("lhs_dilation", "window_strides", "rhs_dilation", "padding"))
    taps = []
    for phase in range(hole):
        places = [(k, phase + k * apart - low) for k in range(conv.kernel[i])]
        taps.append([(k, place // hole) for k, place in places if place % hole == 0])
    count = -(-conv.counts[i] // hole)
    firsts = [first for phase in taps for _, first in phase]
    before, after = max(0, -min(firsts)), max(0, max(firsts) + dilated(count, step) - size)
    return _Line(taps, count, step, before, after)


def by_phases(conv: Conv) -> Any:
    """Products for the results of each phase, interleaved."""
    (ls, rs, _), e, n = conv.specs, conv.e, len(conv.counts)
    lines = [_line(conv, i) for i in range(n)]
    order = (ls[0], *ls[2:], ls[1])
    x, aval = (
        conv.transpose(conv.lhs, conv.left, order),
        conv.left.update(shape=tuple(conv.left.shape[d] for d in order)),
    )
    x, aval = emit_pad(e, x, aval, 0, [0, *(t.low for t in lines), 0], [0, *(t.high for t in lines), 0])
    x = e.materialized(x, aval)
    inputs, outputs = conv.right.shape[rs[1]], conv.right.shape[rs[0]]
    weights = conv.right.update(shape=(outputs, inputs))
    part = aval.update(shape=(aval.shape[0], *(t.count for t in lines), inputs))
    one = part.update(shape=(*part.shape[:-1], outputs))

    def product(taps: tuple[tuple[int, int], ...]) -> Any:
        at, cut = [slice(0, size, 1) for size in conv.right.shape], [slice(0, size, 1) for size in aval.shape]
        for i, ((k, first), line) in enumerate(zip(taps, lines, strict=True)):
            at[rs[2 + i]], start = slice(k, k + 1, 1), first + line.low
            cut[i + 1] = slice(start, start + dilated(line.count, line.step), line.step)
        element = conv.right.update(shape=tuple(s.stop - s.start for s in at))
        w = conv.reshape(conv.transpose(emit_tap(e, conv.rhs, at, element), element, rs), weights)
        return conv.dot(emit_tap(e, x, cut, part), w, part, weights, ((n + 1,), (1,)), ((), ()))[0]

    phases = []
    for phase in np.ndindex(*(len(t.taps) for t in lines)):
        choices = [line.taps[at] for line, at in zip(lines, phase, strict=True)]
        terms = [
            product(tuple(c[k] for c, k in zip(choices, ks, strict=True))) for ks in np.ndindex(*map(len, choices))
        ]
        phases.append(e.materialized(conv.add(terms, one), one) if terms else e.full(0, one))
    return _interleaved(conv, phases, one, [len(t.taps) for t in lines])


def _interleaved(conv: Conv, phases: list[Any], one: Any, counts: list[int]) -> Any:
    """The phases, each of shape (batch, *space, features), as one array in the layout of the result."""
    e, os, n = conv.e, conv.specs[2], len(counts)
    joined = one.update(shape=(*one.shape[:-1], len(phases) * one.shape[-1]))
    x = (
        e.op("stablehlo.concatenate", phases, [joined], attrs={"dimension": e.i64(n + 1)})
        if len(phases) > 1
        else phases[0]
    )
    apart = one.update(shape=(*one.shape[:-1], *counts, one.shape[-1]))
    pairs = [d for i in range(n) for d in (1 + i, 1 + n + i)]
    x = conv.transpose(conv.reshape(x, apart), apart, (0, *pairs, 2 * n + 1))
    spaces = [m * c for m, c in zip(one.shape[1:-1], counts, strict=True)]
    whole = one.update(shape=(one.shape[0], *spaces, one.shape[-1]))
    kept = whole.update(shape=(one.shape[0], *conv.counts, one.shape[-1]))
    x = conv.reshape(x, whole)
    if kept.shape != whole.shape:
        x = emit_tap(e, x, [slice(0, size, 1) for size in kept.shape], kept)
    place = {os[0]: 0, os[1]: n + 1, **{d: i + 1 for i, d in enumerate(os[2:])}}
    return conv.transpose(x, kept, [place[d] for d in range(n + 2)])
