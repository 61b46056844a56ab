"""Cotangents of values that are the same on all devices along an axis, in `shard_map` with `check_vma=True`.

The transpose of a function on parts is that of a linear map on the parts of all devices together. There, a value that
is the same along an axis is as many values as the axis has places; for users it is one. So the cotangent of such a
result is divided by the size of the axis, and that of such an argument is added up over it. The rules of users inside
take and give cotangents as users do. Which values are the same is known once the whole function has been traced. Until
then two primitives stand for division and sum; `placeholders.resolved` replaces them.

`pvary` marks a value as one of each device's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from functorch_like.avals import ShapedArray
from functorch_like.backends.xla.configuration import checked_axes
from functorch_like.core import BatchAxis, NotDefined, Primitive
from functorch_like.primitives.collectives.reduce_over_axis import NO_REF, shape_in_scope
from functorch_like.source_info import name_of

_NOT_LOWERED = NotDefined("a placeholder of a trace; `placeholders.resolved` writes a sum or a division")


def _shape(ct: ShapedArray, like: ShapedArray, *, axes: tuple[str, ...]) -> ShapedArray:
    return ct


def _placeholder(name: str) -> Primitive:
    """A primitive of a cotangent and the value whose it is, which is linear in the cotangent."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        (ct, like), dct = primals, tangents[0]
        return primitive(ct, like, **params), None if dct is None else primitive(dct, like, **params)

    def transpose(ct: Any, args: Sequence[Any], **params: Any) -> list[Any]:
        return [primitive(ct, args[1], **params), None]

    def batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        return primitive(*args, **params), dims[0]

    primitive = Primitive(
        name, shape=_shape, ref=NO_REF, lower=_NOT_LOWERED, jvp=jvp, transpose=transpose, batch=batch, samples=list,
        linear=0,
    )  # fmt: skip
    return primitive


divide_where_same = _placeholder("divide_where_same")
sum_where_same = _placeholder("sum_where_same")


class Boundary(NamedTuple):
    """The arguments and results of a function that is differentiated inside of a checked `shard_map`.

    Attributes:
        axes: of the `shard_map`.
        arguments: those with cotangents.
        results: all.
    """

    axes: tuple[str, ...]
    arguments: Sequence[Any]
    results: Sequence[Any]

    def given(self, cotangents: Sequence[Any]) -> list[Any]:
        """Return the cotangents of results as those of the parts of all devices together; None is zero."""
        return self._each(divide_where_same, cotangents, self.results)

    def found(self, cotangents: Sequence[Any]) -> list[Any]:
        """Return the cotangents of arguments as the user takes them."""
        return self._each(sum_where_same, cotangents, self.arguments)

    def of_rule(self, bwd: Any, residuals: Sequence[Any]) -> tuple[Any, list[Any]]:
        """Return a user's rule as one for the parts of all devices together, and its residuals."""
        kept, n, axes = len(residuals), len(self.arguments), self.axes

        def on_parts(known: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            at = Boundary(axes, known[kept : kept + n], known[kept + n :])
            back = bwd(known[:kept], at._each(sum_where_same, cts, at.results))
            return at._each(divide_where_same, back, at.arguments)

        on_parts.__name__ = name_of(bwd)
        return on_parts, [*residuals, *self.arguments, *self.results]

    def _each(self, primitive: Primitive, cts: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        return [
            None if ct is None else primitive(ct, value, axes=self.axes) for ct, value in zip(cts, values, strict=True)
        ]


def boundary(arguments: Sequence[Any], results: Sequence[Any]) -> Boundary | None:
    """Return the boundary of a function that is being differentiated; None outside of a checked `shard_map`."""
    axes = checked_axes.value
    return Boundary(axes, arguments, results) if axes else None


pvary = Primitive(
    "pvary",
    shape=shape_in_scope,
    ref=NO_REF,
    lower=lambda e, x, **_: x,
    jvp=lambda primals, tangents, **params: (pvary(*primals, **params), pvary(*tangents, **params)),
    transpose=lambda ct, args, **_: [ct],
    batch=lambda axis, args, dims, **params: (pvary(*args, **params), dims[0]),
    samples=list,
    linear="jointly",
)
