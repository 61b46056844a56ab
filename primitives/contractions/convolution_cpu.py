"""Convolutions that XLA:CPU runs several times faster when they are written as something else.

docs/lowerings.md has the measurements: depthwise ones are shifted sums, few groups as many convolutions, many groups
batched products. Each form has a predicate that returns True if it fits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.primitives.base.window_geometry import FEW, emit_tap
from functorch_like.primitives.contractions.convolution_lowering import Conv, convolution

#: Up to this many groups are split into convolutions of their own.
FEW_GROUPS = 16
#: From so many elements on, patches are worth the time it takes to compile them.
MANY_PATCHES = 2**15
#: Up to so many outputs of one feature are shifted sums; more are a product of patches.
FEW_OUTPUTS = 8
#: From so many multiplications on, XLA's own loops for float64 are slower than a product for each element of a kernel.
MANY_MULTIPLICATIONS = 2**17


# ------------------------------------------------------------------------------------------------- one input feature
def has_one_feature(conv: Conv) -> bool:
    """Return True for one input feature, in one of the two usual layouts."""
    (ls, _, os), few = conv.specs, 2 <= math.prod(conv.kernel) <= FEW
    in_order = ls[0] == os[0] == 0 and all(spec[2:] == tuple(sorted(spec[2:])) for spec in (ls, os))
    many = conv.left.shape[ls[0]] * math.prod(conv.kernel) * math.prod(conv.counts) >= MANY_PATCHES
    in_order = in_order and os[1] in (1, conv.out.ndim - 1) and conv.out.dtype == dtypes.float32
    return conv.groups == 1 and conv.left.shape[ls[1]] == 1 and few and many and in_order


def by_patches(conv: Conv) -> Any:
    """Lower as a matrix product over shifted copies, which are concatenated."""
    (_, rs, os), p, e = conv.specs, conv.params, conv.e
    batch, space, outputs = conv.left.shape[0], math.prod(conv.counts), conv.right.shape[rs[0]]
    line, aval = conv.line()
    parts, one = [], conv.out.update(shape=(batch, 1, space))
    for k in np.ndindex(*conv.kernel):
        starts = [i * r for i, r in zip(k, p["rhs_dilation"], strict=True)]
        part, _ = conv.cut(line, aval, starts, conv.counts, p["window_strides"])
        parts.append(conv.reshape(part, one))
    patches = one.update(shape=(batch, len(parts), space))
    x = e.op("stablehlo.concatenate", parts, [patches], attrs={"dimension": e.i64(1)})
    weights = conv.right.update(shape=(outputs, len(parts)))
    w = conv.reshape(conv.transpose(conv.rhs, conv.right, (rs[0], rs[1], *rs[2:])), weights)
    if os[1] != 1:  # features last
        return conv.reshape(conv.dot(x, w, patches, weights, ((1,), (1,)), ((), ()))[0], conv.out)
    many = weights.update(shape=(batch, *weights.shape))
    w = e.broadcast_in_dim(w, many, [1, 2])
    return conv.reshape(conv.dot(w, x, many, patches, ((2,), (1,)), ((0,), (0,)))[0], conv.out)


# -------------------------------------------------------------------------------------------------------- depthwise
def is_depthwise(conv: Conv) -> bool:
    """Return True for as many groups as features, each with one."""
    (ls, _, os), outputs = conv.specs, conv.right.shape[conv.specs[1][0]]
    few = math.prod(conv.kernel) <= FEW
    return conv.params["feature_group_count"] == outputs == conv.left.shape[ls[1]] and ls == os and few and outputs > 1


def is_filter(conv: Conv) -> bool:
    """Return True for one input feature and few outputs."""
    (ls, rs, os), few = conv.specs, 2 <= math.prod(conv.kernel) <= FEW
    many = conv.left.shape[ls[0]] * math.prod(conv.kernel) * math.prod(conv.counts) >= MANY_PATCHES
    one = conv.groups == 1 and conv.left.shape[ls[1]] == 1 and conv.right.shape[rs[0]] <= FEW_OUTPUTS
    return one and few and many and ls == os


def depthwise(conv: Conv) -> Any:
    """Lower a convolution with one feature in each group, or one in all, as a weighted sum of shifted copies."""
    (_, rs, os), p, e = conv.specs, conv.params, conv.e
    outputs = conv.right.shape[rs[0]]
    line, aval = conv.line()
    terms = []
    for k in np.ndindex(*conv.kernel):
        starts = [i * r for i, r in zip(k, p["rhs_dilation"], strict=True)]
        part, one = conv.cut(line, aval, starts, conv.counts, p["window_strides"])
        if one.shape != conv.out.shape:
            part = e.broadcast_in_dim(part, conv.out, range(conv.out.ndim))
        tap = [slice(0, n, 1) for n in conv.right.shape]
        for d, i in zip(rs[2:], k, strict=True):
            tap[d] = slice(i, i + 1, 1)
        one = conv.right.update(shape=tuple(s.stop - s.start for s in tap))
        weight = conv.reshape(emit_tap(e, conv.rhs, tap, one), one.update(shape=(outputs,)))
        weight = e.broadcast_in_dim(weight, conv.out, [os[1]])
        terms.append(e.op("stablehlo.multiply", [part, weight], [conv.out]))
    return conv.add(terms, conv.out)


def is_depthwise_gradient(conv: Conv) -> bool:
    """Return True for as many groups of the batch as results, each with one."""
    (ls, rs, _), outputs = conv.specs, conv.right.shape[conv.specs[1][0]]
    few = math.prod(conv.counts) <= FEW
    return conv.params["batch_group_count"] == outputs == conv.left.shape[ls[0]] and ls == rs and few and outputs > 1


def depthwise_gradient(conv: Conv) -> Any:
    """Lower the kernel's gradient of a depthwise convolution: each element of the result is a sum of products."""
    (ls, rs, _), p, e = conv.specs, conv.params, conv.e
    outputs = conv.right.shape[rs[0]]
    line, aval = conv.line()
    parts, row = [], conv.out.update(shape=(outputs,))
    for k in np.ndindex(*conv.counts):
        starts = [i * s for i, s in zip(k, p["window_strides"], strict=True)]
        part, same = conv.cut(line, aval, starts, conv.kernel, p["rhs_dilation"])
        product = e.op("stablehlo.multiply", [part, conv.rhs], [same])
        total = e.reduce("add", product, 0, [d for d in range(same.ndim) if d != ls[0]], row)
        parts.append(conv.reshape(total, row.update(shape=(1, outputs, 1))))
    return _stack(conv, parts, 1, outputs)


