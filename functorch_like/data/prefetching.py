"""`prefetch`: a thread takes items of an iterable and brings them to devices before they are needed."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from functorch_like import tree
from functorch_like.arrays.devices import default_device, device_put
from functorch_like.backends import xla
from functorch_like.backends.xla import client, named_sharding
from functorch_like.calling import api_boundary
from functorch_like.core import ArrayImpl, aval_of, is_value
from functorch_like.errors import ArgumentError
from functorch_like.sharding.process_local import make_array_from_process_local_data

T = TypeVar("T")


@api_boundary.public
def prefetch(iterable: Iterable[T], sharding: object = None, *, size: int = 2) -> Prefetch[T]:
    """Iterate in a thread, and bring arrays to devices ahead of the loop that takes them.

    It works with every iterable of pytrees: `ft.data.batches`, a grain or torch DataLoader, a data set. Leaves that
    NumPy can read (torch's tensors on the CPU among them) become arrays of their dtype; others, such as strings, stay.
    The thread helps where making an item waits for disks or computes outside of Python. It holds `size` items at most.

    Args:
        iterable: its items are pytrees. It may use an item's memory again for the next one, since items are copied.
        sharding: where arrays go: a NamedSharding, a PartitionSpec within `use_mesh`, or a prefix pytree of these; the
            default device if None. On a mesh of several processes, items are the parts of this process.
        size: how many items are kept ready.

    Returns:
        An iterator, to be used once. It ends its thread with the loop, in `close()`, or as a `with` block. An error of
        the iterable is raised in place of its item. At exit, Python waits for the item that the thread is making.

    Raises:
        ArgumentError: for something that is not an iterable, and for a size that is not a positive int.

    >>> import functorch_like as ft, numpy as np
    >>> [x.sum().item() for x in ft.data.prefetch(np.full(3, k) for k in range(3))]
    [0, 3, 6]
    """
    if not isinstance(iterable, Iterable):
        raise ArgumentError(f"prefetch takes an iterable, got {iterable!r:.60}", fix="ft.data.prefetch(batches)")
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ArgumentError(f"size={size!r} of prefetch", fix="a count of items: 2")
    places = tree.map(lambda place: named_sharding.from_user(place, "the sharding of prefetch"), sharding)
    return Prefetch(iterable, places, size)


class _End(NamedTuple):
    """The end of an iterable, by an error or without one."""

    error: BaseException | None


class Prefetch(Generic[T]):
    """An iterator over items that a thread has brought to devices; see `prefetch`."""

    def __init__(self, iterable: Iterable[T], places: Any, size: int) -> None:
        self._length = iterable
        self._queue: queue.Queue[Any] = queue.Queue(size)
        self._closed = threading.Event()
        device = client.chosen.value  # of the thread that calls; each thread has its own
        self._thread = threading.Thread(
            # No daemon: one that Python ends in the middle of C++ code takes the process with it.
            target=_work,
            args=(iterable, places, device, self._queue, self._closed),
            name="prefetch",
        )
        self._thread.start()

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        if self._closed.is_set():
            raise StopIteration
        item = self._queue.get()
        if isinstance(item, _End):
            self.close()
            if item.error is not None:
                raise item.error
            raise StopIteration
        return item

    def __len__(self) -> int:
        return len(self._length)  # type: ignore[arg-type]  # where the iterable has one

    def close(self) -> None:
        """End the thread once it has made the item that it is at."""
        self._closed.set()
        while not self._queue.empty():  # it may be waiting for room
            try:
                self._queue.get_nowait()
            except queue.Empty:
                break

    def __enter__(self) -> Prefetch[T]:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_closed"):
            self.close()


def _work(iterable: Iterable[Any], places: Any, device: Any, out: queue.Queue[Any], closed: threading.Event) -> None:
    """Fill the queue. It holds no reference to the iterator, which is closed when the last one goes."""
    end = _End(None)
    try:
        with default_device(device):
            items = iter(iterable)
            for item in items:
                if _is_over(closed) or not _put(out, _placed(item, places), closed):
                    break
            if isinstance(items, Generator):  # its `finally` blocks run now, and in this thread
                items.close()
    except BaseException as e:  # raised in the loop that takes the items
        end = _End(e)
    _put(out, end, closed)


def _is_over(closed: threading.Event) -> bool:
    """Return True once the iterator is closed, or Python waits for its threads to end."""
    return closed.is_set() or not threading.main_thread().is_alive()


def _put(out: queue.Queue[Any], item: Any, closed: threading.Event) -> bool:
    """Wait for room; False where the iterator was closed before."""
    while not _is_over(closed):
        try:
            out.put(item, timeout=0.1)
        except queue.Full:
            continue
        return True
    return False


def _placed(item: Any, places: Any) -> Any:
    leaves, structure = tree.flatten(item)
    leaves = [_readable(leaf) for leaf in leaves]
    each = [None] * len(leaves)
    if places is not None:
        each = tree.broadcast_prefix(places, structure.unflatten([0] * len(leaves)), "shardings of prefetch")
    return structure.unflatten([_place(x, place) for x, place in zip(leaves, each, strict=True)])


def _readable(leaf: Any) -> Any:
    """A leaf as an array, if NumPy reads it as one of numbers."""
    if is_value(leaf) or not hasattr(leaf, "__array__"):
        return leaf
    return np.asarray(leaf)


def _place(leaf: Any, place: Any) -> Any:
    if not isinstance(leaf, (ArrayImpl, np.ndarray, np.generic)) or (
        isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype.kind in "OSUMm"
    ):
        return leaf
    if place is None:
        return device_put(leaf)
    if isinstance(leaf, ArrayImpl):  # `device_put` would wait for the other processes in this thread
        return xla.device_put(leaf, place, weak_type=aval_of(leaf).weak_type)
    if place.is_fully_addressable:
        return device_put(leaf, place)
    return make_array_from_process_local_data(place, np.asarray(leaf))
