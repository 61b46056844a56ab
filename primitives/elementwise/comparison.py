"""Comparisons, and choosing by them: eq ne lt le gt ge, eq_to le_to lt_to, is_finite, select_n, clamp."""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, NotDefined, Primitive, SampleInput, UndefinedPrimal, aval_of
from functorch_like.errors import DtypeError, ShapeError
from functorch_like.primitives.base.elementwise_makers import (
    KIND,
    align,
    check_kind,
    nondifferentiable,
    quiet,
    samples_of,
)
from functorch_like.primitives.base.shapes import broadcast_in_dim, move, widen, zeros
from functorch_like.primitives.elementwise.arithmetic import add, compare
from functorch_like.primitives.elementwise.bitwise import and_, signed


def _comparison(name: str, ref: Any, takes: str) -> Primitive:
    def lower(e: Any, x: Any, y: Any) -> Any:
        return compare(e, name.upper(), x, y, e.ins[0])

    return nondifferentiable(
        name, ref, lower, count=2, takes=takes, gives=lambda dtype: dtypes.bool_, fusible=True, exact=True
    )


eq = _comparison("eq", np.equal, "fciub")
ne = _comparison("ne", np.not_equal, "fciub")
lt = _comparison("lt", np.less, "fiub")
le = _comparison("le", np.less_equal, "fiub")
gt = _comparison("gt", np.greater, "fiub")
ge = _comparison("ge", np.greater_equal, "fiub")


def _total(name: str, ref: Any) -> Primitive:
    """A comparison in the total order of IEEE 754: -NaN < -inf < ... < -0 < 0 < ... < inf < NaN, by bits."""

    def key(x: np.ndarray) -> np.ndarray:
        if KIND[x.dtype] != "f":
            return x
        raw = signed(x)
        return np.where(raw < 0, raw ^ np.iinfo(raw.dtype).max, raw)

    def lower(e: Any, x: Any, y: Any) -> Any:
        aval = e.ins[0]
        if KIND[aval.dtype] != "f":
            return compare(e, name.upper(), x, y, aval)
        return e.compare(name.upper(), x, y, aval.update(dtype=dtypes.bool_, weak_type=False), "TOTALORDER")

    return nondifferentiable(
        f"{name}_to", lambda x, y: ref(key(x), key(y)), lower, count=2, takes="fiub", gives=lambda dtype: dtypes.bool_
    )