def _stack(conv: Conv, parts: list[Any], batch: int, outputs: int) -> Any:
    """Results for one position in space each, of shape (batch, outputs, 1), joined and brought into the layout."""
    e, x = conv.e, parts[0]
    joined = conv.out.update(shape=(batch, outputs, len(parts)))
    if len(parts) > 1:
        x = e.op("stablehlo.concatenate", parts, [joined], attrs={"dimension": e.i64(2)})
    whole = joined.update(shape=(batch, outputs, *conv.counts))
    return conv.laid_out(conv.reshape(x, whole), whole, conv.specs[2])


# ---------------------------------------------------------------------------------------------------------- float64
def is_slow(conv: Conv) -> bool:
    """Return True for large convolutions in float64, for which XLA:CPU has no kernel."""
    if conv.out.dtype != dtypes.float64 or conv.groups != 1:
        return False
    features = conv.left.shape[conv.specs[0][1]]
    return conv.out.size * math.prod(conv.kernel) * features >= MANY_MULTIPLICATIONS


def has_few_places(conv: Conv) -> bool:
    """Return True for few results in space in float64: the gradient of a small kernel."""
    return is_slow(conv) and math.prod(conv.counts) <= min(FEW, math.prod(conv.kernel))


def by_places(conv: Conv) -> Any:
    """A matrix product for each result in space, of rows that hold all features and elements of the kernel."""
    (ls, rs, _), p, e = conv.specs, conv.params, conv.e
    (batch, inputs), outputs = (conv.left.shape[d] for d in ls[:2]), conv.right.shape[rs[0]]
    line, aval = conv.line()
    many = inputs * math.prod(conv.kernel)
    right = conv.right.update(shape=(outputs, many))
    line, parts = e.materialized(line, aval), []
    rhs = e.materialized(conv.reshape(conv.transpose(conv.rhs, conv.right, rs), right), right)
    for k in np.ndindex(*conv.counts):
        starts = [i * s for i, s in zip(k, p["window_strides"], strict=True)]
        part, same = conv.cut(line, aval, starts, conv.kernel, p["rhs_dilation"])
        left = same.update(shape=(batch, many))
        rows = conv.reshape(conv.transpose(part, same, ls), left)
        product, shape = conv.dot(rows, rhs, left, right, ((1,), (1,)), ((), ()))
        parts.append(conv.reshape(product, shape.update(shape=(batch, outputs, 1))))
    return _stack(conv, parts, batch, outputs)


# ----------------------------------------------------------------------------------------------------------- groups
def split(conv: Conv) -> Any:
    """Lower few groups as a convolution for each."""
    (ls, rs, os), p, e = conv.specs, conv.params, conv.e
    features = p["feature_group_count"] > 1
    groups = p["feature_group_count"] if features else p["batch_group_count"]
    parts = []
    for g in range(groups):
        cut, avals = [], []
        for x, aval, d in ((conv.lhs, conv.left, ls[1] if features else ls[0]), (conv.rhs, conv.right, rs[0])):
            n = aval.shape[d] // groups
            tap = [slice(g * n, g * n + n, 1) if i == d else slice(0, m, 1) for i, m in enumerate(aval.shape)]
            avals.append(aval.update(shape=tuple(s.stop - s.start for s in tap)))
            cut.append(emit_tap(e, x, tap, avals[-1]))
        shape = tuple(n // groups if d == os[1] else n for d, n in enumerate(conv.out.shape))
        alone = p | {"feature_group_count": 1, "batch_group_count": 1}
        parts.append(convolution(e, *cut, avals, conv.out.update(shape=shape), alone))
    return e.op("stablehlo.concatenate", parts, [conv.out], attrs={"dimension": e.i64(os[1])})


def has_few_results(conv: Conv) -> bool:
    """Return True for many groups and few results in space."""
    return conv.groups > FEW_GROUPS and math.prod(conv.counts) <= min(FEW, math.prod(conv.kernel))


def per_result(conv: Conv) -> Any:
    """Many groups and few results in space (the gradient of a kernel): a batched product for each result."""
    (ls, rs, _), p, groups = conv.specs, conv.params, conv.groups
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
