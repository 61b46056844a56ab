"""Compile options: ours by default, the user's on top."""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like.backends.xla.jaxlib_api import xc

# XLA's own default would change what infinities and NaN mean if it ever turned this on.
_EVERYWHERE: dict[str, Any] = {"xla_cpu_enable_fast_math": False}
# Which operations XLA:CPU may hand to its library of kernels. Its default includes single convolutions, which are
# slower there by a factor of two; without DOT, batched products and scans are.
_CPU: dict[str, Any] = {
    "xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_REDUCE,LIBRARY_FUSION_TYPE_DOT",
}
_refused: set[str] = set()


def defaults(platform: str) -> dict[str, Any]:
    """The options set unless the user sets them, without those this jaxlib was found not to know."""
    wanted = {**_EVERYWHERE, **(_CPU if platform == "cpu" else {})}
    return {name: value for name, value in wanted.items() if name not in _refused}


def refuse(message: str) -> bool:
    """Drop the default that a compile error's text is about; False if it is about none of them.

    The options are probed this way, when a compilation fails, because a probe in advance would cost one compilation
    in each process.
    """
    for name in (*_EVERYWHERE, *_CPU):
        if name in message and name not in _refused:
            _refused.add(name)
            return True
    return False


def options(device: Any, overrides: dict[str, Any] | None = None) -> Any:
    """jaxlib's CompileOptions for a program on one device."""
    made = xc.CompileOptions()
    made.num_replicas = made.num_partitions = 1
    build = made.executable_build_options
    build.num_replicas = build.num_partitions = 1
    made.device_assignment = xc.DeviceAssignment.create(np.array([[device.id]], np.int32))
    made.env_option_overrides = list({**defaults(device.platform), **(overrides or {})}.items())
    return made
