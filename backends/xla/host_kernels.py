"""NumPy's kernels in compiled programs for CPUs: sort and selection of rows, for which XLA has no vector code.

A kernel is called as a callback is, through a target that jaxlib registers itself: C++ takes the interpreter's lock,
hands over the memory of operands and results, and turns an exception into an error of the run. NumPy releases the
lock while it sorts. The target is found by its name in the code of a program, so a program on disk is bound to its
kernel when it is loaded.

TRAP: the number that the code calls by is a position in the list a program is compiled with. So there is one kernel,
and a program without callbacks of the user has it at position 0.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from functorch_like.backends.xla import callbacks

#: Name under which C++ calls Python functions that get the memory of operands and results itself.
TARGET = "xla_buffer_python_cpu_callback"


def order_rows(context: Any, rows: Any, *more: Any) -> tuple[()]:
    """Sort each row, in place: the result has the memory of the operand, which holds what it held before.

    With a place between operand and result, each row is only partitioned: the elements at the place and after it are
    those of the sorted row, lesser ones come before them in any order, and greater ones after them.
    """
    try:
        *place, result = more
        ordered = np.asarray(result)
        if ordered.dtype.itemsize <= 2:  # a stable sort is a radix sort; equal integers are the same in any order
            ordered.sort(axis=-1, kind="stable")
        elif not place:
            ordered.sort(axis=-1)
        else:
            _select(ordered, int(np.asarray(place[0])))
    except BaseException as error:
        # Without the frame: its arrays are views of memory that is freed after the call.
        raise callbacks.recorded(error.with_traceback(None)) from None
    return ()


def _select(rows: np.ndarray[Any, Any], place: int) -> None:
    """Partition each row at a place, and move the least of the elements after the place next to it.

    NumPy has vector code for one place. For two places it takes more time than for sorting.
    """
    last = rows.shape[-1] - 1
    place = min(max(place, 0), last)
    rows.partition(place, axis=-1)
    if place < last:
        rest = rows[..., place + 1 :]
        at = rest.argmin(axis=-1, keepdims=True)
        least = np.take_along_axis(rest, at, -1)
        np.put_along_axis(rest, at, rest[..., :1], -1)
        rest[..., :1] = least


def is_kernel(call: Any) -> bool:
    """Return True for a kernel, False for a callback of the user."""
    return call is order_rows


def bind(body: bytes, host_calls: list[Any]) -> None:
    """Give a program loaded without its module, of these bytes, the functions that it calls."""
    if not host_calls and TARGET.encode() in body:
        host_calls.append(order_rows)


def only_kernels(host_calls: Collection[Any]) -> bool:
    """Return True if a program calls no function of the user."""
    return all(map(is_kernel, host_calls))


def only_results(host_calls: Collection[Any]) -> bool:
    """Return True if nothing that a program calls has effects, so that `barrier` need not wait for it."""
    return all(is_kernel(call) or call.pure for call in host_calls)
