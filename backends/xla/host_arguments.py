"""NumPy arguments of functions that C++ dispatches: C++ reads the small ones by itself, Python copies the others.

TRAP: C++ ignores the byte order of NumPy arrays; an asynchronous client takes aligned NumPy memory as it is and returns
before it was read; and 0.10 copies unaligned arrays of more than 100 KB in the background whatever the client.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like.backends.xla import arrays, client, nesting, pytree
from functorch_like.backends.xla.sharding import OneDevice
from functorch_like.errors import DtypeError, FtError

#: Bytes of the largest array that C++ reads by itself: it has read it when the call returns, in all versions.
MOST_BYTES = 1 << 16


class _Host:
    """Mark of a NumPy argument, in place of a layout; C++ passes arguments with this mark to `bring`."""


_HOST = _Host()


def bring(x: Any, where: Any, layout: Any) -> Any:
    """Return an argument as an array on its device, where C++ does not move it there by itself.

    Raises:
        FtError: where it cannot be moved.
    """
    if type(where) is not OneDevice:
        from functorch_like.backends.xla import sharded_arrays  # few programs have meshes

        return sharded_arrays.bring(x, where)
    if layout is not _HOST:
        raise RuntimeError("a compiled function got an argument that cannot be moved to its device")
    if x.dtype.isnative:
        return arrays.copied(x, where)
    raise _in_other_order(x)


def _in_other_order(x: np.ndarray[Any, Any]) -> FtError:
    return DtypeError(
        f"a NumPy array of shape {x.shape} and dtype {x.dtype.str!r} has its bytes in the other order",
        fix='convert it with x.astype(x.dtype.newbyteorder("=")), or by fnp.asarray(x)',
    )


def marked(fastpath: Any, leaves: Sequence[Any], checks_order: Callable[[], bool] | None) -> Any:
    """Return a fast path with a mark for each NumPy array of its signature that Python copies.

    Args:
        fastpath: as of `Executable.fastpath`.
        leaves: the flat arguments.
        checks_order: makes the caller check the byte order of all NumPy arguments (see `check_order`) from now on, and
            returns True, or returns False if it cannot. Without it, Python copies every array.
    """
    host = [isinstance(leaf, np.ndarray) for leaf in leaves]
    if not any(host):
        return fastpath
    small = [h and type(leaf) is np.ndarray and leaf.nbytes <= MOST_BYTES for leaf, h in zip(leaves, host, strict=True)]
    if checks_order is not None and any(small) and _reads_at_once(fastpath) and checks_order():
        host = [h and not s for h, s in zip(host, small, strict=True)]
    host = [False] * len(fastpath.const_args) + host
    marks = [_HOST if h else None for h, used in zip(host, fastpath.kept_var_bitvec, strict=True) if used]
    return fastpath._replace(in_device_local_layouts=marks)


def _reads_at_once(fastpath: Any) -> bool:
    """Return True if the program has ended when its call returns."""
    places = fastpath.in_shardings
    return not client.CPU_ASYNC and all(type(p) is OneDevice and p._device.platform == "cpu" for p in places)


#: Types of arguments that hold no others.
_FLAT = frozenset({int, float, bool, complex, type(None)})


def check_order(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse NumPy arguments of the other byte order.

    Raises:
        DtypeError: for one among the leaves of the arguments.
    """
    for x in args:
        kind = type(x)
        if kind is np.ndarray:
            if not x.dtype.isnative:
                raise _in_other_order(x)
        elif kind is not arrays.ArrayImpl and kind not in _FLAT:
            break  # it may hold others
    else:
        if not kwargs:  # most calls: `flatten` takes longer
            return
    # In this form the caller has room to handle the error of a tree that is too deep (see `nesting.call`).
    for x in nesting.call(*(*nesting.those, pytree.registry.flatten, (args, kwargs)))[0]:
        if isinstance(x, np.ndarray) and not x.dtype.isnative:  # C++ takes subclasses for arrays, too
            raise _in_other_order(x)
