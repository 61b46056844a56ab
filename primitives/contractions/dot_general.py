"""dot_general: sums of products over chosen dimensions; every matrix product is one.

Each dimension of an operand is *batch* (paired, kept), *contracted* (paired, summed) or *free*. The result has the
batch dimensions first, then the free dimensions of the left operand, then those of the right.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import SampleInput, UndefinedPrimal, aval_of
from functorch_like.errors import DtypeError, ShapeError
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.base.bilinear import both_unknown
from functorch_like.primitives.base.lowering import Lowering
from functorch_like.primitives.contractions.dot_dimensions import free_dims
from functorch_like.primitives.contractions.dot_general_cpu import UNROLLED, dot_sample
from functorch_like.primitives.contractions.dot_general_cpu_columns import EXCHANGED, TURNED
from functorch_like.primitives.contractions.dot_general_cpu_complex import BY_PARTS
from functorch_like.primitives.contractions.dot_general_cpu_narrow import WIDENED, through_float32
from functorch_like.primitives.contractions.precision import Product, check_precision, emit_dot, exchanged


def _shape(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> ShapedArray:
    (lc, rc), (lb, rb) = dimension_numbers
    if lhs.dtype != rhs.dtype:
        raise DtypeError(f"{lhs!r} and {rhs!r} have different dtypes", fix="convert one of them with astype")
    check_precision(precision, lhs.dtype)
    for side, aval, contracted, batch in (("left", lhs, lc, lb), ("right", rhs, rc, rb)):
        used = (*contracted, *batch)
        if len(set(used)) != len(used) or not all(0 <= d < aval.ndim for d in used):
            raise ShapeError(
                f"contracted dimensions {tuple(contracted)} and batch dimensions {tuple(batch)} of the {side} operand "
                f"{aval!r} must be different and below {aval.ndim}",
                fix="name each dimension once, counting from 0",
            )
    for kind, left, right in (("contracted", lc, rc), ("batch", lb, rb)):
        if len(left) != len(right):
            raise ShapeError(
                f"{len(left)} {kind} dimensions of {lhs!r} are paired with {len(right)} of {rhs!r}",
                fix="name as many on each side",
            )
        for i, j in zip(left, right, strict=True):
            if lhs.shape[i] != rhs.shape[j]:
                raise ShapeError(
                    f"{kind} dimension {i} of {lhs!r} has size {lhs.shape[i]}, but dimension {j} of {rhs!r}, its "
                    f"partner, has size {rhs.shape[j]}",
                    fix="make the two sizes equal (transpose or reshape one operand), or pair other dimensions",
                )
    shape = [lhs.shape[d] for d in lb]
    shape += [lhs.shape[d] for d in free_dims(lhs.ndim, lc, lb)]
    shape += [rhs.shape[d] for d in free_dims(rhs.ndim, rc, rb)]
    return ShapedArray(
        tuple(shape),
        preferred_element_type or lhs.dtype,
        lhs.weak_type and rhs.weak_type and not preferred_element_type,
    )


def _ref(
    lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: Any = None, preferred_element_type: Any = None
) -> Any:
    (lc, rc), (lb, rb) = dimension_numbers
    lf, rf = free_dims(lhs.ndim, lc, lb), free_dims(rhs.ndim, rc, rb)
    out = np.dtype(preferred_element_type or lhs.dtype)
    wide = np.float32 if lhs.dtype.itemsize < 4 and dtypes.is_float(lhs.dtype) else np.promote_types(lhs.dtype, out)
    sizes = lambda x, dims: [x.shape[d] for d in dims]
    flat = lambda x, *groups: (
        x.transpose([d for g in groups for d in g]).astype(wide).reshape([math.prod(sizes(x, g)) for g in groups])
    )
    product = flat(lhs, lb, lf, lc) @ flat(rhs, rb, rc, rf)
    return product.reshape(sizes(lhs, lb) + sizes(lhs, lf) + sizes(rhs, rf)).astype(out)


def _lower(e: Any, lhs: Any, rhs: Any, **params: Any) -> Any:
    return _emit(e, lhs, rhs, e.outs[0], **params)


def _emit(
    e: Any, lhs: Any, rhs: Any, wide: ShapedArray, *, dimension_numbers: Any, precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:  # fmt: skip
    (lc, rc), (lb, rb) = dimension_numbers
    left, right = e.ins
    (out,) = e.outs
    if left.dtype == dtypes.bool_:  # any product true: a count that is not zero
        left, right, wide = (a.update(dtype=dtypes.float32) for a in (left, right, out))
        lhs, rhs = e.convert(lhs, left), e.convert(rhs, right)
    y = emit_dot(e, lhs, rhs, left, right, wide, (lc, rc), (lb, rb), precision)
    if wide is out:
        return y
    if out.dtype == dtypes.bool_:
        return e.compare("NE", y, e.full(0, wide), out, "FLOAT")
    return e.convert(y, out)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    (lhs, rhs), (dl, dr) = primals, tangents
    out = dot_general(lhs, rhs, **params)
    left = None if dl is None else dot_general(dl, rhs, **params)
    right = None if dr is None else dot_general(lhs, dr, **params)
    return out, elementwise.add(
        left, right
    ) if left is not None and right is not None else right if left is None else left


def _transpose(
    ct: Any, args: Sequence[Any], *, dimension_numbers: Any, precision: Any = None, preferred_element_type: Any = None
) -> list[Any]:
    (lc, rc), (lb, rb) = dimension_numbers
    lhs, rhs = args
    if both_unknown("dot_general", lhs, rhs):
        return [None, None]
    if type(lhs) is UndefinedPrimal:
        return [_pull(ct, lhs.aval, rhs, (lc, rc), (lb, rb), precision, first=True), None]
    return [None, _pull(ct, rhs.aval, lhs, (rc, lc), (rb, lb), exchanged(precision), first=False)]


def _pull(ct: Any, aval: ShapedArray, other: Any, contract: Any, batch: Any, precision: Any, *, first: bool) -> Any:
    """Return the cotangent of the operand with `aval`: contract ct and `other` over the latter's free dimensions."""
    (mc, oc), (mb, ob) = contract, batch
    result, known = aval_of(ct), aval_of(other)
    if known.dtype != result.dtype:  # preferred_element_type was wider than the operands
        other = structural.convert_element_type(other, new_dtype=result.dtype)
    mf, of = free_dims(aval.ndim, mc, mb), free_dims(known.ndim, oc, ob)
    # ct has batch, left free, right free dimensions; those of `other` come last if this operand is the left one.
    at = len(mb) + (len(mf) if first else 0)
    sides = (tuple(range(at, at + len(of))), tuple(range(len(mb)))), (tuple(of), tuple(ob))
    operands, contracted = (ct, other), [m for _, m in sorted(zip(oc, mc, strict=True))]
    order = [*mb, *mf, *contracted]  # of the dimensions of the product: the contracted ones as they are in `other`
    turned = [*mb, *contracted, *mf]
    if order != sorted(order) and turned == sorted(turned):  # the other way round it needs no transposition
        operands, sides, order = (other, ct), sides[::-1], turned
        precision = exchanged(precision)
    numbers = tuple(zip(*sides, strict=True))
    got = dot_general(*operands, dimension_numbers=numbers, precision=precision, preferred_element_type=None)
    if order != sorted(order):
        got = structural.transpose(got, permutation=tuple(sorted(range(len(order)), key=order.__getitem__)))
    return got if aval.dtype == result.dtype else structural.convert_element_type(got, new_dtype=aval.dtype)


