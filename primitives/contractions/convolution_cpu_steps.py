"""Convolutions with one feature in each group, or one in all, and long kernels: a loop that adds shifted copies.

XLA:CPU's own loops over such kernels are not vectorised: they take 5 to 50 times as long. A step of the loop here adds
the products of some neighbouring elements of the kernel. The gradient of a depthwise kernel is a loop over its
elements.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.primitives.base.counted_loop import INDEX, counted_loop, piece
from functorch_like.primitives.base.window_geometry import FEW, dilated, emit_tap
from functorch_like.primitives.contractions.convolution_cpu import FEW_OUTPUTS
from functorch_like.primitives.contractions.convolution_lowering import Conv

#: Multiplications from which on a loop is worth its steps.
MANY_MULTIPLICATIONS = 2**12
#: Most products that one step adds, and most of elements that are neighbours: more are no faster, and compile longer.
_MOST_PRODUCTS, _MOST_NEIGHBOURS = 64, 32


# --------------------------------------------------------------------------------------------------------- long kernels
def has_long_kernel(conv: Conv) -> bool:
    """Return True for more than `FEW` kernel elements, and a feature in each group, or one feature and few outputs."""
    (ls, rs, os), size = conv.specs, math.prod(conv.kernel)
    features, outputs = conv.left.shape[ls[1]], conv.right.shape[rs[0]]
    each = conv.params["feature_group_count"] == features == outputs
    one = features == conv.groups == 1 and outputs <= FEW_OUTPUTS
    results = conv.out.size // outputs if one else conv.out.size
    return size > FEW and ls == os and (each or one) and results * size >= MANY_MULTIPLICATIONS


def by_steps(conv: Conv) -> Any:
    """Lower as a loop over boxes of the kernel, a step of which adds the products of all elements of one box."""
    (_, rs, _), e = conv.specs, conv.e
    line, aval = conv.line()
    outputs = conv.right.shape[rs[0]]
    each = conv.params["feature_group_count"] > 1
    weights = conv.right.update(shape=(*conv.kernel, outputs))
    kernel = conv.reshape(conv.transpose(conv.rhs, conv.right, (*rs[2:], rs[1], rs[0])), weights)
    operands, total = [e.materialized(line, aval), kernel], e.full(0, conv.out)
    for parts in itertools.product(*_parts(conv.kernel, 1 if each else outputs)):
        total = _added(conv, total, operands, [aval, weights], parts)
    return total


class _Part(NamedTuple):
    """Elements of one dimension of the kernel from `start` on: `steps` times `size`."""

    start: int
    steps: int
    size: int


def _parts(kernel: Sequence[int], outputs: int) -> list[list[_Part]]:
    """Divide each dimension of a kernel into parts of one size, and what is left over."""
    parts: list[list[_Part]] = []
    products = _MOST_PRODUCTS // outputs
    for n in reversed(kernel):
        most = min(products, _MOST_NEIGHBOURS)
        size = n if n <= most else min(range(max(1, most // 2), most + 1), key=lambda size: (n % size, -size))
        products = max(1, products // size)
        rest = [_Part(n - n % size, 1, n % size)] if n % size else []
        parts.insert(0, [_Part(0, n // size, size), *rest])
    return parts


def _added(
    conv: Conv, total: Any, operands: Sequence[Any], avals: Sequence[ShapedArray], parts: Sequence[_Part]
) -> Any:
    """Add the products of the kernel's elements in these parts of its dimensions; operands are line and kernel."""
    (aval, weights), p, outputs = avals, conv.params, avals[1].shape[-1]
    sizes = [part.size for part in parts]
    box, one = weights.update(shape=(*sizes, outputs)), weights.update(shape=(*[1] * len(sizes), outputs))

    def body(f: Any, i: Any, total: Any, line: Any, kernel: Any) -> list[Any]:
        inner = conv._replace(e=f)
        places = zip(_places(f, i, [part.steps for part in parts]), parts, strict=True)
        first = [_sum(f, _times(f, place, part.size), f.full(part.start, INDEX)) for place, part in places]
        at = [_times(f, k, r) for k, r in zip(first, p["rhs_dilation"], strict=True)]
        more = [(n - 1) * r for n, r in zip(sizes, p["rhs_dilation"], strict=True)]
        x, cut = _window(inner, line, aval, at, conv.counts, p["window_strides"], more)
        elements = piece(f, kernel, first, box)
        terms = [total]
        for k in np.ndindex(*sizes):
            starts = [n * r for n, r in zip(k, p["rhs_dilation"], strict=True)]
            term, made = inner.cut(x, cut, starts, conv.counts, p["window_strides"])
            if made.shape != conv.out.shape:
                term = f.broadcast_in_dim(term, conv.out, range(conv.out.ndim))
            weight = emit_tap(f, elements, [*(slice(n, n + 1, 1) for n in k), slice(0, outputs, 1)], one)
            weight = f.broadcast_in_dim(
                inner.reshape(weight, one.update(shape=(outputs,))), conv.out, [conv.specs[2][1]]
            )
            terms.append(f.op("stablehlo.multiply", [term, weight], [conv.out]))
        return [inner.add(terms, conv.out), line, kernel]

    steps = math.prod(part.steps for part in parts)
    return counted_loop(conv.e, steps, [total, *operands], [conv.out, *avals], body)


