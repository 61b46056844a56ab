"""Test of compile options: a program that does nothing is compiled with them, in 5 ms."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from functorch_like.backends.xla import client, compile_options
from functorch_like.errors import CompileError, FtError


def accepts(options: Mapping[str, Any]) -> bool:
    """Return True if this jaxlib's XLA for CPUs has these options and takes their values."""
    return _accepts(compile_options.check(options))


@functools.cache
def _accepts(options: tuple[tuple[str, Any], ...]) -> bool:
    import numpy as np

    from functorch_like.avals import ShapedArray
    from functorch_like.backends.xla import emit, executable

    aval = ShapedArray((), np.dtype(np.float32))
    module = emit.build("probe", [aval], lambda e, x: [x])
    try:
        executable.compile(module, device=client.find_device("cpu"), options=dict(options), out_avals=[aval])
    except (CompileError, FtError):
        return False
    return True