eq_to = _total("eq", np.equal)
le_to = _total("le", np.less_equal)
lt_to = _total("lt", np.less)
is_finite = nondifferentiable(
    "is_finite", np.isfinite, lambda e, x: e.op("stablehlo.is_finite", [x], e.outs), takes="f",
    gives=lambda dtype: dtypes.bool_, exact=True,
    samples=lambda: [
        *samples_of(1, "f", (-2.0, 2.0), ({},), False),
        *(
            SampleInput((np.array([1, np.inf, 0, -np.inf, np.nan], d),))
            for d in (np.float32, np.float64, dtypes.bfloat16)
        ),
    ],
    fusible=True,
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ select_n
def _select_shape(which: ShapedArray, *cases: ShapedArray) -> ShapedArray:
    if not cases or (which.dtype == dtypes.bool_ and len(cases) != 2):
        raise ShapeError(
            f"select_n by a {which!r} has {len(cases)} cases",
            fix="a bool chooses between two (False, True); an int32 between any number",
        )
    if which.dtype not in (dtypes.bool_, dtypes.int32):
        raise DtypeError(f"select_n chooses by bool or int32, got {which!r}", fix="compare, or convert to int32")
    first = cases[0]
    if any(c.shape != first.shape or c.dtype != first.dtype for c in cases):
        raise ShapeError(f"cases {', '.join(map(repr, cases))} differ", fix="give them one shape and one dtype")
    if which.shape not in ((), first.shape):
        raise ShapeError(
            f"{which!r} does not fit cases of shape {first.shape}", fix="give a scalar, or the cases' shape"
        )
    return first.update(weak_type=all(c.weak_type for c in cases))


def _select_ref(which: np.ndarray, *cases: np.ndarray) -> Any:
    index = np.broadcast_to(np.clip(np.asarray(which).astype(int), 0, len(cases) - 1), cases[0].shape)
    out = np.array(cases[0])
    for i, case in enumerate(cases):
        out[index == i] = case[index == i]
    return out


def _select_lower(e: Any, which: Any, *cases: Any) -> Any:
    aval, outs = e.ins[0], e.outs
    if aval.dtype == dtypes.bool_:
        return e.op("stablehlo.select", [which, cases[1], cases[0]], outs)

    def choose(first: int, last: int) -> Any:  # halve the cases: an index beyond either end takes the end
        if last - first == 1:
            return cases[first]
        middle = (first + last) // 2
        below = compare(e, "LT", which, e.full(middle, aval), aval)
        return e.op("stablehlo.select", [below, choose(first, middle), choose(middle, last)], outs)

    return choose(0, len(cases))


def _select_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    which, *cases = primals
    filled = [zeros(aval_of(c)) if t is None else t for c, t in zip(cases, tangents[1:], strict=True)]
    return select_n(*primals), select_n(which, *filled)


def _select_transpose(ct: Any, args: Any) -> list[Any]:
    which, *cases = args
    nothing = zeros(aval_of(ct))
    return [
        None,
        *[
            select_n(which, *[ct if j == i else nothing for j in range(len(cases))])
            if isinstance(case, UndefinedPrimal)
            else None
            for i, case in enumerate(cases)
        ],
    ]


def _select_batch(axis: BatchAxis, args: Any, dims: Any) -> tuple[Any, int]:
    which, *cases = args
    scalar = aval_of(which).ndim == (dims[0] is not None)
    if scalar and dims[0] is None:  # one choice for all
        cases, at = align(axis, cases, dims[1:])
        return select_n(which, *cases), at
    if not scalar or aval_of(cases[0]).ndim == (dims[1] is not None):
        moved, at = align(axis, args, dims)
        return select_n(*moved), at
    # One choice for each element of the batch: repeat it over the cases.
    if all(d is None for d in dims[1:]):
        cases, at = [widen(c, axis.size) for c in cases], 0
    else:
        cases, at = align(axis, cases, dims[1:])
    which = broadcast_in_dim(which, shape=aval_of(cases[0]).shape, broadcast_dimensions=(at,))
    return select_n(which, *cases), at


def _select_samples() -> list[SampleInput]:
    def of(which: Any, count: int, shape: Any, dtype: str = "float32") -> SampleInput:
        return SampleInput((which, *[ShapedArray(shape, dtype)] * count))

    return [
        of(np.array(True), 2, ()), of(np.array(False), 2, (2, 3)), of(np.array([True, False, True]), 2, (3,)),
        of(np.arange(24).reshape(2, 3, 4) % 3 == 0, 2, (2, 3, 4)), of(np.zeros((0, 2), bool), 2, (0, 2)),
        of(np.array([0, 2, 1, 3, 2], np.int32), 4, (5,)), of(np.array(2, np.int32), 3, (2, 2)),
        of(np.array([0, 0], np.int32), 1, (2,)), of(np.array([-1, 1, 7], np.int32), 2, (3,)),
        of(np.array([True, False]), 2, (2,), "int32"), of(np.array([True, False]), 2, (2,), "bool"),
        of(np.array([True, False]), 2, (2,), "complex64"), of(np.array([True, False]), 2, (2,), "bfloat16"),
    ]  # fmt: skip


#: The case that `which` names, element by element: False is the first and True the second. A scalar chooses for all.
select_n = Primitive(
    "select_n", shape=_select_shape, ref=_select_ref, lower=_select_lower, jvp=_select_jvp, transpose=_select_transpose,
    batch=_select_batch, samples=_select_samples,
    kind="elementwise", linear="jointly", fusible=True, exact=True, selects=True,
)  # fmt: skip


# --------------------------------------------------------------------------------------------------------------- clamp
def _clamp_shape(lo: ShapedArray, x: ShapedArray, hi: ShapedArray) -> ShapedArray:
    check_kind("clamp", "fiu", x)
    if lo.dtype != x.dtype or hi.dtype != x.dtype:
        raise DtypeError(f"bounds {lo!r} and {hi!r} of {x!r} differ in dtype", fix="convert them with astype")
    if lo.shape not in ((), x.shape) or hi.shape not in ((), x.shape):
        raise ShapeError(f"bounds {lo!r} and {hi!r} do not fit {x!r}", fix="give scalars, or arrays of its shape")
    return x.update(weak_type=lo.weak_type and x.weak_type and hi.weak_type)


def _like(x: Any, bound: Any) -> Any:
    shape = aval_of(x).shape
    return bound if aval_of(bound).shape == shape else broadcast_in_dim(bound, shape=shape, broadcast_dimensions=())


def _clamp_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    lo, x, hi = primals
    low, high = _like(x, lo), _like(x, hi)
    total = None
    for t, inside in zip(
        tangents, (lambda: gt(low, x), lambda: and_(gt(x, low), lt(x, high)), lambda: lt(high, x)), strict=True
    ):
        if t is not None:
            part = select_n(inside(), zeros(aval_of(x)), _like(x, t))
            total = part if total is None else add(total, part)
    return clamp(lo, x, hi), total


def _clamp_batch(axis: BatchAxis, args: Any, dims: Any) -> tuple[Any, int]:
    lo, x, hi = args
    x, at = (widen(x, axis.size), 0) if dims[1] is None else (x, dims[1])
    whole = aval_of(x).shape

    def bound(b: Any, d: int | None) -> Any:
        ndim = aval_of(b).ndim
        if d is None:
            return widen(b, axis.size, at) if ndim else b
        return move(b, d, at) if ndim == len(whole) else broadcast_in_dim(b, shape=whole, broadcast_dimensions=(at,))

    return clamp(bound(lo, dims[0]), x, bound(hi, dims[2])), at


def _clamp_samples() -> list[SampleInput]:
    def of(lo: Any, shape: Any, hi: Any, dtype: str = "float32") -> SampleInput:
        return SampleInput((np.asarray(lo, dtype), ShapedArray(shape, dtype), np.asarray(hi, dtype)))

    return [
        of(-0.5, (), 0.7), of(-0.5, (2, 3, 4), 0.7), of(-0.5, (0, 2), 0.7), of([-1.0, 0.0, 0.5], (3,), [0.5, 1.0, 0.8]),
        of(-0.5, (3,), [0.5, 1.0, 0.8]), of(-0.5, (3,), 0.5, "float64"), of(-0.5, (3,), 0.5, "bfloat16"),
        of(-1, (3,), 1, "int32"), of(1, (3,), 2, "uint8"),
    ]  # fmt: skip


#: min(max(lo, x), hi); the bounds are scalars, or of the shape of x.
clamp = Primitive(
    "clamp",
    shape=_clamp_shape,
    ref=quiet(lambda lo, x, hi: np.minimum(np.maximum(lo, x), hi)),
    lower=lambda e, lo, x, hi: e.op("stablehlo.clamp", [lo, x, hi], e.outs),
    jvp=_clamp_jvp,
    transpose=NotDefined("clamp is not linear; a jvp rule must not apply it to a tangent"),
    batch=_clamp_batch,
    samples=_clamp_samples,
    kind="elementwise",
    fusible=True,
)
