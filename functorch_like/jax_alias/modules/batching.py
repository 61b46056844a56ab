"""`jax.interpreters.batching`: batching rules of primitives."""

from __future__ import annotations

from typing import Any

import functorch_like as ft
from functorch_like.interpreters.batching import BatchTrace as BatchTrace
from functorch_like.interpreters.batching import BatchTracer as BatchTracer
from functorch_like.jax_alias.modules.user_primitives import (
    AxisData,
    Primitive,
    axis_primitive_batchers,
    fancy_primitive_batchers,
    primitive_batchers,
)
from functorch_like.jax_alias.modules.vmappables import register_vmappable, unregister_vmappable

__all__ = [
    "AxisData", "axis_primitive_batchers", "fancy_primitive_batchers", "primitive_batchers", "register_vmappable",
    "unregister_vmappable",
]  # fmt: skip

#: Mark of an operand that is not mapped.
not_mapped = None


def moveaxis(x: Any, source: int, destination: int) -> Any:
    """Return an array with an axis moved."""
    return ft.numpy.moveaxis(x, source, destination)


def bdim_at_front(x: Any, axis: int | None, size: int) -> Any:
    """Return an operand with its mapped axis first."""
    if axis is None:
        return broadcast(x, size, 0)
    return ft.numpy.moveaxis(x, axis, 0)


def broadcast(x: Any, size: int, axis: int, *rest: Any) -> Any:
    """Return an array repeated along a new axis."""
    return ft.numpy.stack([x] * size, axis) if size < 2 else ft.numpy.repeat(ft.numpy.expand_dims(x, axis), size, axis)


def defvectorized(primitive: Primitive) -> None:
    """Register the batching rule of an elementwise primitive with one operand."""

    def batch(args: Any, dims: Any, **params: Any) -> Any:
        return primitive.bind(*args, **params), dims[0]

    primitive_batchers[primitive] = batch


def defbroadcasting(primitive: Primitive) -> None:
    """Register the batching rule of an elementwise primitive with several operands."""

    def batch(args: Any, dims: Any, **params: Any) -> Any:
        size = next(ft.numpy.shape(a)[d] for a, d in zip(args, dims, strict=True) if d is not None)
        moved = [bdim_at_front(a, d, size) for a, d in zip(args, dims, strict=True)]
        return primitive.bind(*moved, **params), 0

    primitive_batchers[primitive] = batch


def defreducer(primitive: Primitive, *rest: Any) -> None:
    """Register the batching rule of a primitive with a parameter `axes`."""

    def batch(args: Any, dims: Any, *, axes: Any, **params: Any) -> Any:
        (x,), (d,) = args, dims
        moved = ft.numpy.moveaxis(x, d, 0)
        return primitive.bind(moved, axes=tuple(a + 1 for a in axes), **params), 0

    primitive_batchers[primitive] = batch
