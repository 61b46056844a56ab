"""The maker of reductions over chosen dimensions, and the identities of maximum and minimum."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import NotDefined, Primitive, SampleInput, aval_of
from functorch_like.errors import DtypeError
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.base.accumulating import accumulated
from functorch_like.primitives.base.shapes import check_axes, reduced_axes


def without(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """A shape without some dimensions."""
    return tuple(n for d, n in enumerate(shape) if d not in axes)


def spread(y: Any, shape: Sequence[int], axes: Sequence[int]) -> Any:
    """Broadcast the result of reducing over axes back to the shape of the operand."""
    kept = tuple(d for d in range(len(shape)) if d not in axes)
    return structural.broadcast_in_dim(y, shape=tuple(shape), broadcast_dimensions=kept)


def extreme_jvp(primitive: Callable[[], Primitive], *, may_lack: bool = False) -> Callable[..., Any]:
    """Return the jvp rule of a greatest or least element: elements that tie share the derivative evenly.

    Args:
        primitive: returns the primitive.
        may_lack: True if the result may equal no element; its derivative is then zero instead of NaN.
    """

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], *, axes: tuple[int, ...]) -> tuple[Any, Any]:
        (x,), (dx,) = primals, tangents
        aval = aval_of(x)
        x = structural.materialize(x)
        out = primitive()(x, axes=axes)
        if not aval.size:
            return out, None
        hits = structural.convert_element_type(elementwise.eq(x, spread(out, aval.shape, axes)), new_dtype=aval.dtype)
        total = structural.reduce_sum(elementwise.mul(dx, hits), axes=axes)
        count = structural.reduce_sum(hits, axes=axes)
        if may_lack:
            count = elementwise.max(count, structural.full_like(count, 1))
        return out, elementwise.div(total, count)

    return jvp


def roomy(x: Any) -> Any:
    """A NumPy array in a dtype that NumPy computes with: single precision for less, bytes for halves of bytes."""
    if x.dtype.itemsize < 4 and dtypes.is_inexact(x.dtype):
        return x.astype(np.float32)
    return x.astype({"int4": np.int8, "uint4": np.uint8}.get(x.dtype.name, x.dtype))


def lowest(dtype: Any) -> Any:
    """The identity of maximum: -inf, the smallest integer, False."""
    return _extreme(np.dtype(dtype), "min")


def highest(dtype: Any) -> Any:
    """The identity of minimum: inf, the largest integer, True."""
    return _extreme(np.dtype(dtype), "max")


def _extreme(dtype: Any, end: str) -> Any:
    if dtype == dtypes.bool_:
        return np.array(end == "max")
    if dtypes.is_integer(dtype):
        return np.array(getattr(dtypes.iinfo(dtype), end), dtype)
    with np.errstate(all="ignore"):
        value = np.array(-math.inf if end == "min" else math.inf).astype(dtype)
    # float8_e4m3fn and its like have no infinity.
    return value if np.isinf(value.astype(np.float32)) else np.array(getattr(dtypes.finfo(dtype), end), dtype)


def reduction(
    name: str,
    kind: str,
    fold: Callable[..., Any],
    identity: Callable[[Any], Any],
    accepts: Callable[[Any], bool],
    what: str,
    jvp: Any,
    samples: Callable[[], list[SampleInput]],
    lower: Any = None,
    exact: bool = False,
) -> Primitive:
    """A primitive that folds dimensions with an associative operation.

    Args:
        name: of the primitive.
        kind: the StableHLO operation that folds two values.
        fold: `(x, axes, identity) -> ndarray`, in NumPy.
        identity: of the operation, for a dtype.
        accepts: whether a dtype is taken.
        what: the dtypes taken, in words.
        jvp: the derivative rule.
        samples: the samples rule.
        lower: the lowering rule; None: a fold by `kind`.
        exact: True if the reference gives the bits of the compiled program.
    """

    def shape(x: ShapedArray, *, axes: tuple[int, ...]) -> ShapedArray:
        check_axes(axes, x.ndim)
        if not accepts(x.dtype):
            raise DtypeError(f"{name} takes {what}, not {x!r}", fix="convert it with astype")
        return x.update(shape=without(x.shape, axes))

    def ref(x: Any, *, axes: tuple[int, ...]) -> Any:
        small = x.dtype.itemsize < 4 and dtypes.is_inexact(x.dtype)
        wide = x.astype(np.float32) if small else x
        return np.asarray(fold(wide, axes, identity(x.dtype).astype(wide.dtype))).astype(x.dtype)

    def folded(e: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
        (out,) = e.outs
        if kind in ("and", "or", "xor"):
            x = e.unsplit(x, axes)
        return e.reduce(kind, x, identity(out.dtype), axes, out)

    def batch(axis: Any, args: Sequence[Any], dims: Sequence[Any], *, axes: tuple[int, ...]) -> Any:
        axes, out = reduced_axes(axes, dims[0])
        return primitive(args[0], axes=axes), out

    no = NotDefined(f"{name} is not linear in its operand; differentiate it with its jvp rule")
    primitive = Primitive(
        name, shape=shape, ref=ref, lower=lower or (accumulated(folded) if kind == "multiply" else folded), jvp=jvp,
        transpose=no, batch=batch, samples=samples, kind="reduction", exact=exact,
    )  # fmt: skip
    return primitive


def sampled(*dtype_names: str, domain: tuple[float, float] = (-2.0, 2.0), smooth: bool = True) -> Any:
    """Samples of a reduction: shapes in the first dtype, one shape in the others."""
    first, *others = dtype_names
    shapes = [((3,), (0,)), ((2, 3), (0,)), ((2, 3, 4), (0, 2)), ((2, 3), ()), ((), ()), ((0, 3), (0,)), ((0, 3), (1,))]

    def samples() -> list[SampleInput]:
        finite = lambda s, a: smooth and all(s[d] for d in a)  # the extreme of nothing is infinite
        made = [SampleInput((ShapedArray(s, first),), {"axes": a}, domain, finite(s, a)) for s, a in shapes]
        return made + [SampleInput((ShapedArray((2, 3), d),), {"axes": (1,)}, domain, smooth) for d in others]

    return samples