def _batch(axis: Any, args: Any, dims: Any, *, dimension_numbers: Any, **params: Any) -> Any:
    (lc, rc), (lb, rb) = dimension_numbers
    (lhs, rhs), (ld, rd) = args, dims
    up = lambda ds, at: ds if at is None else tuple(d + (d >= at) for d in ds)
    lc, lb, rc, rb = up(lc, ld), up(lb, ld), up(rc, rd), up(rb, rd)
    if ld is not None and rd is not None:
        numbers, out = ((lc, rc), ((ld, *lb), (rd, *rb))), 0
    elif ld is not None:  # one more free dimension of the left operand
        numbers, out = ((lc, rc), (lb, rb)), len(lb) + free_dims(aval_of(lhs).ndim, lc, lb).index(ld)
    else:
        free: list[Any] = free_dims(aval_of(rhs).ndim, rc, rb)
        left = aval_of(lhs).ndim - len(lc) - len(lb)
        if free == [rd] and left and aval_of(lhs).dtype == aval_of(rhs).dtype:
            # One matrix times many vectors. With the operands exchanged the mapped axis comes first, where `vmap` and
            # the operations after it want it, and neither the vectors nor the result are transposed.
            params["precision"] = exchanged(params["precision"])
            return dot_general(rhs, lhs, dimension_numbers=((rc, lc), (rb, lb)), **params), len(lb)
        numbers, out = ((lc, rc), (lb, rb)), len(lb) + left + free.index(rd)
    return dot_general(lhs, rhs, dimension_numbers=numbers, **params), out


def _multiplications(operands: Sequence[ShapedArray], result: ShapedArray, params: dict[str, Any]) -> float:
    (contracted, _), _ = params["dimension_numbers"]
    return result.size * math.prod(operands[0].shape[i] for i in contracted)


def _samples() -> list[SampleInput]:
    one = dot_sample
    return [
        one((3, 4), (4, 2), ((1,), (0,))),
        one((), (), ((), ())),
        one((4,), (4,), ((0,), (0,))),
        one((2, 3), (4,), ((), ())),
        one((0, 4), (4, 2), ((1,), (0,))),
        one((3, 0), (0, 2), ((1,), (0,))),
        one((2, 3, 4), (4, 2, 5), ((2,), (0,)), ((0,), (1,)), precision="highest"),
        one((4, 2, 3, 5), (5, 3, 4), ((2, 3), (1, 0)), ((0,), (2,))),
        one((3, 5, 4), (4, 3), ((2, 0), (0, 1)), precision=("default", "high")),
        one((3, 4), (4, 2), ((1,), (0,)), dtype="complex64"),
        one((3, 4), (4, 2), ((1,), (0,)), dtype="bfloat16"),
        one((3, 4), (4, 2), ((1,), (0,)), dtype="bfloat16", preferred_element_type=dtypes.float32),
        one((3, 4), (4, 2), ((1,), (0,)), dtype="float64"),
        one((3, 4), (4, 2), ((1,), (0,)), dtype="int32"),
        one((3, 4), (4, 2), ((1,), (0,)), dtype="int8", preferred_element_type=dtypes.int32),
        one((3, 4), (4, 2), ((1,), (0,)), dtype="bool"),
    ]


dot_general = Product(
    "dot_general",
    shape=_shape,
    ref=_ref,
    lower=Lowering("dot_general", _lower, WIDENED, through_float32(_emit), UNROLLED, BY_PARTS, EXCHANGED, TURNED),
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    samples=_samples,
    multiplications=_multiplications,
)
