"""Convolutions that are one matrix product: XLA:CPU multiplies matrices faster than it slides windows.

They are those of kernels with one element, and of windows that lie over all of the input, and the gradients of both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from functorch_like.primitives.contractions.convolution_lowering import Conv


def is_pointwise(conv: Conv) -> bool:
    """Return True for a kernel of one element, in layouts of which a product needs no transposition."""
    p = conv.params
    if conv.groups != 1 or math.prod(conv.kernel) != 1 or any(map(any, p["padding"])):
        return False
    if {*p["window_strides"], *p["lhs_dilation"]} - {1}:
        return False
    first, second = _places(conv, (conv.specs[0][1],), (conv.specs[1][1],))
    return _features_first(conv) or _in_order(first + second) or _in_order(second + first)


def pointwise(conv: Conv) -> Any:
    """A kernel of one element: a product over the features; batched where features come before space."""
    (ls, rs, _), e = conv.specs, conv.e
    if not _features_first(conv):
        return _product(conv, conv.rhs, (ls[1],), (rs[1],))
    weights = conv.right.update(shape=(conv.right.shape[rs[0]], conv.right.shape[rs[1]]))
    kernel = conv.reshape(conv.transpose(conv.rhs, conv.right, rs), weights)
    batch, space = conv.left.shape[0], math.prod(conv.left.shape[2:])
    many = weights.update(shape=(batch, *weights.shape))
    flat = conv.left.update(shape=(*conv.left.shape[:2], space))
    w, x = e.broadcast_in_dim(kernel, many, [1, 2]), conv.reshape(conv.lhs, flat)
    return conv.reshape(conv.dot(w, x, many, flat, ((2,), (1,)), ((0,), (0,)))[0], conv.out)


def _features_first(conv: Conv) -> bool:
    ls, _, os = conv.specs
    return ls == os == tuple(range(conv.left.ndim))


def is_whole(conv: Conv) -> bool:
    """Return True for one window that covers the whole input."""
    (ls, _, _), p = conv.specs, conv.params
    space = [conv.left.shape[d] for d in ls[2:]]
    free = not any(map(any, p["padding"])) and {*p["lhs_dilation"], *p["rhs_dilation"]} <= {1}
    return conv.groups == 1 and conv.kernel == space and math.prod(space) > 1 and free


def whole(conv: Conv) -> Any:
    """A window over all of the input: a product over space and features."""
    (ls, rs, os), (left, right) = conv.specs, (conv.left, conv.right)
    pairs = sorted(zip(ls[1:], rs[1:], strict=True))  # as the left operand is in memory
    first = pairs[0][1]
    if ls[0] != 0 or [d for _, d in pairs] != list(range(first, first + len(pairs))):
        return _product(conv, conv.rhs, *zip(*pairs, strict=True))
    # XLA transposes operands of products over several dimensions, even where they are one in memory.
    batch, outputs, many = left.shape[0], right.shape[rs[0]], math.prod(left.shape[1:])
    flat, at = left.update(shape=(batch, many)), int(first > 0)
    weights = right.update(shape=(outputs, many) if at else (many, outputs))
    operands = conv.reshape(conv.lhs, flat), conv.reshape(conv.rhs, weights)
    x, made = conv.dot(*operands, flat, weights, ((1,), (at,)), ((), ()))
    return conv.reshape(x if os[0] < os[1] else conv.transpose(x, made, (1, 0)), conv.out)


def is_spread(conv: Conv) -> bool:
    """Return True for the gradient of `whole`: an input of one element in space, times each kernel element once."""
    (ls, _, _), p = conv.specs, conv.params
    around = tuple((n - 1, n - 1) for n in conv.kernel)
    once = all(conv.left.shape[d] == 1 for d in ls[2:]) and tuple(map(tuple, p["padding"])) == around
    return conv.groups == 1 and once and {*p["window_strides"], *p["rhs_dilation"]} <= {1} and around[0] != (0, 0)


def spread(conv: Conv) -> Any:
    """An input of one element in space: a product over the features, with the kernel reversed."""
    (ls, rs, _), e = conv.specs, conv.e
    reversed_ = e.op("stablehlo.reverse", [conv.rhs], [conv.right], attrs={"dimensions": e.i64s(sorted(rs[2:]))})
    return _product(conv, reversed_, (ls[1],), (rs[1],))


def _product(conv: Conv, rhs: Any, left: Sequence[int], right: Sequence[int]) -> Any:
    """The product over these dimensions, in the layout of the result."""
    first, second = _places(conv, left, right)
    operands, avals, dims = (conv.lhs, rhs), (conv.left, conv.right), (tuple(left), tuple(right))
    kernel_first = not _in_order(first + second) and _in_order(second + first)
    places, turn = (second + first, -1) if kernel_first else (first + second, 1)
    x, _ = conv.dot(*operands[::turn], *avals[::turn], dims[::turn], ((), ()))
    if not _in_order(places):
        long = conv.out.update(shape=tuple(conv.out.shape[d] for d in places))
        x = conv.transpose(conv.reshape(x, long), long, sorted(range(len(places)), key=places.__getitem__))
    return conv.reshape(x, conv.out)


def _places(conv: Conv, left: Sequence[int], right: Sequence[int]) -> tuple[list[int], list[int]]:
    """The result's dimensions that are the operands' free ones, in order; those of size 1 are left out."""
    ls, rs, os = conv.specs
    of_left = {ls[0]: os[0], **dict(zip(ls[2:], os[2:], strict=True))}
    of_right = {rs[0]: os[1], **dict(zip(rs[2:], os[2:], strict=True))}
    free = lambda aval, places, dims: [places[d] for d in sorted(places.keys() - dims) if aval.shape[d] > 1]
    return free(conv.left, of_left, left), free(conv.right, of_right, right)


def _in_order(places: Sequence[int]) -> bool:
    return list(places) == sorted(places)
