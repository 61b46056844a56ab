"""The elements of an array in row-major order: `x.flat`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from functorch_like import source_info
from functorch_like.core import state
from functorch_like.errors import ImmutableError
from functorch_like.numpy.shapes import ravel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from functorch_like.core import Array


class FlatElements:
    """An iterator over the elements of an array, which can be indexed as an array of rank 1.

    Args:
        array: array or traced value.

    >>> x = fnp.arange(6).reshape(2, 3)
    >>> int(x.flat[4]), x.flat[::2].tolist(), [int(element) for element in x.flat]
    (4, [0, 2, 4], [0, 1, 2, 3, 4, 5])
    """

    def __init__(self, array: Array) -> None:
        self._elements = ravel(array)
        self._rest: Iterator[Array] | None = None

    def __iter__(self) -> Iterator[Array]:
        return self

    def __next__(self) -> Array:
        if self._rest is None:
            self._rest = iter(self._elements)
        return next(self._rest)

    def __len__(self) -> int:
        return len(self._elements)

    def __getitem__(self, index: Any) -> Array:
        return self._elements[index]

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise ImmutableError(
            "arrays are immutable, and an element of x.flat was assigned to",
            fix="x = x.ravel().at[i].set(value).reshape(x.shape)",
            at=str(source_info.user_line(state.source) or ""),
        )
