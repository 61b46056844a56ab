"""Collectives: sums and extremes over a mapped axis that has a name, and the position along it.

They exist inside `vmap(..., axis_name=...)`: the batch rule of the vmap that has the name reduces over the hidden
dimension, and those of other vmaps let them pass. Inside `shard_map` XLA computes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, NotDefined, Primitive, aval_of, state
from functorch_like.errors import AxisNameError
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.collectives import lowering
from functorch_like.primitives.reductions.reductions import reduce_max, reduce_min

NO_REF = NotDefined("a collective has no meaning without its named axis; the tests run it inside vmap")


def axis_size(axis_name: Any) -> int:
    """The size of the innermost axis in scope with this name.

    Raises:
        AxisNameError: where there is none.
    """
    for name, size in reversed(state.axes):
        if name == axis_name:
            return size
    bound = ", ".join(repr(name) for name, _ in state.axes) or "none"
    raise AxisNameError(
        f"no axis named {axis_name!r} is in scope; those that are: {bound}",
        fix=f"call it inside vmap(..., axis_name={axis_name!r}), or inside shard_map over a mesh that has it",
    )


def shape_in_scope(x: ShapedArray, *, axis_name: Any) -> ShapedArray:
    """Return the aval of an operand, whose axis is in scope."""
    axis_size(axis_name)
    return x


def _collective(
    name: str,
    kind: str,
    over: Callable[..., Any],
    alone: Callable[..., Any],
    jvp: Any,
    transpose: Any,
    linear: str | None = None,
) -> Primitive:
    """A primitive that reduces over a named axis.

    Args:
        name: of the primitive.
        kind: the operation of StableHLO that folds.
        over: `(x, dim) -> reduced`, for the hidden dimension of that axis.
        alone: `(x, size) -> reduced`, for a value that is the same all along that axis.
        jvp: the derivative rule.
        transpose: the transposition rule.
    """

    def batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any], *, axis_name: Any) -> Any:
        (x,), (at,) = args, dims
        if axis_name != axis.name:
            return primitive(x, axis_name=axis_name), at
        return (alone(x, axis.size) if at is None else over(x, at)), None

    primitive = Primitive(
        name,
        shape=shape_in_scope,
        ref=NO_REF,
        lower=lowering.reduce(kind),
        jvp=jvp,
        transpose=transpose,
        batch=batch,
        samples=list,
        linear=linear,
    )
    return primitive


def _psum_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    return psum(*primals, **params), psum(*tangents, **params)


psum = _collective(
    "psum",
    "add",
    lambda x, at: structural.reduce_sum(x, axes=(at,)),
    lambda x, size: elementwise.mul(x, structural.full_like(x, size)),
    _psum_jvp,
    lambda ct, args, **params: [psum(ct, **params)],  # each element of the axis contributes to all of them
    linear="jointly",
)


def _extreme_jvp(primitive: Callable[[], Primitive]) -> Any:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        """Elements that tie share the derivative evenly."""
        (x,), (dx,) = primals, tangents
        out = primitive()(x, **params)
        hits = structural.convert_element_type(elementwise.eq(x, out), new_dtype=aval_of(x).dtype)
        return out, elementwise.div(psum(elementwise.mul(dx, hits), **params), psum(hits, **params))

    return jvp


_no = NotDefined("an extreme is not linear in its operand; differentiate it with its jvp rule")
_same: Callable[[Any, int], Any] = lambda x, size: x
pmax = _collective("pmax", "maximum", lambda x, at: reduce_max(x, axes=(at,)), _same, _extreme_jvp(lambda: pmax), _no)
pmin = _collective("pmin", "minimum", lambda x, at: reduce_min(x, axes=(at,)), _same, _extreme_jvp(lambda: pmin), _no)


# ------------------------------------------------------------------------------------------------------- axis_index
def _index_shape(*, axis_name: Any) -> ShapedArray:
    axis_size(axis_name)
    return ShapedArray((), np.int32)


def _index_batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any], *, axis_name: Any) -> Any:
    return structural.iota(dtype=dtypes.int32, shape=(axis.size,), dimension=0), 0


axis_index = Primitive(
    "axis_index",
    shape=_index_shape,
    ref=NO_REF,
    lower=lowering.axis_index,
    jvp=NotDefined("axis_index has no operand to differentiate with respect to; none is needed"),
    transpose=NotDefined("axis_index is an integer and has no cotangent; none is needed"),
    batch=_index_batch,
    samples=list,
)
