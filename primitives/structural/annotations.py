"""Identities that tell the compiler about a value: `xla_metadata`, `layout_constraint` and `shard_alike`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, Primitive, SampleInput, UndefinedPrimal
from functorch_like.primitives.base.shapes import linear, move, widen


# ---------------------------------------------------------------------------------------------------------- metadata
def _annotated(e: Any, x: Any, *, attributes: tuple[tuple[str, str], ...]) -> Any:
    e.annotate(x, attributes)
    return x


def _metadata_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, attributes: Any) -> tuple[Any, Any]:
    return xla_metadata(primals[0], attributes=attributes), tangents[0]


xla_metadata = Primitive(
    "xla_metadata",
    shape=lambda x, *, attributes: x,
    ref=lambda x, *, attributes: x,
    lower=_annotated,
    jvp=_metadata_jvp,
    transpose=lambda ct, args, *, attributes: [ct],
    batch=lambda axis, args, dims, *, attributes: (xla_metadata(args[0], attributes=attributes), dims[0]),
    samples=lambda: [
        SampleInput((ShapedArray(shape, dtype),), {"attributes": (("key", "value"),)})
        for shape, dtype in [((), "float32"), ((2, 3), "int32"), ((0,), "float32")]
    ],
)


# ----------------------------------------------------------------------------------------------------------- layouts
def _laid_out(e: Any, x: Any, *, order: tuple[int, ...]) -> Any:
    if e.portable or not order:  # compilers other than XLA do not know the request
        return x
    layouts = e.layouts([order[::-1]])
    attrs = {
        "call_target_name": e.string("LayoutConstraint"),
        "operand_layouts": layouts,
        "result_layouts": layouts,
    }
    return e.op("stablehlo.custom_call", [x], e.outs, attrs)


def _layout_batch(axis: BatchAxis, x: Any, dim: int, *, order: tuple[int, ...]) -> tuple[Any, int]:
    rest = [d for d in range(len(order) + 1) if d != dim]
    return layout_constraint(x, order=(dim, *(rest[d] for d in order))), dim


layout_constraint = linear(
    "layout_constraint",
    shape=lambda x, *, order: x,
    ref=lambda x, *, order: x,
    lower=_laid_out,
    transpose=lambda ct, x, *, order: layout_constraint(ct, order=order),
    batch=_layout_batch,
    samples=lambda: [
        SampleInput((ShapedArray(shape, dtype),), {"order": order})
        for shape, dtype, order in [
            ((), "float32", ()),
            ((4, 3), "float32", (1, 0)),
            ((2, 3, 4), "int32", (1, 2, 0)),
            ((0, 2), "float32", (1, 0)),
        ]
    ],
)


# --------------------------------------------------------------------------------------------------------- shardings
def _alike(e: Any, x: Any, y: Any) -> list[Any]:
    if e.partitioning is not None:
        e.group([x, y])
    return [x, y]


def _alike_where_both(values: Sequence[Any]) -> list[Any]:
    """Return tangents or cotangents, split alike unless one of them is zero."""
    return list(values) if any(value is None for value in values) else list(shard_alike(*values))


def _alike_transpose(cts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    linear = [ct if type(a) is UndefinedPrimal else None for ct, a in zip(cts, args, strict=True)]
    return _alike_where_both(linear)


def _alike_batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, list[int]]:
    at = next(d for d in dims if d is not None)
    each = (widen(x, axis.size, at) if d is None else move(x, d, at) for x, d in zip(args, dims, strict=True))
    return list(shard_alike(*each)), [at, at]


shard_alike = Primitive(
    "shard_alike",
    shape=lambda x, y: (x, y),
    ref=lambda x, y: (x, y),
    lower=_alike,
    jvp=lambda primals, tangents: (shard_alike(*primals), _alike_where_both(tangents)),
    transpose=_alike_transpose,
    batch=_alike_batch,
    samples=lambda: [
        SampleInput((ShapedArray(shape, "float32"), ShapedArray(shape, other)))
        for shape, other in [((), "float32"), ((2, 3), "float32"), ((4,), "int32")]
    ],
    multiple_results=True,
    linear="jointly",
)
