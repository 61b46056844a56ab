"""Reductions over chosen dimensions: products, extremes and where they are, logical and bitwise folds.

`axes` are sorted, non-negative and distinct; the reduced dimensions disappear. (`reduce_sum` is in base/shapes.py: it
is the transpose of broadcasting.) Reducing nothing gives the identity: 1, the lowest or highest value, True, False.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import NotDefined, Primitive, SampleInput, aval_of
from functorch_like.errors import DtypeError, ShapeError
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.base.integer_folds_cpu import by_columns
from functorch_like.primitives.base.lowering import Lowering, slow_compile
from functorch_like.primitives.base.shapes import check_axes, reduced_axes
from functorch_like.primitives.elementwise.extremes_cpu import is_nan
from functorch_like.primitives.reductions.arg_extremes_columns_cpu import by_places
from functorch_like.primitives.reductions.arg_extremes_cpu import by_blocks
from functorch_like.primitives.reductions.arg_extremes_lanes_cpu import by_lanes
from functorch_like.primitives.reductions.arg_extremes_short_cpu import by_turns
from functorch_like.primitives.reductions.extremes_cpu import beside_sums, extreme
from functorch_like.primitives.reductions.makers import extreme_jvp, highest, lowest, reduction, sampled, without


# ------------------------------------------------------------------------------------------------------- products
def _prod_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """Products and their derivatives, pairwise up a tree: (a, da)(b, db) = (ab, da b + a db); no division by zeros."""
    (x,), (dx,) = primals, tangents
    aval = aval_of(x)
    kept = tuple(d for d in range(aval.ndim) if d not in axes)
    order, n = (*axes, *kept), math.prod(aval.shape[a] for a in axes)
    flat = lambda v: structural.reshape(
        structural.transpose(v, permutation=order), shape=(n, *without(aval.shape, axes))
    )
    out = reduce_prod(x, axes=axes)
    if n == 0:
        return out, None
    p, t = flat(x), flat(dx)
    part = lambda v, a, b: structural.slice(
        v, start_indices=(a, *[0] * len(kept)), limit_indices=(b, *aval_of(v).shape[1:]), strides=None
    )
    while n > 1:
        h = n // 2
        (p1, p2, p3), (t1, t2, t3) = ([part(v, 0, h), part(v, h, 2 * h), part(v, 2 * h, n)] for v in (p, t))
        p, t = elementwise.mul(p1, p2), elementwise.add(elementwise.mul(t1, p2), elementwise.mul(p1, t2))
        if n % 2:
            p, t = structural.concatenate(p, p3, dimension=0), structural.concatenate(t, t3, dimension=0)
        n -= h
    return out, structural.reshape(t, shape=aval_of(out).shape)


reduce_prod = reduction(
    "reduce_prod",
    "multiply",
    lambda x, axes, one: np.prod(x, axes, dtype=x.dtype),
    lambda dtype: np.array(1, dtype),
    lambda dtype: dtype != dtypes.bool_,
    "numbers",
    _prod_jvp,
    sampled("float32", "int32", "complex64", "bfloat16"),
)


# ------------------------------------------------------------------------------------------------------- extremes
_real = lambda dtype: not dtypes.is_complex(dtype)


def _keeps_nan(name: str, kind: str, identity: Callable[[Any], Any]) -> Lowering:
    def standard(e: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
        return extreme(e, kind, x, e.ins[0], axes, e.outs[0], identity)

    return Lowering(name, standard, beside_sums(kind, identity), by_columns(kind, identity))


def _extreme(
    name: str, kind: str, fold: Any, identity: Callable[[Any], Any], *dtype_names: str, lower: Any = None
) -> Primitive:
    primitive = reduction(
        name,
        kind,
        lambda x, axes, start: fold(x, axes, initial=start),
        identity,
        _real,
        "real numbers and booleans",
        extreme_jvp(lambda: primitive),
        sampled(*dtype_names),
        lower,
    )
    return primitive


_SAMPLED = ("float32", "int32", "uint8", "bool", "bfloat16")
reduce_max = _extreme(
    "reduce_max", "maximum", np.max, lowest, *_SAMPLED, lower=_keeps_nan("reduce_max", "maximum", lowest)
)
reduce_min = _extreme(
    "reduce_min", "minimum", np.min, highest, *_SAMPLED, lower=_keeps_nan("reduce_min", "minimum", highest)
)
# The shift of a softmax. Its sum is NaN where an element is, whatever the shift, which need not cost a look for NaN.
reduce_max_number = _extreme("reduce_max_number", "maximum", np.max, lowest, "float32", "bfloat16")


# ---------------------------------------------------------------------------------------------- logical and bitwise
def _bitwise(name: str, kind: str, ufunc: np.ufunc, identity: Callable[[Any], Any]) -> Primitive:
    """A fold of bits; of booleans, a logical one."""
    return reduction(
        name,
        kind,
        lambda x, axes, start: ufunc.reduce(x, axes, initial=start),
        identity,
        lambda dtype: dtypes.is_integer(dtype) or dtype == dtypes.bool_,
        "integers and booleans",
        NotDefined("integers and booleans have no derivative; use stop_gradient where a float is involved"),
        sampled("bool", "int32", "uint8", smooth=False),
        exact=True,
    )


_zero = lambda dtype: np.zeros((), dtype)
_ones = lambda dtype: np.array(True) if dtype == dtypes.bool_ else np.bitwise_not(_zero(dtype))
reduce_and = _bitwise("reduce_and", "and", np.bitwise_and, _ones)
reduce_or = _bitwise("reduce_or", "or", np.bitwise_or, _zero)
reduce_xor = _bitwise("reduce_xor", "xor", np.bitwise_xor, _zero)


# ------------------------------------------------------------------------------------------------- where extremes are
def _places() -> list[SampleInput]:
    """The samples rule of both."""
    ties = np.array([[1, 3, 3, 0], [0, 0, 1, 1]], np.float32)
    nans = np.array([1, np.nan, 5, np.nan], np.float32)
    made = [((3,), "float32", 0, "int32"), ((2, 3), "float32", 1, "int64"), ((2, 3, 4), "int32", 1, "int32")]
    made += [
        ((3,), "bool", 0, "int32"),
        ((3,), "bfloat16", 0, "int32"),
        ((4,), "uint8", 0, "int16"),
        ((0, 2), "float32", 1, "int32"),
    ]
    return [
        *(
            SampleInput((ShapedArray(s, d),), {"axes": (a,), "index_dtype": np.dtype(i)}, smooth=False)
            for s, d, a, i in made
        ),
        *(SampleInput((x,), {"axes": (x.ndim - 1,), "index_dtype": dtypes.int32}, smooth=False) for x in (ties, nans)),
    ]


def _arg(name: str, kind: str, find: Callable[..., Any], identity: Callable[[Any], Any]) -> Primitive:
    """A primitive that gives the index of the first extreme element along one dimension; NaN counts as extreme."""

    def shape(x: ShapedArray, *, axes: tuple[int, ...], index_dtype: Any) -> ShapedArray:
        check_axes(axes, x.ndim)
        if len(axes) != 1:
            raise ShapeError(f"axes={axes} must name one dimension of {x!r}", fix="reshape the dimensions into one")
        if not _real(x.dtype):
            raise DtypeError(f"{name} takes real numbers and booleans, not {x!r}", fix="compare absolute values")
        if not dtypes.is_integer(np.dtype(index_dtype)):
            raise DtypeError(f"index_dtype={np.dtype(index_dtype).name} is not an integer", fix="use int32 or int64")
        if x.shape[axes[0]] == 0:
            raise ShapeError(f"dimension {axes[0]} of {x!r} is empty and has no extreme", fix="test the size first")
        if x.shape[axes[0]] - 1 > int(dtypes.iinfo(index_dtype).max):
            raise DtypeError(
                f"index_dtype={np.dtype(index_dtype).name} cannot hold positions in dimension {axes[0]} of {x!r}",
                fix="use int32 or int64",
            )
        return ShapedArray(without(x.shape, axes), index_dtype)

    def ref(x: Any, *, axes: tuple[int, ...], index_dtype: Any) -> Any:
        wide = x.astype(np.float32) if x.dtype.itemsize < 4 and dtypes.is_inexact(x.dtype) else x
        return np.asarray(find(wide, axes[0])).astype(index_dtype)

    def found(e: Any, x: Any, aval: ShapedArray, axis: int, out: ShapedArray, nan: bool = True) -> Any:
        # The extreme, then the least index that attains it: docs/lowerings.md, faster than a reduction of pairs.
        x = e.materialized(x, aval)
        small = aval.update(shape=out.shape)
        kept = [d for d in range(aval.ndim) if d != axis]
        if nan:
            best = extreme(e, kind, x, aval, (axis,), small, identity)
        else:
            best = e.reduce(kind, x, identity(aval.dtype), (axis,), small)
        best = e.broadcast_in_dim(best, aval, kept)
        flags, index = aval.update(dtype=dtypes.bool_), aval.update(dtype=out.dtype)
        compared = (
            "FLOAT" if dtypes.is_inexact(aval.dtype) else "SIGNED" if dtypes.is_signed(aval.dtype) else "UNSIGNED"
        )
        hit = e.compare("EQ", x, best, flags, compared)
        if nan and compared == "FLOAT":  # best is NaN where any element is, and NaN equals nothing
            hit = e.op("stablehlo.or", [hit, is_nan(e, x, aval)], [flags])
        places = e.op("stablehlo.iota", [], [index], attrs={"iota_dimension": e.i64(axis)})
        last = e.full(highest(out.dtype), index)
        result = e.op("stablehlo.select", [hit, places, last], [index])
        return e.reduce("minimum", result, highest(out.dtype), (axis,), out)

    def standard(e: Any, x: Any, *, axes: tuple[int, ...], index_dtype: Any) -> Any:
        return found(e, x, e.ins[0], axes[0], e.outs[0])

    forms = (
        by_turns(found, kind),
        by_places(found, kind, identity),
        by_blocks(found, kind, identity),
        by_lanes(found, kind),
    )
    lower = slow_compile(Lowering(name, standard, *forms))

    def batch(axis: Any, args: Sequence[Any], dims: Sequence[Any], *, axes: tuple[int, ...], index_dtype: Any) -> Any:
        axes, out = reduced_axes(axes, dims[0])
        return primitive(args[0], axes=axes, index_dtype=index_dtype), out

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, None]:
        return primitive(primals[0], **params), None

    no = NotDefined(f"{name} gives integers, which have no derivative; gather the extreme values with it instead")
    primitive = Primitive(
        name, shape=shape, ref=ref, lower=lower, jvp=jvp, transpose=no, batch=batch, samples=_places, kind="reduction"
    )
    return primitive


argmax = _arg("argmax", "maximum", np.argmax, lowest)
argmin = _arg("argmin", "minimum", np.argmin, highest)
