"""Floor 6. Convolutions that XLA:CPU runs several times faster when they are written as something else.

LOWERINGS "convolution" has the measurements: pointwise ones are matrix products, depthwise ones shifted sums, few
groups as many convolutions, many groups batched products. Each function here returns None where it does not apply.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.primitives.contract import precision_config
from functorch_like.primitives.windowing import FEW, dilated, emit_tap

#: Up to this many groups are split into convolutions of their own.
FEW_GROUPS = 16


class Conv(NamedTuple):
    """One convolution to lower: operands with avals, and its parameters."""

    e: Any
    lhs: Any
    rhs: Any
    left: ShapedArray
    right: ShapedArray
    out: ShapedArray
    params: dict[str, Any]

    @property
    def specs(self) -> Any:
        return self.params["dimension_numbers"]

    @property
    def kernel(self) -> list[int]:
        return [self.right.shape[d] for d in self.specs[1][2:]]

    @property
    def counts(self) -> list[int]:
        return [self.out.shape[d] for d in self.specs[2][2:]]

    def reshape(self, x: Any, aval: ShapedArray) -> Any:
        return self.e.op("stablehlo.reshape", [x], [aval])

    def transpose(self, x: Any, aval: ShapedArray, perm: Sequence[int]) -> Any:
        out = aval.update(shape=tuple(aval.shape[p] for p in perm))
        return self.e.op("stablehlo.transpose", [x], [out], attrs={"permutation": self.e.i64s(perm)})

    def add(self, terms: Sequence[Any], aval: ShapedArray) -> Any:
        return functools.reduce(lambda a, b: self.e.op("stablehlo.add", [a, b], [aval]), terms)

    def dot(self, lhs: Any, rhs: Any, left: ShapedArray, right: ShapedArray, contract: Any, batch: Any) -> Any:
        """A dot_general and its aval."""
        (lc, rc), (lb, rb) = contract, batch
        free = lambda aval, c, b: [n for d, n in enumerate(aval.shape) if d not in c and d not in b]
        shape = (*(left.shape[d] for d in lb), *free(left, lc, lb), *free(right, rc, rb))
        numbers = self.e.attr(
            f"#stablehlo.dot<lhs_batching_dimensions = {list(lb)}, rhs_batching_dimensions = {list(rb)}, "
            f"lhs_contracting_dimensions = {list(lc)}, rhs_contracting_dimensions = {list(rc)}>"
        )
        attrs = {
            "dot_dimension_numbers": numbers,
            "precision_config": precision_config(self.e, self.params.get("precision")),
        }
        aval = self.out.update(shape=shape)
        return self.e.op("stablehlo.dot_general", [lhs, rhs], [aval], attrs=attrs), aval

    def line(self) -> tuple[Any, ShapedArray]:
        """The left operand with its padding and holes filled in."""
        ls, shape = self.specs[0], list(self.left.shape)
        low, high, inner = [0] * len(shape), [0] * len(shape), [0] * len(shape)
        for d, (lo, hi), hole in zip(ls[2:], self.params["padding"], self.params["lhs_dilation"], strict=True):
            low[d], high[d], inner[d] = lo, hi, hole - 1
            shape[d] = lo + dilated(shape[d], hole) + hi
        aval = self.left.update(shape=tuple(shape))
        if aval is self.left:
            return self.lhs, aval
        names = ("edge_padding_low", "edge_padding_high", "interior_padding")
        attrs = {name: self.e.i64s(v) for name, v in zip(names, (low, high, inner), strict=True)}
        zero = self.e.full(0, ShapedArray((), aval.dtype))
        return self.e.op("stablehlo.pad", [self.lhs, zero], [aval], attrs=attrs), aval

    def cut(self, line: Any, aval: ShapedArray, starts: Any, counts: Any, steps: Any) -> tuple[Any, ShapedArray]:
        """Elements of the line's spatial dimensions, all of the others."""
        tap, shape = [slice(0, n, 1) for n in aval.shape], list(aval.shape)
        for d, i, n, step in zip(self.specs[0][2:], starts, counts, steps, strict=True):
            tap[d], shape[d] = slice(i, i + dilated(n, step), step), n
        part = aval.update(shape=tuple(shape))
        return emit_tap(self.e, line, tap, part), part


