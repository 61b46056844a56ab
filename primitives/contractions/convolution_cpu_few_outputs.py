"""Convolutions in float32 to few output features, and the gradients of their kernels.

XLA:CPU's loops compute eight outputs or more at a time, so that fewer take as long as eight. The last layer of a
network that makes images has few outputs, and so has the gradient of its first layer's input. The form here is one
product with a row for each output and element of the kernel, and then the sum of these rows, shifted: up to 14 times as
fast.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.primitives.base.window_geometry import emit_pad, emit_tap
from functorch_like.primitives.contractions.convolution_cpu_products import pointwise
from functorch_like.primitives.contractions.convolution_lowering import Conv

#: The most output features.
FEW_OUTPUTS = 8
#: The most elements of a kernel, each of which is a term of a sum.
MOST_TERMS = 64
#: The most rows for few input features; for more, this many times the input features.
MOST_ROWS, ROWS_PER_FEATURE = 64, 4
#: The least number of multiplications for which the rows are worth the time it takes to compile them.
MANY_MULTIPLICATIONS = 2**16
#: The most numbers in the rows, which are held in memory.
MOST_NUMBERS = 2**25


def _fits(conv: Conv, kernel: Sequence[int], features: int) -> bool:
    """Return True if a product of rows is faster, and they take little memory.

    Args:
        conv: the convolution.
        kernel: elements of the kernel along each dimension.
        features: input features. Of one feature XLA's own loops are faster: a product of rows does not sum anything.
    """
    p, outputs, terms = conv.params, conv.right.shape[conv.specs[1][0]], math.prod(kernel)
    rows, places = terms * outputs, conv.left.size // features
    dense = {*p["window_strides"], *p["lhs_dilation"]} <= {1} and all(min(edges) >= 0 for edges in p["padding"])
    few = outputs <= FEW_OUTPUTS and 2 <= terms <= MOST_TERMS
    small = rows <= max(MOST_ROWS, ROWS_PER_FEATURE * features) and rows * places <= MOST_NUMBERS
    worthwhile = rows * conv.left.size >= MANY_MULTIPLICATIONS
    fit = dense and few and small and worthwhile and features > 1
    return conv.groups == 1 and conv.out.dtype == dtypes.float32 and fit


# ------------------------------------------------------------------------------------------------------------ forward
def has_few_outputs(conv: Conv) -> bool:
    """Return True for few outputs, in one of the two usual layouts."""
    ls, _, os = conv.specs
    n = conv.left.ndim
    usual = ls == os and ls in (tuple(range(n)), (0, n - 1, *range(1, n - 1)))
    return usual and _fits(conv, conv.kernel, conv.left.shape[ls[1]])


def by_rows(conv: Conv) -> Any:
    """A row for each element of the kernel and output: a product, and the sum of the rows, shifted."""
    (ls, rs, _), p, e = conv.specs, conv.params, conv.e
    outputs, inputs = conv.right.shape[rs[0]], conv.right.shape[rs[1]]
    flat = conv.right.update(shape=(math.prod(conv.kernel) * outputs, inputs, *(1 for _ in conv.kernel)))
    kernel = conv.reshape(conv.transpose(conv.rhs, conv.right, (*rs[2:], *rs[:2])), flat)
    shape = list(conv.left.shape)
    shape[ls[1]] = flat.shape[0]
    none = ((0, 0),) * len(conv.kernel)
    alone = p | {"padding": none, "dimension_numbers": (ls, tuple(range(flat.ndim)), ls)}
    # The operand is computed before. Else YNNPACK would compute the product, and the convolutions and functions that
    # its operand is made of, as one fusion.
    operand = e.by_rows(conv.lhs, conv.left)
    rows = Conv(conv.left, flat, conv.out.update(shape=tuple(shape)), alone, e, operand, kernel)
    line, aval = rows._replace(params=p, lhs=pointwise(rows), left=rows.out).line()
    terms = []
    for i, k in enumerate(np.ndindex(*conv.kernel)):
        cut = [slice(0, n, 1) for n in aval.shape]
        cut[ls[1]] = slice(i * outputs, (i + 1) * outputs, 1)
        for d, at, hole, count in zip(ls[2:], k, p["rhs_dilation"], conv.counts, strict=True):
            cut[d] = slice(at * hole, at * hole + count, 1)
        terms.append(emit_tap(e, line, cut, conv.out))
    return conv.add(terms, conv.out)


# --------------------------------------------------------------------------------------- the gradient of such a kernel
def is_gradient_of_few(conv: Conv) -> bool:
    """Return True for the gradient of a kernel with few outputs, in a usual layout: few results in space.

    Its features are the images, and its batch is their features.
    """
    ls, n, p = conv.specs[0], conv.left.ndim, conv.params
    usual = ls in ((1, 0, *range(2, n)), (n - 1, 0, *range(1, n - 1)))
    dense = set(p["rhs_dilation"]) <= {1} and math.prod(conv.counts) <= math.prod(conv.kernel)
    near = all(max(edges) < size for edges, size in zip(p["padding"], conv.kernel, strict=True))
    return usual and dense and near and _fits(conv, conv.counts, conv.left.shape[ls[0]])


def by_shifted_rows(conv: Conv) -> Any:
    """Shifted copies of the few outputs as rows, one product with each image, and the sum over images."""
    (ls, rs, os), e = conv.specs, conv.e
    inputs, images = (conv.left.shape[d] for d in ls[:2])
    outputs, space = conv.right.shape[rs[0]], [conv.left.shape[d] for d in ls[2:]]
    order = (rs[1], rs[0], *rs[2:])
    small = conv.right.update(shape=tuple(conv.right.shape[d] for d in order))
    copies = [
        _shifted(conv, conv.transpose(conv.rhs, conv.right, order), small, k, space) for k in np.ndindex(*conv.counts)
    ]
    rows = small.update(shape=(images, len(copies) * outputs, *space))
    rhs = e.op("stablehlo.concatenate", copies, [rows], attrs={"dimension": e.i64(1)})
    flat = rows.update(shape=(*rows.shape[:2], math.prod(space)))
    last = ls[0] != 1
    left = flat.update(shape=(images, flat.shape[2], inputs) if last else (images, inputs, flat.shape[2]))
    dims = ((2,), (1 if last else 2,)), ((0,), (0,))
    each, aval = conv.dot(conv.reshape(rhs, flat), conv.reshape(conv.lhs, left), flat, left, *dims)
    total = aval.update(shape=aval.shape[1:])
    whole = aval.update(shape=(*conv.counts, outputs, inputs))
    summed = conv.reshape(e.reduce("add", each, 0, [0], total), whole)
    return conv.laid_out(summed, whole, (*os[2:], os[1], os[0]))


def _shifted(conv: Conv, x: Any, aval: ShapedArray, at: Sequence[int], space: Sequence[int]) -> Any:
    """`x`, the forward result's derivative, shifted to the input elements that kernel element `at` pairs it with."""
    starts = [k - low for k, (low, _) in zip(at, conv.params["padding"], strict=True)]
    ends = [n - m - k for n, m, k in zip(space, aval.shape[2:], starts, strict=True)]
    return emit_pad(conv.e, x, aval, 0, [0, 0, *starts], [0, 0, *ends])[0]
