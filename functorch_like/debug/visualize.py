"""Pictures of how arrays are split over devices: text in terminals, tables in notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from functorch_like.backends.xla import named_sharding
from functorch_like.calling import api_boundary
from functorch_like.core import ArrayImpl
from functorch_like.debug.sharding_picture import Picture
from functorch_like.errors import ArgumentError
from functorch_like.markup.display import show

if TYPE_CHECKING:
    from functorch_like.arrays.array_type import Sharding
    from functorch_like.core import Array


@api_boundary.public
def visualize_array_sharding(x: Array) -> None:
    """Print which device holds which part of an array; in a notebook, draw it.

    Args:
        x: an array of one or two dimensions.

    Raises:
        ArgumentError: for something that is not an array, or is only traced.
        ShapeError: for other numbers of dimensions.

    >>> import functorch_like as ft
    >>> from functorch_like.sharding import NamedSharding, PartitionSpec as P
    >>> where = NamedSharding(ft.make_mesh((1,), ("data",)), P("data"))
    >>> ft.debug.visualize_array_sharding(ft.device_put(ft.numpy.ones((4, 4)), where))
    +-------+
    | CPU 0 |
    +-------+
    """
    if type(x) is not ArrayImpl:
        raise ArgumentError(
            f"visualize_array_sharding takes an array, got a {type(x).__name__}",
            fix="call it outside of jit; inside, see ft.explain and jit(f).lower(...).compile().output_shardings",
        )
    show(Picture(x.aval.shape, x.sharding))


@api_boundary.public
def visualize_sharding(shape: Sequence[int], sharding: Sharding) -> None:
    """Print which device would hold which part of an array; in a notebook, draw it.

    Args:
        shape: of the array, of one or two dimensions.
        sharding: a NamedSharding, or a PartitionSpec within `ft.use_mesh`.

    Raises:
        ShapeError: for other numbers of dimensions, or where a dimension does not divide.

    >>> import functorch_like as ft
    >>> from functorch_like.sharding import PartitionSpec as P
    >>> with ft.use_mesh(ft.make_mesh((1,), ("data",))):
    ...     ft.debug.visualize_sharding((8,), P("data"))
    +-------+
    | CPU 0 |
    +-------+
    """
    show(Picture(named_sharding.shape_from(shape), named_sharding.from_user(sharding, "sharding")))