def lower_cpu(conv: Conv, plain: Callable[..., Any]) -> Any:
    """A faster form of the convolution, or None. `plain` lowers one with given operands and parameters."""
    if conv.out.dtype not in (dtypes.float32, dtypes.float64) or conv.left.dtype != conv.out.dtype:
        return None
    groups = max(conv.params["feature_group_count"], conv.params["batch_group_count"])
    if groups == 1:
        return _pointwise(conv)
    found = _depthwise(conv)
    if found is None and groups <= FEW_GROUPS:
        return _split(conv, plain)
    return _per_result(conv, groups) if found is None else found


def _pointwise(conv: Conv) -> Any:
    """A kernel of one element: a matrix product over the features; batched where features come before space."""
    (ls, rs, os), p, e = conv.specs, conv.params, conv.e
    if math.prod(conv.kernel) != 1 or any(map(any, p["padding"])) or {*p["window_strides"], *p["lhs_dilation"]} > {1}:
        return None
    if ls != os or ls[2:] != tuple(sorted(ls[2:])):
        return None
    weights = conv.right.update(shape=(conv.right.shape[rs[0]], conv.right.shape[rs[1]]))
    kernel = conv.transpose(conv.rhs, conv.right, rs)
    w = conv.reshape(kernel, weights)
    if ls[1] == conv.left.ndim - 1:  # features last
        return conv.dot(conv.lhs, w, conv.left, weights, ((ls[1],), (1,)), ((), ()))[0]
    if ls[:2] != (0, 1):
        return None
    batch, space = conv.left.shape[0], math.prod(conv.left.shape[2:])
    many = weights.update(shape=(batch, *weights.shape))
    flat = conv.left.update(shape=(*conv.left.shape[:2], space))
    w, x = e.broadcast_in_dim(w, many, [1, 2]), conv.reshape(conv.lhs, flat)
    return conv.reshape(conv.dot(w, x, many, flat, ((2,), (1,)), ((0,), (0,)))[0], conv.out)


def _depthwise(conv: Conv) -> Any:
    """One feature to a group: each element of the kernel weighs a shifted copy; or, backwards, gathers one product."""
    (ls, rs, os), p, e = conv.specs, conv.params, conv.e
    outputs = conv.right.shape[rs[0]]
    if p["feature_group_count"] == outputs == conv.left.shape[ls[1]] and ls == os and math.prod(conv.kernel) <= FEW:
        line, aval = conv.line()
        terms = []
        for k in np.ndindex(*conv.kernel):
            starts = [i * r for i, r in zip(k, p["rhs_dilation"], strict=True)]
            part, _ = conv.cut(line, aval, starts, conv.counts, p["window_strides"])
            tap = [slice(0, n, 1) for n in conv.right.shape]
            for d, i in zip(rs[2:], k, strict=True):
                tap[d] = slice(i, i + 1, 1)
            one = conv.right.update(shape=tuple(s.stop - s.start for s in tap))
            weight = conv.reshape(emit_tap(e, conv.rhs, tap, one), one.update(shape=(outputs,)))
            weight = e.broadcast_in_dim(weight, conv.out, [os[1]])
            terms.append(e.op("stablehlo.multiply", [part, weight], [conv.out]))
        return conv.add(terms, conv.out)
    if p["batch_group_count"] == outputs == conv.left.shape[ls[0]] and ls == rs and math.prod(conv.counts) <= FEW:
        line, aval = conv.line()
        parts, row = [], conv.out.update(shape=(outputs,))
        for k in np.ndindex(*conv.counts):
            starts = [i * s for i, s in zip(k, p["window_strides"], strict=True)]
            part, same = conv.cut(line, aval, starts, conv.kernel, p["rhs_dilation"])
            product = e.op("stablehlo.multiply", [part, conv.rhs], [same])
            total = e.reduce("add", product, 0, [d for d in range(same.ndim) if d != ls[0]], row)
            parts.append(conv.reshape(total, row.update(shape=(1, outputs, 1))))
        return _stack(conv, parts, 1, outputs)
    return None


