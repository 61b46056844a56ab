"""`compute_on`: parts of a program that run on the host of an accelerator, or in another stream of it."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, overload

from functorch_like import tree
from functorch_like.calling import api_boundary
from functorch_like.calling.traced_function import check_callable, wraps
from functorch_like.calling.type_variables import F
from functorch_like.errors import ArgumentError
from functorch_like.experimental.xla_metadata import called_with, set_xla_metadata
from functorch_like.primitives.effects.memory_placement import memory_placement
from functorch_like.sharding import MemorySpace

if TYPE_CHECKING:
    from functorch_like.typing import Block, PyTree

_TYPES = {"device_host": "host", "device": "dense", "tpu_sparsecore": "sparseoffload"}
_STREAM = "gpu_stream:"


def _attributes(compute_type: str) -> dict[str, str]:
    """Return XLA's attributes for a place of computation.

    Raises:
        ArgumentError: for a name that is none.
    """
    if isinstance(compute_type, str) and compute_type.startswith(_STREAM):
        return {"_xla_stream_annotation": compute_type.removeprefix(_STREAM), "inlineable": "false"}
    if compute_type not in _TYPES:
        names = ", ".join(map(repr, _TYPES))
        raise ArgumentError(f"compute_on got {compute_type!r:.60}", fix=f"use one of {names}, or 'gpu_stream:1'")
    return {"_xla_compute_type": _TYPES[compute_type]}


@api_boundary.public
def compute_on(compute_type: str) -> Block:
    """Have XLA run the operations of a block elsewhere than on the device's main stream.

    On a CPU, device and host are the same: the block runs as without. Operations outside of jit are not moved.

    Args:
        compute_type: "device_host" (the host's processor), "device", "tpu_sparsecore", or "gpu_stream:N".

    Returns:
        A context manager, and a decorator.

    Raises:
        ArgumentError: for other names.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> from functorch_like.experimental.compute_on import compute_on
    >>> @ft.jit
    ... def f(x):
    ...     with compute_on("device_host"):
    ...         y = fnp.sort(x)
    ...     return 2 * y
    >>> f(fnp.array([3, 1])).tolist()
    [2, 6]
    """
    return set_xla_metadata(**_attributes(compute_type))


@overload
def compute_on2(
    fun: F, *, compute_type: str, out_memory_spaces: PyTree, compiler_options: Mapping[str, object] | None = None
) -> F: ...


@overload
def compute_on2(
    fun: None = None,
    *,
    compute_type: str,
    out_memory_spaces: PyTree,
    compiler_options: Mapping[str, object] | None = None,
) -> Callable[[F], F]: ...


@api_boundary.public
def compute_on2(
    fun: Callable[..., Any] | None = None,
    *,
    compute_type: str,
    out_memory_spaces: Any,
    compiler_options: Mapping[str, Any] | None = None,
) -> Any:
    """Have XLA run a function elsewhere than on the device's main stream, as one call of the program.

    Args:
        fun: takes and returns pytrees of arrays, by position. Left out, `compute_on2` returns a decorator.
        compute_type: as for `compute_on`.
        out_memory_spaces: memory of the results: a prefix pytree of `sharding.MemorySpace`. A CPU has one memory.
        compiler_options: options of XLA for the call, which are written into the program as JSON.

    Returns:
        A function of the same arguments and results.

    Raises:
        ArgumentError: for other names, or memory that is no MemorySpace.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> from functorch_like.experimental.compute_on import compute_on2
    >>> from functorch_like.sharding import MemorySpace
    >>> f = compute_on2(fnp.sort, compute_type="device_host", out_memory_spaces=MemorySpace.Device)
    >>> ft.jit(f)(fnp.array([3, 1])).tolist()
    [1, 3]
    """
    if fun is None:
        return functools.partial(
            compute_on2,
            compute_type=compute_type,
            out_memory_spaces=out_memory_spaces,
            compiler_options=compiler_options,
        )
    check_callable(fun, "compute_on2", "compute_on2(f, compute_type=..., out_memory_spaces=...)(x)")
    attributes = _attributes(compute_type)
    if compiler_options:
        attributes["backend_config"] = json.dumps(dict(compiler_options), sort_keys=True)
    inside = {name: value for name, value in attributes.items() if name != "backend_config"}
    called = called_with(set_xla_metadata(**inside)(fun), "compute_on", tuple(attributes.items()))

    @api_boundary.public
    @wraps(fun)
    def run(*args: Any) -> Any:
        out = called(*args)
        leaves, structure = tree.flatten(out)
        spaces = tree.broadcast_prefix(out_memory_spaces, out, "out_memory_spaces of compute_on2")
        return structure.unflatten([_moved(x, space) for x, space in zip(leaves, spaces, strict=True)])

    return run


def _moved(x: Any, space: Any) -> Any:
    if not isinstance(space, MemorySpace):
        raise ArgumentError(
            f"out_memory_spaces of compute_on2 has {space!r:.60} of type {type(space).__name__}",
            fix="use sharding.MemorySpace.Device or Host",
        )
    return x if space.kind is None else memory_placement(x, kind=space.kind)
