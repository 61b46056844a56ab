"""Sizes of buckets, and sizes of axes as functions of the number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from functorch_like.errors import ArgumentError


class Size(NamedTuple):
    """The size of an axis for n rows: `scale * n + offset`."""

    scale: int
    offset: int

    def at(self, rows: Any) -> Any:
        return self.scale * rows + self.offset


#: The size of an axis: an int where it is the same for any number of rows.
Extent = int | Size


def fitted(first: int, second: int, rows: tuple[int, int]) -> Extent | None:
    """Return the size that is `first` and `second` for these numbers of rows; None if it is not linear in them."""
    if first == second:
        return first
    scale, rest = divmod(first - second, rows[0] - rows[1])
    return Size(scale, first - scale * rows[0]) if not rest and scale > 0 else None


def at(extent: Extent, rows: int) -> int:
    """The size of an axis for a number of rows."""
    return extent.at(rows) if isinstance(extent, Size) else extent


def checked(sizes: Any, what: str) -> tuple[int, ...] | None:
    """Bucket sizes in ascending order; None stands for the powers of two.

    Raises:
        ArgumentError: for anything but True, None and positive ints.
    """
    if sizes is None or sizes is True:
        return None
    numbers = tuple(sizes) if isinstance(sizes, Sequence) and not isinstance(sizes, str) else ()
    if not numbers or any(type(s) is not int or s < 1 for s in numbers):
        raise ArgumentError(f"{what}={sizes!r} are not sizes", fix="give positive ints such as (8, 32, 128), or True")
    return tuple(sorted(set(numbers)))


def bucket(rows: int, sizes: tuple[int, ...] | None, name: str) -> int:
    """The size of the least bucket that holds so many rows.

    Raises:
        ArgumentError: where the largest is too small.
    """
    if sizes is None:
        return 1 << max(rows - 1, 0).bit_length()
    for size in sizes:
        if rows <= size:
            return size
    raise ArgumentError(
        f"{name} is given {rows} rows, and its largest bucket has {sizes[-1]}", fix="add a larger bucket, or split it"
    )
