"""A trial of a program in a process of its own: some compile options make XLA abort, which no `except` catches.

Run as a program, with a file that holds the module and its options: compiles it, runs it on zeros, and ends with 0.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np

from functorch_like.backends.xla import arrays, client, compile_options, mlir, sharding


def survives(module: Any, device: Any, options: dict[str, Any], seconds: float = 120.0) -> bool:
    """Return True if a process that compiles and runs a module under these options does not die.

    Args:
        module: a result of `build`.
        device: the trial is on the first device of the same platform.
        options: all of them, by name.
        seconds: after which it counts as dead.
    """
    with tempfile.NamedTemporaryFile(suffix=".trial") as file:
        pickle.dump((mlir.bytecode(module), mlir.argument_avals(module), device.platform, options), file)
        file.flush()
        command = [sys.executable, "-P", "-c", f"from {__name__} import main; main({file.name!r})"]
        environment = {**os.environ, "FT_CACHE": "0"}
        try:
            done = subprocess.run(command, env=environment, capture_output=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0


def main(path: str) -> None:
    """Run the trial itself."""
    with open(path, "rb") as file:
        code, avals, platform, options = pickle.load(file)
    device = client.find_device(platform)
    chosen = compile_options.options(device, options)
    inner = device.client.compile_and_load(code, sharding.device_list(device), chosen)
    ready = [arrays.device_put(np.zeros(a.shape, a.dtype), device) for a in avals]
    inner.execute_sharded(ready, with_tokens=True).consume_token().block_until_ready()
