"""Functions for programs of several processes: exchange of values between them, and synchronisation.

- `broadcast_one_to_all`: send the values of one process to all processes.
- `process_allgather`: send the values of all processes to all processes.
- `sync_global_devices`: wait for all processes.
- `assert_equal`: raise if the processes have different values.

Values are pytrees of arrays and numbers, and go through the host and the coordinator. So use these functions once, to
set up a program, and collectives in compiled functions for each step. Names and signatures are those of
jax.experimental.multihost_utils.

Every process calls each function, in the same order. If a process does not call it within `timeout` seconds, or ends
before, the others raise a DistributedError that names it.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from functorch_like import tree
from functorch_like.arrays.devices import device_put
from functorch_like.core import ArrayImpl, Tracer
from functorch_like.distributed.coordinator import name_ranks
from functorch_like.distributed.lifecycle import joined
from functorch_like.distributed.wire import pack, unpack
from functorch_like.errors import ArgumentError, DistributedError
from functorch_like.sharding import NamedSharding, PartitionSpec

Tree = Any
_SAME = "pass trees of the same structure, shapes and dtypes in every process"


def broadcast_one_to_all(in_tree: Tree, is_source: bool | None = None, *, timeout: float = 600.0) -> Tree:
    """Return the values of one process in all processes.

    Args:
        in_tree: pytree of arrays and numbers, with the same structure, shapes and dtypes in all processes.
        is_source: True in the process whose values are sent, False in the others; by default process 0 sends.
        timeout: seconds to wait for the other processes.

    Returns:
        A tree of NumPy arrays.

    Raises:
        DistributedError: if structures, shapes or dtypes differ, no process or several are the source, or a process
            does not call this in time.

    Example:
        >>> import functorch_like as ft
        >>> ft.multihost_utils.broadcast_one_to_all({"seed": 7})["seed"].tolist()
        7
    """
    rank = _rank()
    is_source = rank == 0 if is_source is None else bool(is_source)
    values, treedef = _to_host("broadcast_one_to_all", in_tree)
    gathered = _exchange("broadcast_one_to_all", values, treedef, timeout, send=is_source)
    sources = sorted(r for r, found in gathered.items() if found is not None)
    if len(sources) != 1:
        raise DistributedError(
            f"broadcast_one_to_all: {name_ranks(sources) if sources else 'no process'} said is_source=True",
            fix="pass is_source=True in one process, False in the others",
        )
    return treedef.unflatten(gathered[sources[0]])


def process_allgather(in_tree: Tree, tiled: bool = False, *, timeout: float = 600.0) -> Tree:
    """Return the values of all processes in all processes.

    Args:
        in_tree: pytree of arrays and numbers, with the same structure, shapes and dtypes in all processes.
        tiled: True to concatenate along the first axis; False to stack along a new first axis.
        timeout: seconds to wait for the other processes.

    Returns:
        A tree of NumPy arrays of shape (processes, ...), or (processes * n, ...) if tiled. An array that is sharded
        over several processes is returned whole.

    Raises:
        DistributedError: if structures, shapes or dtypes differ, or a process does not call this in time.
        ArgumentError: for a scalar if tiled; for a traced value.

    Example:
        >>> import functorch_like as ft
        >>> ft.multihost_utils.process_allgather(np.arange(3)).shape
        (1, 3)
    """
    leaves, treedef = tree.flatten(in_tree)
    spread = [_is_spread(leaf) for leaf in leaves]
    values, _ = _to_host("process_allgather", leaves)
    if tiled and any(not value.ndim for value in values):
        raise ArgumentError(
            "process_allgather: a scalar cannot be concatenated", fix="leave out tiled=True, or pass arrays"
        )
    own = [value for value, whole in zip(values, spread, strict=True) if not whole]
    gathered = _exchange("process_allgather", own, treedef, timeout)
    join = np.concatenate if tiled else np.stack
    joined_values = iter([join(parts) for parts in zip(*_in_order(gathered), strict=True)])
    return treedef.unflatten(
        [value if whole else next(joined_values) for value, whole in zip(values, spread, strict=True)]
    )


def sync_global_devices(name: str, *, timeout: float = 600.0) -> None:
    """Wait until all processes call this with the same name.

    Args:
        name: name of this point in the program.
        timeout: seconds to wait for the other processes.

    Raises:
        DistributedError: if a process is at a point of another name, or does not call this in time.

    Example:
        >>> import functorch_like as ft
        >>> ft.multihost_utils.sync_global_devices("checkpoint written")
    """
    state = joined()
    if state is None:
        return
    here = name.encode()
    names = state.member.exchange("sync_global_devices", here, timeout, what=f"sync_global_devices({name!r})")
    for rank, received in sorted(names.items()):
        if received != here:
            raise DistributedError(
                f"sync_global_devices: process {state.member.rank} is at {name!r}, and process {rank} at "
                f"{received.decode(errors='replace')!r}",
                fix="let every process pass the same points in the same order",
            )


def assert_equal(in_tree: Tree, fail_message: str = "", *, timeout: float = 600.0) -> None:
    """Raise if the processes have different values; NaN equals NaN.

    Args:
        in_tree: pytree of arrays and numbers.
        fail_message: the beginning of the error's text.
        timeout: seconds to wait for the other processes.

    Raises:
        DistributedError: in all processes, if values, structures, shapes or dtypes differ. It names the first leaf that
            differs, and the processes whose leaf is not that of process 0.

    Example:
        >>> import functorch_like as ft
        >>> ft.multihost_utils.assert_equal({"step": 3})
    """
    values, treedef = _to_host("assert_equal", in_tree)
    ordered = _in_order(_exchange("assert_equal", values, treedef, timeout))
    for path, *leaves in zip(tree.leaf_paths(treedef), *ordered, strict=True):
        differing = [rank for rank, leaf in enumerate(leaves) if not _same(leaf, leaves[0])]
        if differing:
            head = f"{fail_message}: " if fail_message else ""
            where = path or "the value"
            raise DistributedError(
                f"{head}{where} of {name_ranks(differing)} differs from that of process 0: "
                f"{_short(leaves[differing[0]])} and {_short(leaves[0])}",
                fix="compute it from the same inputs, or take one process's: broadcast_one_to_all",
            )


# ---------------------------------------------------------------------------------------------------------- the values
def _rank() -> int:
    state = joined()
    return 0 if state is None else state.member.rank


def _to_host(operation: str, in_tree: Tree) -> tuple[list[np.ndarray[Any, Any]], Any]:
    leaves, treedef = tree.flatten(in_tree)
    for leaf in leaves:
        if isinstance(leaf, Tracer):
            raise ArgumentError(
                f"{operation} is given {leaf!r}, which is only traced",
                fix="call it outside of jit, grad and vmap; inside of a compiled function use lax.all_gather",
            )
    return [np.asarray(_replicated(leaf)) for leaf in leaves], treedef


def _is_spread(leaf: Any) -> bool:
    return type(leaf) is ArrayImpl and not leaf._sharding.is_fully_addressable


def _replicated(leaf: Any) -> Any:
    """Return an array with all of its shards in this process."""
    if not _is_spread(leaf) or leaf._sharding.is_fully_replicated:
        return leaf
    return device_put(leaf, NamedSharding(leaf._sharding.mesh, PartitionSpec()))


def _exchange(
    operation: str, values: list[np.ndarray[Any, Any]], treedef: Any, timeout: float, *, send: bool = True
) -> dict[int, list[np.ndarray[Any, Any]] | None]:
    """Return the values of each process; None for a process with `send=False`.

    Raises:
        DistributedError: if structures, shapes or dtypes differ.
    """
    state = joined()
    if state is None:
        return {0: values if send else None}
    layout = json.dumps([str(treedef), [[list(v.shape), v.dtype.name] for v in values]])
    data = {i: np.ascontiguousarray(v).tobytes() for i, v in enumerate(values)} if send else {}
    table, joined_data = pack(data)
    header = json.dumps([send, table]).encode()
    message = pack({0: layout.encode(), 1: header, 2: joined_data})
    payload = json.dumps(message[0]).encode() + b"\n" + message[1]
    received = state.member.exchange(operation, payload, timeout)
    gathered: dict[int, list[np.ndarray[Any, Any]] | None] = {}
    for rank, payload_of_rank in sorted(received.items()):
        sizes, _, rest = payload_of_rank.partition(b"\n")
        parts = unpack(json.loads(sizes), rest)
        if parts[0].decode() != layout:
            raise DistributedError(
                f"{operation}: process {state.member.rank} has {_layout_text(layout)}, and process {rank} has "
                f"{_layout_text(parts[0].decode())}",
                fix=_SAME,
            )
        sent, table_of_rank = json.loads(parts[1])
        pieces = unpack(table_of_rank, parts[2])
        gathered[rank] = [_array(pieces[i], v) for i, v in enumerate(values)] if sent else None
    return gathered


def _array(data: bytes, like: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.frombuffer(data, like.dtype).reshape(like.shape).copy()


def _in_order(gathered: dict[int, Any]) -> list[Any]:
    return [gathered[rank] for rank in sorted(gathered)]


def _layout_text(layout: str) -> str:
    structure, leaves = json.loads(layout)
    return f"{structure} of {', '.join(f'{dtype}{shape}' for shape, dtype in leaves) or 'nothing'}"


def _same(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> bool:
    return x.tobytes() == y.tobytes() or bool(np.all((x == y) | ((x != x) & (y != y))))


def _short(x: np.ndarray[Any, Any]) -> str:
    return np.array2string(x, threshold=6, edgeitems=2).replace("\n", " ")
