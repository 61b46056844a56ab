"""`jax.profiler`: jaxlib's classes of recorded traces, and its server for TensorBoard."""

from __future__ import annotations

from typing import Any

from functorch_like.backends.xla.profiling import (
    ProfileData,
    ProfileEvent,
    ProfileOptions,
    ProfilePlane,
    register_subprocess,
    serve,
    stop_serving,
)

__all__ = ["ProfileData", "ProfileEvent", "ProfileOptions", "ProfilePlane", "register_subprocess"]


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Start a server from which TensorBoard and xprof capture traces; one at a time.

    Args:
        port: the port.
        requires_backend: no effect: devices are started.
    """
    return serve(port)


def stop_server() -> None:
    """Stop the server."""
    stop_serving()
