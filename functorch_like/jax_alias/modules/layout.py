"""`jax.experimental.layout`: the order of the axes of an array in memory.

Arrays between programs are row-major. So a layout of an argument or a result has no effect; inside of a program
`with_layout_constraint` has the compiler lay a value out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from functorch_like import tree
from functorch_like.calling import api_boundary
from functorch_like.core import Tracer, aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.primitives.structural.annotations import layout_constraint


@dataclass(frozen=True)
class Layout:
    """An order of axes in memory, from the slowest varying to the fastest; tilings have no effect."""

    major_to_minor: Any = None
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0

    AUTO: ClassVar[Any] = None


@dataclass(frozen=True)
class Format:
    """A layout and a sharding."""

    layout: Any = None
    sharding: Any = None


DeviceLocalLayout = Layout


def format_of(x: Any) -> Format:
    """Return the format of an array: row-major, and its sharding."""
    return Format(Layout(tuple(range(x.ndim)), ()), x.sharding)


@api_boundary.public
def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """Have the compiler lay values of a jitted function out in memory.

    Args:
        x: array, or pytree of arrays. Those outside of programs stay as they are.
        layouts: a Layout, or a prefix pytree of Layouts.

    Returns:
        The same values.

    Raises:
        ArgumentError: for anything but a Layout.
        ShapeError: for a layout of another rank.
    """
    leaves, structure = tree.flatten(x)
    each = tree.broadcast_prefix(layouts, x, "layouts of with_layout_constraint")
    return structure.unflatten([_laid_out(leaf, one) for leaf, one in zip(leaves, each, strict=True)])


def _laid_out(x: Any, layout: Any) -> Any:
    if not isinstance(layout, Layout):
        raise ArgumentError(
            f"with_layout_constraint got {layout!r:.60} of type {type(layout).__name__}", fix="give a Layout"
        )
    order, aval = tuple(layout.major_to_minor), aval_of(x)
    if sorted(order) != list(range(aval.ndim)):
        raise ShapeError(
            f"with_layout_constraint got {layout!r} for {aval!r}", fix="give a permutation of its axes: Layout((1, 0))"
        )
    return layout_constraint(x, order=order) if isinstance(x, Tracer) else x
