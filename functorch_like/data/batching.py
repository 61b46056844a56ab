"""`batches`: the rows of arrays in shuffled batches, for one process or several, from any position on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from functorch_like import random, tree
from functorch_like.arrays.devices import process_count, process_index
from functorch_like.calling import api_boundary
from functorch_like.core import ArrayImpl, Tracer
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.random.arguments import check_key
from functorch_like.typing import ArrayLike

T = TypeVar("T")
Remainder = Literal["drop", "pad", "keep"]


@api_boundary.public
def batches(
    arrays: T,
    size: int,
    key: ArrayLike | None = None,
    *,
    epochs: int | None = 1,
    remainder: Remainder = "drop",
    start: int = 0,
    process: tuple[int, int] | None = None,
) -> Batches[T]:
    """Split arrays along their first dimension into batches of NumPy arrays.

    The order depends on the key and the epoch alone: on each process, and in each run, it is the same. To resume, pass
    the number of batches that were taken as `start`. Rows are copied when their batch is taken, so arrays may be
    memory-mapped; dtypes do not change, not even float64 (`ft.cast_floating` converts).

    Args:
        arrays: pytree of arrays with the same first dimension.
        size: rows of a batch, of all processes together.
        key: shuffles the rows, anew in each epoch; None keeps their order.
        epochs: how often to go through the rows; None for ever.
        remainder: treatment of the last rows, if they do not fill a batch. "drop" leaves them out. "keep" makes a
            smaller batch, for which a jitted function is compiled once more. "pad" repeats the last row: then each
            item is a pair of the batch and a mask that is False at repeated rows.
        start: how many batches to leave out at the beginning, over all epochs.
        process: the number of this process and the count of them, if other than those of the program. Each takes its
            consecutive part of every batch, `size / count` rows.

    Returns:
        An iterable with a length. Each iteration begins at `start`.

    Raises:
        ShapeError: for arrays that differ in their first dimension, scalars, and sizes that give no batch.
        ArgumentError: for values that are not counts, and where a batch does not divide among the processes.
        DtypeError: for leaves that are not arrays, and for a key that is not a key.

    >>> import functorch_like as ft, numpy as np
    >>> [batch["x"].tolist() for batch in ft.data.batches({"x": np.arange(5)}, 2, remainder="keep")]
    [[0, 1], [2, 3], [4]]
    >>> [batch.tolist() for batch, real in ft.data.batches(np.arange(3), 2, remainder="pad")]
    [[0, 1], [2, 2]]
    >>> two = lambda start: [b.tolist() for b in ft.data.batches(np.arange(6), 2, ft.random.key(1), start=start)]
    >>> two(0)[1:] == two(1)
    True
    """
    return Batches(arrays, size, key, epochs, remainder, start, process or (process_index(), process_count()))


class Batches(Generic[T]):
    """The batches of arrays; see `batches`."""

    def __init__(
        self,
        arrays: T,
        size: int,
        key: ArrayLike | None,
        epochs: int | None,
        remainder: Remainder,
        start: int,
        process: tuple[int, int],
    ) -> None:
        leaves, self._structure = tree.flatten(arrays)
        self._arrays = [_host(leaf, path) for leaf, path in zip(leaves, tree.leaf_paths(self._structure), strict=True)]
        self._rows = _common_rows(self._arrays, tree.leaf_paths(self._structure))
        _check_count("size", size, 1)
        _check_count("epochs", 1 if epochs is None else epochs, 1)
        _check_count("start", start, 0)
        if key is not None:
            check_key(key, "batches")
        if remainder not in ("drop", "pad", "keep"):
            raise ArgumentError(f"remainder={remainder!r}", fix='one of "drop", "pad", "keep"')
        rank, count = process
        if not 0 <= rank < count or size % count:
            raise ArgumentError(
                f"a batch of {size} rows is split among {count} processes, of which this is number {rank}",
                fix="make the size a multiple of the number of processes",
            )
        if remainder == "keep" and count > 1:
            raise ArgumentError(
                'remainder="keep" makes batches that do not divide among processes', fix='pass "drop" or "pad"'
            )
        self._size, self._key, self._epochs, self._remainder, self._start = size, key, epochs, remainder, start
        self._mine = slice(rank * size // count, (rank + 1) * size // count)
        self._per_epoch = self._rows // size if remainder == "drop" else -(-self._rows // size)
        if not self._per_epoch:
            raise ShapeError(
                f"{self._rows} rows do not fill a batch of {size}", fix='make batches smaller, or pass remainder="pad"'
            )

    def __len__(self) -> int:
        if self._epochs is None:
            raise TypeError("batches for ever have no length")
        return max(self._epochs * self._per_epoch - self._start, 0)

    def __iter__(self) -> Iterator[Any]:
        epoch, first = divmod(self._start, self._per_epoch)
        while self._epochs is None or epoch < self._epochs:
            order = self._order(epoch)
            for number in range(first, self._per_epoch):
                yield self._batch(order[number * self._size : (number + 1) * self._size])
            epoch, first = epoch + 1, 0

    def _order(self, epoch: int) -> np.ndarray[Any, Any]:
        if self._key is None:
            return np.arange(self._rows)
        return np.asarray(random.permutation(random.fold_in(self._key, epoch), self._rows))

    def _batch(self, rows: np.ndarray[Any, Any]) -> Any:
        real = len(rows)
        if self._remainder == "pad" and real < self._size:
            rows = np.concatenate([rows, np.repeat(rows[-1:], self._size - real)])
        own = rows[self._mine]
        if self._key is None and len(own) and own[-1] - own[0] == len(own) - 1:  # consecutive: no fancy indexing
            batch = [np.array(array[own[0] : own[-1] + 1]) for array in self._arrays]
        else:
            batch = [np.asarray(array[own]) for array in self._arrays]
        whole = self._structure.unflatten(batch)
        if self._remainder != "pad":
            return whole
        return whole, np.arange(self._size)[self._mine] < real


def _host(leaf: Any, path: str) -> Any:
    """Return an array whose rows NumPy can take; memory maps stay on disk."""
    if isinstance(leaf, Tracer) or not isinstance(leaf, (ArrayImpl, np.ndarray)):
        raise DtypeError(
            f"batches takes arrays, got a {type(leaf).__name__} at {path or 'the root'}",
            fix="convert lists by np.asarray; for other data sets, pass an iterable of batches to ft.data.prefetch",
        )
    return np.asarray(leaf) if isinstance(leaf, ArrayImpl) else leaf


def _common_rows(arrays: list[Any], paths: list[str]) -> int:
    lines = [f"    {path or 'the array'}: {array.shape}" for path, array in zip(paths, arrays, strict=True)]
    if not arrays or any(not array.ndim for array in arrays) or len({len(array) for array in arrays}) != 1:
        raise ShapeError(
            "batches takes arrays with the same first dimension, got\n" + "\n".join(lines or ["    no arrays"]),
            fix="pass arrays with a row for each example",
        )
    return len(arrays[0])


def _check_count(name: str, count: Any, least: int) -> None:
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < least:
        raise ArgumentError(f"{name}={count!r} of batches", fix=f"pass a count of {least} or more")
