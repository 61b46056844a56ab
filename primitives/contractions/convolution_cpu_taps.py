"""Convolutions of float64 with small kernels: a matrix product over the features for each element of the kernel.

With strides s, a left dilation d, the kernel's dilation r and padding lo, result o meets the kernel's element k where
o s + k r - lo is a multiple of d. The results with one o mod d / gcd(d, s), a phase, meet the same elements, and
neighbours of them stand at equal distances in the operand, so that its holes are never filled in. Without holes there
is one phase; more of them are interleaved at the end.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

from functorch_like.avals import ShapedArray
from functorch_like.primitives.base.window_geometry import FEW, dilated, emit_pad, emit_tap
from functorch_like.primitives.contractions.convolution_cpu import is_slow
from functorch_like.primitives.contractions.convolution_lowering import Conv


def has_few_taps(conv: Conv) -> bool:
    """Return True for a small kernel in float64."""
    return is_slow(conv) and math.prod(conv.kernel) <= FEW


class _Line(NamedTuple):
    """One dimension in space.

    Attributes:
        phases: for each phase, the kernel's elements and where its first result meets each in the operand.
        count: number of results of a phase.
        step: distance of their positions in the operand.
        low, high: padding that all positions need.
    """

    phases: list[list[tuple[int, int]]]
    count: int
    step: int
    low: int
    high: int


def _line(conv: Conv, i: int) -> _Line:
    p, size = conv.params, conv.left.shape[conv.specs[0][2 + i]]
    hole, stride, apart, (low, _) = (p[n][i] for n in ("lhs_dilation", "window_strides", "rhs_dilation", "padding"))
    shared = math.gcd(hole, stride)
    number, step, phases = hole // shared, stride // shared, []
    for phase in range(number):
        places = [(k, phase * stride + k * apart - low) for k in range(conv.kernel[i])]
        phases.append([(k, place // hole) for k, place in places if place % hole == 0])
    count = -(-conv.counts[i] // number)
    firsts = [first for phase in phases for _, first in phase] or [0]  # of holes alone
    return _Line(phases, count, step, max(0, -min(firsts)), max(0, max(firsts) + dilated(count, step) - size))


def by_taps(conv: Conv) -> Any:
    """A matrix product for each phase and element of the kernel."""
    (ls, rs, os), e, n = conv.specs, conv.e, len(conv.counts)
    lines = [_line(conv, i) for i in range(n)]
    last = (ls[0], *ls[2:], ls[1])
    x, aval = conv.transpose(conv.lhs, conv.left, last), conv.left.update(shape=tuple(conv.left.shape[d] for d in last))
    x, aval = emit_pad(e, x, aval, 0, [0, *(t.low for t in lines), 0], [0, *(t.high for t in lines), 0])
    x = e.materialized(x, aval)
    inputs, outputs = conv.right.shape[rs[1]], conv.right.shape[rs[0]]
    weights = conv.right.update(shape=(outputs, inputs))
    part = aval.update(shape=(aval.shape[0], *(t.count for t in lines), inputs))
    shape = part.update(shape=(*part.shape[:-1], outputs))

    def product(taps: tuple[tuple[int, int], ...]) -> Any:
        tap, cut = [slice(0, m, 1) for m in conv.right.shape], [slice(0, m, 1) for m in aval.shape]
        for i, ((k, first), line) in enumerate(zip(taps, lines, strict=True)):
            tap[rs[2 + i]], start = slice(k, k + 1, 1), first + line.low
            cut[1 + i] = slice(start, start + dilated(line.count, line.step), line.step)
        one = conv.right.update(shape=tuple(s.stop - s.start for s in tap))
        w = conv.reshape(conv.transpose(emit_tap(e, conv.rhs, tap, one), one, rs), weights)
        return conv.dot(emit_tap(e, x, cut, part), w, part, weights, ((n + 1,), (1,)), ((), ()))[0]

    totals = []
    for choices in itertools.product(*(t.phases for t in lines)):
        terms = [product(taps) for taps in itertools.product(*choices)]
        totals.append(e.materialized(conv.add(terms, shape), shape) if terms else e.full(0, shape))
    total = totals[0]
    if len(totals) > 1:
        total, shape = _interleaved(conv, totals, shape, [len(t.phases) for t in lines])
    place = {os[0]: 0, os[1]: n + 1, **{d: i + 1 for i, d in enumerate(os[2:])}}
    return conv.transpose(total, shape, [place[d] for d in range(n + 2)])


def _interleaved(conv: Conv, phases: list[Any], one: ShapedArray, numbers: list[int]) -> tuple[Any, ShapedArray]:
    """Phases, each of shape (batch, *space, features) and so many along each dimension, as one array, and its aval."""
    e, n = conv.e, len(numbers)
    batch, *space, features = one.shape
    joined = one.update(shape=(batch, *space, len(phases) * features))
    x = e.op("stablehlo.concatenate", phases, [joined], attrs={"dimension": e.i64(n + 1)})
    apart = one.update(shape=(batch, *space, *numbers, features))
    pairs = [d for i in range(n) for d in (1 + i, 1 + n + i)]
    x = conv.transpose(conv.reshape(x, apart), apart, (0, *pairs, 2 * n + 1))
    whole = one.update(shape=(batch, *(m * c for m, c in zip(space, numbers, strict=True)), features))
    kept = one.update(shape=(batch, *conv.counts, features))
    x = conv.reshape(x, whole)
    return x if kept.shape == whole.shape else emit_tap(e, x, [slice(0, m, 1) for m in kept.shape], kept), kept
