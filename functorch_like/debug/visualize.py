"""Pictures of how arrays are split over devices, as text."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like.backends.xla import named_sharding
from functorch_like.calling import api_boundary
from functorch_like.core import ArrayImpl
from functorch_like.errors import ArgumentError, ShapeError

_WIDTH = 78


@api_boundary.public
def visualize_array_sharding(x: Any) -> None:
    """Print which device holds which part of an array.

    Args:
        x: an array of one or two dimensions.

    Raises:
        ArgumentError: for what is no array, or is only traced.
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
    builtins.print(sharding_text(x.aval.shape, x.sharding))


@api_boundary.public
def visualize_sharding(shape: Sequence[int], sharding: Any) -> None:
    """Print which device would hold which part of an array.

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
    builtins.print(sharding_text(tuple(shape), named_sharding.from_user(sharding, "sharding")))


def sharding_text(shape: tuple[int, ...], where: Any) -> str:
    """The picture: a box for each part, with the devices that have it."""
    if len(shape) not in (1, 2):
        raise ShapeError(
            f"an array of shape {shape} has {len(shape)} dimensions",
            fix="draw arrays of one or two dimensions; see x.sharding.devices_indices_map(x.shape) for others",
        )
    holders: dict[tuple[int, int], list[Any]] = {}
    part = where.shard_shape(shape)
    for device, index in where.devices_indices_map(shape).items():
        starts = [s.start or 0 for s in index]
        rows, columns = (0, *starts) if len(shape) == 1 else starts
        holders.setdefault((rows, columns), []).append(device)
    height = 1 if len(shape) == 1 else part[0]
    labels = np.full((_count(shape[:-1], part[:-1]), _count(shape[-1:], part[-1:])), "", object)
    for (row, column), devices in holders.items():
        labels[row // max(height, 1), column // max(part[-1], 1)] = _label(devices)
    return _boxes(labels)


def _count(shape: Sequence[int], part: Sequence[int]) -> int:
    return int(np.prod([n // k if k else 1 for n, k in zip(shape, part, strict=True)], dtype=int))


def _label(devices: Sequence[Any]) -> str:
    return f"{devices[0].platform.upper()} {','.join(str(d.id) for d in sorted(devices, key=lambda d: d.id))}"


def _boxes(labels: np.ndarray[Any, Any]) -> str:
    inner = max(len(text) for text in labels.flat)
    inner = min(inner, max(_WIDTH // labels.shape[1] - 3, 5))
    rule = "+" + ("-" * (inner + 2) + "+") * labels.shape[1]
    lines = [rule]
    for row in labels:
        cells = [_wrapped(text, inner) for text in row]
        for k in range(max(map(len, cells))):
            lines.append("|" + "|".join(f" {(c[k] if k < len(c) else ''):^{inner}} " for c in cells) + "|")
        lines.append(rule)
    return "\n".join(lines)


def _wrapped(text: str, width: int) -> list[str]:
    import textwrap  # seldom needed

    return textwrap.wrap(text.replace(",", ", "), width) if len(text) > width else [text]