def _stack(conv: Conv, parts: list[Any], batch: int, outputs: int) -> Any:
    """Results for one position in space each, of shape (batch, outputs, 1), joined and brought into the layout."""
    e, x = conv.e, parts[0]
    joined = conv.out.update(shape=(batch, outputs, len(parts)))
    if len(parts) > 1:
        x = e.op("stablehlo.concatenate", parts, [joined], attrs={"dimension": e.i64(2)})
    whole = joined.update(shape=(batch, outputs, *conv.counts))
    return conv.transpose(conv.reshape(x, whole), whole, np.argsort(conv.specs[2]).tolist())


def _split(conv: Conv, plain: Callable[..., Any]) -> Any:
    """Few groups: a convolution for each."""
    (ls, rs, os), p, e = conv.specs, conv.params, conv.e
    features = p["feature_group_count"] > 1
    groups = p["feature_group_count"] if features else p["batch_group_count"]
    parts = []
    for g in range(groups):
        cut: list[Any] = []
        for x, aval, d in ((conv.lhs, conv.left, ls[1] if features else ls[0]), (conv.rhs, conv.right, rs[0])):
            n = aval.shape[d] // groups
            tap = [slice(g * n, g * n + n, 1) if i == d else slice(0, m, 1) for i, m in enumerate(aval.shape)]
            cut.append(emit_tap(e, x, tap, aval.update(shape=tuple(s.stop - s.start for s in tap))))
        shape = tuple(n // groups if d == os[1] else n for d, n in enumerate(conv.out.shape))
        alone = p | {"feature_group_count": 1, "batch_group_count": 1}
        parts.append(plain(e, *cut, conv.out.update(shape=shape), alone))
    return e.op("stablehlo.concatenate", parts, [conv.out], attrs={"dimension": e.i64(os[1])})


def _per_result(conv: Conv, groups: int) -> Any:
    """Many groups and few results in space (the gradient of a kernel): a batched product for each result."""
    (ls, rs, _), p = conv.specs, conv.params
    if math.prod(conv.counts) > FEW or math.prod(conv.kernel) < math.prod(conv.counts):
        return None
    features = p["feature_group_count"] > 1
    at = ls[1] if features else ls[0]
    halves = lambda aval, d: aval.update(shape=(*aval.shape[:d], groups, aval.shape[d] // groups, *aval.shape[d + 1 :]))
    up = lambda dims, d: tuple(k + (k > d) for k in dims)
    right = halves(conv.right, rs[0])
    rhs = conv.reshape(conv.rhs, right)
    line, aval = conv.line()
    parts, outputs = [], conv.right.shape[rs[0]]
    for k in np.ndindex(*conv.counts):
        starts = [i * s for i, s in zip(k, p["window_strides"], strict=True)]
        part, same = conv.cut(line, aval, starts, conv.kernel, p["rhs_dilation"])
        left = halves(same, at)
        inner = at + 1 if features else up((ls[1],), at)[0]
        contract = ((inner, *up(ls[2:], at)), (*up((rs[1],), rs[0]), *up(rs[2:], rs[0])))
        got, shape = conv.dot(conv.reshape(part, left), rhs, left, right, contract, ((at,), (rs[0],)))
        got = conv.transpose(got, shape, (1, 0, 2))  # (group, batch, features of the group) -> batch first
        batch = shape.shape[1]
        parts.append(conv.reshape(got, shape.update(shape=(batch, outputs, 1))))
    return _stack(conv, parts, batch, outputs)
