"""scatter_apply: a function of the user's applied to windows of an operand, as often as an index occurs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import core
from functorch_like.avals import ShapedArray
from functorch_like.compiler.lower import emit
from functorch_like.core import NotDefined, Primitive, SampleInput, aval_of
from functorch_like.errors import ArgumentError, UnsupportedError
from functorch_like.interpreters import forward
from functorch_like.ir.jaxpr import Jaxpr
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.higher_order.call import call
from functorch_like.primitives.higher_order.user_reductions.common import apply_elementwise
from functorch_like.primitives.indexing.dimension_numbers import ScatterDimensionNumbers
from functorch_like.primitives.indexing.gather_and_scatter_add import read_back
from functorch_like.primitives.indexing.scatter_makers import scatter_batch, scatter_lower, scatter_ref, scatter_shape
from functorch_like.primitives.updates.scatter import scatter


def _shape(*avals: ShapedArray, jaxpr: Jaxpr, **params: Any) -> ShapedArray:
    scalar = [ShapedArray((), avals[0].dtype)]
    if [a.strong() for a in jaxpr.in_avals] != scalar or [a.strong() for a in jaxpr.out_avals] != scalar:
        raise ArgumentError(
            f"the function takes {jaxpr.in_avals} and gives {jaxpr.out_avals}; the operand has elements {scalar[0]!r}",
            fix="it must take a scalar of the operand's dtype and give one",
        )
    return scatter_shape("scatter_apply", lambda dtype: True, *avals, **params)


def _ref(operand: Any, indices: Any, updates: Any, *, jaxpr: Jaxpr, **params: Any) -> Any:
    def apply(old: Any, _: Any) -> Any:
        new = [call.ref(np.asarray(x, old.dtype), jaxpr=jaxpr, spec=None)[0] for x in old.ravel()]
        return np.array(new, old.dtype).reshape(old.shape)

    return scatter_ref(apply, operand, indices, updates, **params)


def _lower(e: Any, operand: Any, indices: Any, updates: Any, *, jaxpr: Jaxpr, **params: Any) -> Any:
    body = lambda inner, old, new, aval: emit(inner, jaxpr, [old], inlined=True)[0]
    return scatter_lower(body, e, operand, indices, updates, **params)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Jaxpr, **params: Any) -> tuple[Any, Any]:
    """Read, change and write back each element once: indices differ."""
    if not params.get("unique_indices", False):
        raise UnsupportedError(
            "where an index may occur twice the function is applied twice, and its derivative is not known",
            fix="pass unique_indices=True if no index occurs twice",
        )
    operand, indices, updates = primals

    def apply(x: Any) -> list[Any]:
        (new,) = apply_elementwise(jaxpr, [read_back(x, indices, aval_of(updates), params)], [])
        return [scatter(x, indices, new, **params)]

    outs, changes = forward.jvp(apply, [operand], [tangents[0]])
    return outs[0], changes[0]


def _samples() -> list[SampleInput]:
    body = lambda fun, dtype: stage(fun, [ShapedArray((), dtype)], name="body", parent=core.EVALUATE)[0]
    double = body(lambda x: [elementwise.add(x, elementwise.square(x))], "float32")
    more = body(lambda x: [elementwise.add(x, structural.full_like(x, 1))], "int32")
    points, rows = ScatterDimensionNumbers((), (0,), (0,)), ScatterDimensionNumbers((1,), (0,), (0,))

    def one(
        shape: Any, indices: Any, updates: Any, numbers: Any, jaxpr: Jaxpr, dtype: str, unique: bool
    ) -> SampleInput:
        params = {"dimension_numbers": numbers, "mode": "drop", "indices_are_sorted": False, "unique_indices": unique}
        avals = ShapedArray(shape, dtype), np.array(indices, np.int32), ShapedArray(updates, dtype)
        return SampleInput(avals, params | {"jaxpr": jaxpr})

    return [
        one((5,), [[1], [3]], (2,), points, double, "float32", True),
        one((4, 3), [[2], [9]], (2, 3), rows, double, "float32", True),
        one((5,), [[1], [3], [1], [-1]], (4,), points, more, "int32", False),
        one((3,), np.zeros((0, 1)), (0,), points, more, "int32", False),
    ]


#: The third operand gives the shape of the windows; its elements are not read.
scatter_apply = Primitive(
    "scatter_apply",
    shape=_shape,
    ref=_ref,
    lower=_lower,
    jvp=_jvp,
    transpose=NotDefined("a user's function is not linear in the operand; differentiate it with its jvp rule"),
    batch=lambda axis, args, dims, **params: scatter_batch(scatter_apply, axis, args, dims, **params),
    samples=_samples,
)
