"""conv_general_dilated: convolutions with strides, dilations, padding and groups, in any layout.

`dimension_numbers` is a triple of tuples: the positions of (batch, feature, *spatial) in the left operand and in the
result, and of (output feature, input feature, *spatial) in the right operand, the kernel. As everywhere in machine
learning, the kernel is not reversed. With lhs_dilation d and padding (lo, hi), position i of the left operand stands
at i*d + lo of the line that windows run along.

Both transposes are convolutions again. Write o for the result, k for the kernel, s for strides, and r for
rhs_dilation. Then  out[o] = sum_k lhs[(o*s + k*r - lo)/d] rhs[k].  Solving for the position in lhs or in rhs exchanges
the roles of strides and dilations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.backends.precision import of_convolutions
from functorch_like.core import BatchAxis, SampleInput, UndefinedPrimal, aval_of
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.base.bilinear import both_unknown
from functorch_like.primitives.base.lowering import Lowering
from functorch_like.primitives.base.window_geometry import dilated, window_count
from functorch_like.primitives.contractions import convolution_gpu
from functorch_like.primitives.contractions.convolution_cpu_table import FORMS, conv_sample
from functorch_like.primitives.contractions.convolution_lowering import plain
from functorch_like.primitives.contractions.precision import Product, check_precision
from functorch_like.primitives.reductions.makers import roomy


class ConvDimensionNumbers(NamedTuple):
    """Positions of (batch, feature, *spatial) in operand and result, of (out, in feature, *spatial) in the kernel."""

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


def _shape(
    lhs: ShapedArray, rhs: ShapedArray, *, window_strides: Any, padding: Any, lhs_dilation: Any, rhs_dilation: Any,
    dimension_numbers: Any, feature_group_count: int = 1, batch_group_count: int = 1, precision: Any = None,
    preferred_element_type: Any = None,
) -> ShapedArray:  # fmt: skip
    ls, rs, os = dimension_numbers
    check_precision(precision, lhs.dtype, algorithms=False)
    if lhs.dtype != rhs.dtype or lhs.dtype == dtypes.bool_:
        raise DtypeError(
            f"a convolution takes two operands of one dtype, any but bool, not {lhs!r} and {rhs!r}",
            fix="convert both to one numeric dtype with astype",
        )
    every = list(range(lhs.ndim))
    if lhs.ndim < 2 or lhs.ndim != rhs.ndim or any(sorted(spec) != every for spec in (ls, rs, os)):
        raise ShapeError(
            f"dimension_numbers={(ls, rs, os)} must each be an order of the dimensions of {lhs!r} and {rhs!r}",
            fix="give both operands a batch (or output feature) and a feature dimension and equally many spatial ones",
        )
    n = lhs.ndim - 2
    for name, value in (
        ("window_strides", window_strides), ("padding", padding),
        ("lhs_dilation", lhs_dilation), ("rhs_dilation", rhs_dilation),
    ):  # fmt: skip
        if len(value) != n or (name != "padding" and any(g < 1 for g in value)):
            raise ArgumentError(
                f"{name}={value} must be {n} positive numbers", fix="give one for each spatial dimension"
            )
    features, inputs, outputs, batch = lhs.shape[ls[1]], rhs.shape[rs[1]], rhs.shape[rs[0]], lhs.shape[ls[0]]
    groups = max(feature_group_count, batch_group_count)
    if feature_group_count * batch_group_count != groups or groups < 1:
        raise ArgumentError(
            f"feature_group_count={feature_group_count} with batch_group_count={batch_group_count}",
            fix="use positive numbers, of which one at most is above 1",
        )
    if inputs * feature_group_count != features:
        raise ShapeError(
            f"{lhs!r} has {features} features (dimension {ls[1]}), but the kernel {rhs!r} takes {inputs} (dimension "
            f"{rs[1]}) in each of {feature_group_count} groups",
            fix="features = feature_group_count * the kernel's input features",
        )
    if outputs % groups or batch % batch_group_count:
        raise ShapeError(
            f"{outputs} output features of {rhs!r}, or a batch of {batch} in {lhs!r}, are not divisible by {groups}",
            fix="make them multiples of the number of groups",
        )
    shape = [0] * lhs.ndim
    shape[os[0]], shape[os[1]] = batch // batch_group_count, outputs
    for i in range(n):
        window = dilated(rhs.shape[rs[2 + i]], rhs_dilation[i])
        size = dilated(lhs.shape[ls[2 + i]], lhs_dilation[i])
        shape[os[2 + i]] = window_count(size, padding[i][0], padding[i][1], window, window_strides[i])
    return ShapedArray(
        tuple(shape),
        preferred_element_type or lhs.dtype,
        lhs.weak_type and rhs.weak_type and not preferred_element_type,
    )


def _ref(
    lhs: Any, rhs: Any, *, window_strides: Any, padding: Any, lhs_dilation: Any, rhs_dilation: Any,
    dimension_numbers: Any, feature_group_count: int = 1, batch_group_count: int = 1, precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:  # fmt: skip
    ls, rs, os = dimension_numbers
    out = np.dtype(preferred_element_type or lhs.dtype)
    wide = np.promote_types(roomy(lhs[:0]).dtype, roomy(np.zeros(0, out)).dtype)
    x, w = lhs.transpose(ls).astype(wide), rhs.transpose(rs).astype(wide)
    n, groups = x.ndim - 2, max(feature_group_count, batch_group_count)
    if batch_group_count > 1:  # groups of the batch become groups of features
        x = x.reshape(groups, x.shape[0] // groups, *x.shape[1:]).swapaxes(0, 1)
        x = x.reshape(x.shape[0], groups * x.shape[2], *x.shape[3:])
    sizes = [dilated(m, d) for m, d in zip(x.shape[2:], lhs_dilation, strict=True)]
    line = np.zeros((*x.shape[:2], *(max(m + lo + hi, 0) for m, (lo, hi) in zip(sizes, padding, strict=True))), wide)
    for at in np.ndindex(x.shape[2:]):
        to = [i * d + lo for i, d, (lo, _) in zip(at, lhs_dilation, padding, strict=True)]
        if all(0 <= i < m for i, m in zip(to, line.shape[2:], strict=True)):
            line[(slice(None), slice(None), *to)] = x[(slice(None), slice(None), *at)]
    counts = [
        window_count(m, 0, 0, dilated(k, r), s)
        for m, k, r, s in zip(line.shape[2:], w.shape[2:], rhs_dilation, window_strides, strict=True)
    ]
    y = np.zeros((x.shape[0], groups, w.shape[0] // groups, *counts), wide)
    for k in np.ndindex(w.shape[2:]):
        taken = [
            slice(i * r, i * r + dilated(c, s), s)
            for i, r, c, s in zip(k, rhs_dilation, counts, window_strides, strict=True)
        ]
        part = line[(slice(None), slice(None), *taken)]
        part = part.reshape(x.shape[0], groups, w.shape[1], *counts)
        kernel = w[(slice(None), slice(None), *k)].reshape(groups, w.shape[0] // groups, w.shape[1])
        y += np.einsum("ngc...,goc->ngo...", part, kernel)
    y = y.reshape(x.shape[0], w.shape[0], *counts)
    return y.transpose(np.argsort(os)).astype(out) if n >= 0 else y


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    (lhs, rhs), (dl, dr) = primals, tangents
    out = conv_general_dilated(lhs, rhs, **params)
    left = None if dl is None else conv_general_dilated(dl, rhs, **params)
    right = None if dr is None else conv_general_dilated(lhs, dr, **params)
    return out, elementwise.add(
        left, right
    ) if left is not None and right is not None else right if left is None else left


# --------------------------------------------------------------------------------------------------------- transposes
def split(x: Any, dim: int, outer: int) -> Any:
    """Replace a dimension of size outer * m by two, (outer, m)."""
    shape = aval_of(x).shape
    return structural.reshape(x, shape=(*shape[:dim], outer, shape[dim] // outer, *shape[dim + 1 :]))


def merge(x: Any, src: Any, dim: int, *, major: bool = True) -> Any:
    """Fold dimension src into the one that is at `dim` when src is gone: as its outer part, or as its inner."""
    shape = aval_of(structural.move(x, src, dim if major else dim + 1)).shape
    x = structural.move(x, src, dim if major else dim + 1)
    return structural.reshape(x, shape=(*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :]))


def _transpose(
    ct: Any, args: Sequence[Any], *, window_strides: Any, padding: Any, lhs_dilation: Any, rhs_dilation: Any,
    dimension_numbers: Any, feature_group_count: int = 1, batch_group_count: int = 1, precision: Any = None,
    preferred_element_type: Any = None,
) -> list[Any]:  # fmt: skip
    (lhs, rhs), (ls, rs, os) = args, dimension_numbers
    left, right, result = aval_of(lhs), aval_of(rhs), aval_of(ct)
    first = type(lhs) is UndefinedPrimal
    if both_unknown("conv_general_dilated", lhs, rhs) or not (result.size and left.size and right.size):
        return [structural.zeros(left.strong()), None] if first else [None, structural.zeros(right.strong())]
    known = rhs if first else lhs
    if result.dtype != left.dtype:  # preferred_element_type was wider than the operands
        known = structural.convert_element_type(known, new_dtype=result.dtype)
    spatial = list(zip(
        [left.shape[d] for d in ls[2:]], [right.shape[d] for d in rs[2:]], [result.shape[d] for d in os[2:]],
        window_strides, padding, lhs_dilation, rhs_dilation, strict=True,
    ))  # fmt: skip
    if first:
        # lhs[i] = sum over k of ct[(i*d + lo - k*r) / s] rhs[k]: ct is dilated by s, the kernel runs backwards.
        groups = max(feature_group_count, batch_group_count)
        pads = []
        for n, k, o, s, (lo, _), d, r in spatial:
            low = (k - 1) * r - lo
            pads.append((low, dilated(n, d) + (k - 1) * r - low - dilated(o, s)))
        kernel = structural.rev(known, dimensions=tuple(rs[2:]))
        if groups > 1:  # output features (g, o), input features c  ->  o, (g, c)
            kernel = merge(split(kernel, rs[0], groups), rs[0], rs[1])
        back = conv_general_dilated(
            ct, kernel, window_strides=lhs_dilation, padding=tuple(pads), lhs_dilation=window_strides,
            rhs_dilation=rhs_dilation, dimension_numbers=(os, (rs[1], rs[0], *rs[2:]), ls),
            feature_group_count=groups, batch_group_count=1, precision=precision, preferred_element_type=None,
        )  # fmt: skip
        if batch_group_count > 1:  # features (b, c), batch n  ->  c, (b, n)
            back = merge(split(back, ls[1], batch_group_count), ls[1], ls[0])
        return [_as(back, left), None]
    # rhs[k] = sum over o of lhs[(o*s + k*r - lo) / d] ct[o]: ct is the kernel, dilated by s; the batch is summed over.
    pads = []
    for n, k, o, s, (lo, _), d, r in spatial:
        pads.append((lo, (k - 1) * r + dilated(o, s) - dilated(n, d) - lo))
    back = conv_general_dilated(
        known, ct, window_strides=rhs_dilation, padding=tuple(pads), lhs_dilation=lhs_dilation,
        rhs_dilation=window_strides,
        dimension_numbers=((ls[1], ls[0], *ls[2:]), (os[1], os[0], *os[2:]), (rs[1], rs[0], *rs[2:])),
        feature_group_count=batch_group_count, batch_group_count=feature_group_count, precision=precision,
        preferred_element_type=None,
    )  # fmt: skip
    return [None, _as(back, right)]


def without_axis(aval: ShapedArray, at: int) -> ShapedArray:
    """The aval of one element along an axis."""
    return aval.update(shape=(*aval.shape[:at], *aval.shape[at + 1 :]))


def _as(x: Any, aval: ShapedArray) -> Any:
    return x if aval_of(x).dtype == aval.dtype else structural.convert_element_type(x, new_dtype=aval.dtype)


# ----------------------------------------------------------------------------------------------------------- batching
def _batch(
    axis: BatchAxis, args: Any, dims: Any, *, dimension_numbers: Any, feature_group_count: int = 1,
    batch_group_count: int = 1, **params: Any,
) -> Any:  # fmt: skip
    (lhs, rhs), (ld, rd), (ls, rs, os) = args, dims, dimension_numbers
    grouped = feature_group_count > 1 or batch_group_count > 1
    if not axis.size:  # groups cannot be multiplied by nothing
        alone = [aval_of(x) if d is None else without_axis(aval_of(x), d) for x, d in zip(args, dims, strict=True)]
        groups = {"feature_group_count": feature_group_count, "batch_group_count": batch_group_count}
        out = _shape(*alone, dimension_numbers=dimension_numbers, **groups, **params)
        return structural.full((0, *out.shape), 0, out.dtype), 0
    if ld is not None and rd is not None:  # one more level of groups, the outermost
        at = ls[0] if batch_group_count > 1 else ls[1]
        lhs, rhs, out, major = merge(lhs, ld, at), merge(rhs, rd, rs[0]), os[1], True
        if batch_group_count > 1:
            batch_group_count *= axis.size
        else:
            feature_group_count *= axis.size
    elif ld is not None:  # a larger batch; inside of its groups, if it has any
        major = batch_group_count == 1
        lhs, out = merge(lhs, ld, ls[0], major=major), os[0]
    else:  # more output features; inside of their groups, if there are any
        major = not grouped
        rhs, out = merge(rhs, rd, rs[0], major=major), os[1]
    y = conv_general_dilated(
        lhs, rhs, dimension_numbers=dimension_numbers, feature_group_count=feature_group_count,
        batch_group_count=batch_group_count, **params,
    )  # fmt: skip
    size = aval_of(y).shape[out]
    return (split(y, out, axis.size), out) if major else (split(y, out, size // axis.size), out + 1)


# ------------------------------------------------------------------------------------------------------------ samples
def _samples() -> list[SampleInput]:
    one = conv_sample
    last = ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))  # features last, and the kernel as (h, w, in, out)
    return [
        one((2, 3, 5), (4, 3, 2)),
        one((2, 3), (4, 3)),
        one((2, 3, 7), (4, 3, 2), window_strides=(3,), padding=((1, 2),)),
        one((2, 3, 5), (4, 3, 3), padding=((-1, 1),), lhs_dilation=(2,), rhs_dilation=(2,)),
        one((1, 2, 6, 5), (3, 2, 3, 2), window_strides=(2, 1), padding=((1, 1), (0, 1))),
        one((2, 5, 4, 3), (3, 2, 3, 2), last, window_strides=(1, 2), padding=((1, 1), (1, 0))),
        one((2, 4, 5), (6, 2, 2), feature_group_count=2, window_strides=(2,), rhs_dilation=(2,), padding=((1, 1),)),
        one((2, 4, 5), (4, 1, 3), feature_group_count=4, padding=((1, 1),)),
        one((4, 3, 5), (6, 3, 2), batch_group_count=2, window_strides=(2,)),
        one((4, 3, 5), (4, 3, 3), batch_group_count=4, padding=((1, 0),)),
        one((2, 1, 3), (2, 1, 2), lhs_dilation=(2,)),
        one((1, 2, 3, 1), (3, 2, 2, 5), lhs_dilation=(2, 2), window_strides=(1, 2), padding=((0, 0), (3, 5))),
        one(
            (1, 2, 4, 1),
            (2, 1, 3, 4),
            lhs_dilation=(3, 1),
            window_strides=(2, 1),
            padding=((0, 0), (3, 3)),
            feature_group_count=2,
        ),
        one((2, 34, 5), (34, 2, 4), feature_group_count=17),
        one((34, 2, 5), (34, 2, 4), batch_group_count=17),
        one((2, 3, 4, 2), (5, 3, 1, 1)),
        one((2, 3, 4, 2), (5, 3, 4, 2)),
        one((2, 4, 2, 3), (1, 1, 3, 5), ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))),
        one((2, 3, 5), (4, 3, 2), precision="highest", preferred_element_type=dtypes.float64),
        one((0, 3, 5), (4, 3, 2)),
        one((2, 3, 1), (4, 3, 2)),
        one((2, 3, 5), (4, 3, 2), dtype="bfloat16"),
        one((2, 3, 5), (4, 3, 2), dtype="complex64"),
        one((2, 3, 5), (4, 3, 2), dtype="int32"),
        one((1, 1, 3, 4, 3), (1, 1, 2, 2, 2)),
    ]


def _multiplications(operands: Sequence[ShapedArray], result: ShapedArray, params: dict[str, Any]) -> float:
    kernel = operands[1]
    return result.size * kernel.size / max(1, max(kernel.shape))


def _lower(e: Any, lhs: Any, rhs: Any, **params: Any) -> Any:
    return (plain if e.platform == "cpu" else convolution_gpu.lower)(e, lhs, rhs, **params)


conv_general_dilated = Product(
    "conv_general_dilated",
    shape=_shape,
    ref=_ref,
    lower=Lowering("conv_general_dilated", _lower, *FORMS),
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    samples=_samples,
    settings=of_convolutions,
    multiplications=_multiplications,
)
