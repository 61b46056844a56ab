"""Reports and pictures of how arrays are split over devices, inside of compiled programs as well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from functorch_like import tree
from functorch_like.backends.xla import named_sharding
from functorch_like.calling import api_boundary
from functorch_like.core import aval_of
from functorch_like.debug.sharding_picture import Picture, check_dimensions
from functorch_like.errors import ArgumentError
from functorch_like.markup.display import show
from functorch_like.primitives.effects.inspect_sharding import Inspection, inspect_sharding

if TYPE_CHECKING:
    from functorch_like.arrays.array_type import Sharding
    from functorch_like.core import Array


@api_boundary.public
def inspect_array_sharding(value: Array, *, callback: Callable[[Sharding], object]) -> None:
    """Call a function with the sharding of an array.

    Inside of a jitted function the compiler chooses how values are split. It calls the function when it compiles the
    program, once, and not when the program runs.

    Args:
        value: an array, or a pytree of arrays.
        callback: takes the sharding of a whole array: a NamedSharding, or a SingleDeviceSharding in a program for one
            device. Under `vmap` the array is the batch. A sharding that no PartitionSpec describes counts as not split.

    Raises:
        ArgumentError: for a callback that cannot be called.
        DtypeError: for something that is not an array.

    Example:
        >>> import functorch_like as ft
        >>> from functorch_like.sharding import NamedSharding, PartitionSpec as P
        >>> mesh = ft.make_mesh((1,), ("data",))
        >>> def f(x):
        ...     y = ft.numpy.sin(x)
        ...     ft.debug.inspect_array_sharding(y, callback=lambda s: print(s.mesh))
        ...     return y
        >>> y = ft.jit(f)(ft.device_put(ft.numpy.ones(4), NamedSharding(mesh, P("data"))))
        Mesh('data': 1)
    """
    if not callable(callback):
        raise ArgumentError(
            f"inspect_array_sharding takes a function as callback, got {callback!r:.60}", fix="use callback=print"
        )
    inspection = Inspection(lambda sharding, shape: callback(sharding))
    for leaf in tree.leaves(value):
        aval_of(leaf)  # raises for what is not an array
        inspect_sharding(leaf, inspection=inspection)


@api_boundary.public
def visualize_array_sharding(x: Array) -> None:
    """Print which device holds which part of an array; in a notebook, draw it.

    Args:
        x: an array of one or two dimensions. Inside of a jitted function it is drawn when the program is compiled, as
            the compiler splits it; a batch under `vmap` has a text instead.

    Raises:
        DtypeError: for something that is not an array.
        ShapeError: for other numbers of dimensions.

    Example:
        >>> import functorch_like as ft
        >>> from functorch_like.sharding import NamedSharding, PartitionSpec as P
        >>> where = NamedSharding(ft.make_mesh((1,), ("data",)), P("data"))
        >>> ft.debug.visualize_array_sharding(ft.device_put(ft.numpy.ones((4, 4)), where))
        +-------+
        | CPU 0 |
        +-------+
    """
    check_dimensions(aval_of(x).shape)
    inspect_sharding(x, inspection=Inspection(_draw))


def _draw(where: Any, shape: tuple[int, ...]) -> None:
    if len(shape) in (1, 2):
        show(Picture(shape, where))
    else:
        print(f"{shape} on {where!r}")


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
