"""Programs from the bytes that `Executable.serialize` returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functorch_like import interrupts
from functorch_like.avals import ShapedArray
from functorch_like.backends.xla import cache, client, compile_options
from functorch_like.backends.xla.executable import Executable
from functorch_like.backends.xla.jaxlib_api import JaxRuntimeError
from functorch_like.errors import CompileError


@interrupts.awaited
def restored(
    body: bytes,
    device: Any,
    in_avals: Sequence[ShapedArray],
    out_avals: Sequence[ShapedArray],
    name: str,
    split: tuple[Sequence[Any], Sequence[Any]] | None = None,
) -> Executable:
    """Load a compiled program. TRAP: the bytes are machine code; load only trusted ones.

    Args:
        body: the bytes.
        device: a device, or a mesh.
        in_avals: avals of the arguments.
        out_avals: avals of the results.
        name: name of the program.
        split: on a mesh, the shardings of the arguments and of the results.

    Raises:
        CompileError: for bytes that another version of jaxlib or another processor made.
    """
    client.check_not_forked()
    host_calls: list[Any] = []
    try:
        inner = cache.deserialized(body, device, compile_options.options(device), host_calls)
    except (JaxRuntimeError, ValueError) as error:
        raise CompileError(
            f"the program {name!r} cannot be loaded onto {device}: {error}",
            fix="serialize it with this version of jaxlib, for this kind of device; or use ft.export, which keeps the "
            "program itself",
        ) from error
    if split is None:
        return Executable(inner, device, in_avals, out_avals, name, host_calls)
    from functorch_like.backends.xla.partitioning import Partitioning
    from functorch_like.backends.xla.sharded_executable import ShardedExecutable

    partitioning = Partitioning(device, tuple(split[0]), tuple(split[1]))
    return ShardedExecutable(inner, partitioning, in_avals, out_avals, name, bool(host_calls))