# ------------------------------------------------------------------------------------------------ gradients of kernels
def is_gradient_of_long_kernel(conv: Conv) -> bool:
    """Return True for as many groups of the batch as results, each with one, and more than `FEW` results in space."""
    (ls, rs, _), outputs = conv.specs, conv.right.shape[conv.specs[1][0]]
    each = conv.params["batch_group_count"] == outputs == conv.left.shape[ls[0]] and ls == rs and outputs > 1
    return each and math.prod(conv.counts) > FEW


def by_results(conv: Conv) -> Any:
    """Lower as a loop over the results in space, each a sum of products for every group."""
    (ls, rs, os), p, e = conv.specs, conv.params, conv.e
    outputs, places = conv.right.shape[rs[0]], math.prod(conv.counts)
    line, aval = conv.line()
    row, joined = conv.out.update(shape=(outputs,)), conv.out.update(shape=(places, outputs))
    one = joined.update(shape=(1, outputs))

    def body(f: Any, i: Any, results: Any, line: Any, rhs: Any) -> list[Any]:
        inner = conv._replace(e=f)
        at = [_times(f, k, s) for k, s in zip(_places(f, i, conv.counts), p["window_strides"], strict=True)]
        part, cut = _window(inner, line, aval, at, conv.kernel, p["rhs_dilation"], [0] * len(at))
        part, same = inner.cut(part, cut, [0] * len(at), conv.kernel, p["rhs_dilation"])
        product = f.op("stablehlo.multiply", [part, rhs], [same])
        total = f.reduce("add", product, 0, [d for d in range(same.ndim) if d != ls[0]], row)
        put = [results, inner.reshape(total, one), i, f.full(0, INDEX)]
        return [f.op("stablehlo.dynamic_update_slice", put, [joined]), line, rhs]

    first = [e.full(0, joined), e.materialized(line, aval), conv.rhs]
    made = counted_loop(e, places, first, [joined, aval, conv.right], body)
    whole = joined.update(shape=(*conv.counts, 1, outputs))
    return conv.laid_out(conv.reshape(made, whole), whole, (*os[2:], os[0], os[1]))


# ---------------------------------------------------------------------------------------------------------------- parts
def _places(e: Any, i: Any, sizes: Sequence[int]) -> list[Any]:
    """Return the position of element `i`, in row-major order, in each of the dimensions."""
    places = []
    for n in reversed(sizes):
        places.insert(0, e.op("stablehlo.remainder", [i, e.full(n, INDEX)], [INDEX]))
        i = e.op("stablehlo.divide", [i, e.full(n, INDEX)], [INDEX])
    return places


def _times(e: Any, i: Any, n: int) -> Any:
    return e.op("stablehlo.multiply", [i, e.full(n, INDEX)], [INDEX])


def _sum(e: Any, i: Any, j: Any) -> Any:
    return e.op("stablehlo.add", [i, j], [INDEX])


def _window(
    conv: Conv, line: Any, aval: ShapedArray, at: Sequence[Any], counts: Sequence[int], steps: Sequence[int],
    more: Sequence[int],
) -> tuple[Any, ShapedArray]:  # fmt: skip
    """Return the part of the line that starts at `at`: `counts` elements at distances `steps`, and some `more`."""
    e, places, shape = conv.e, [conv.e.full(0, INDEX)] * aval.ndim, list(aval.shape)
    for d, i, n, step, extra in zip(conv.specs[0][2:], at, counts, steps, more, strict=True):
        places[d], shape[d] = i, dilated(n, step) + extra
    part = aval.update(shape=tuple(shape))
    return piece(e, line, places, part), part
