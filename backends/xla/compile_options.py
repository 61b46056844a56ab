"""Compile options: the package's by default, the user's on top."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from functorch_like.backends.xla import option_sets
from functorch_like.backends.xla.backend_options import with_backend_options
from functorch_like.backends.xla.jaxlib_api import xc
from functorch_like.errors import ArgumentError, nearest

# XLA's own default would change the meaning of infinities and NaN if it ever turned this on.
_EVERYWHERE: dict[str, Any] = {"xla_cpu_enable_fast_math": False}
# XLA's own default includes single convolutions, which take up to twice as long in YNNPACK. `convolution_trial` finds
# the programs in which they take less.
_CPU = option_sets.PLAIN
#: Options that users often set, besides those that jaxlib has attributes for, as suggestions for an unknown name.
_OFTEN = (
    *option_sets.ONEDNN,
    *option_sets.WIDE,
    *option_sets.GRAPHS,
    "xla_allow_excess_precision",
    "xla_cpu_max_isa",
    "xla_cpu_multi_thread_eigen",
    "xla_cpu_opt_preset",
    "xla_cpu_parallel_codegen_split_count",
    "xla_cpu_strict_dot_conv_math",
    "xla_cpu_use_xnnpack",
    "xla_dump_to",
    "xla_gpu_autotune_level",
    "xla_gpu_deterministic_ops",
    "xla_gpu_enable_latency_hiding_scheduler",
    "xla_gpu_enable_triton_gemm",
    "xla_gpu_exclude_nondeterministic_ops",
    "xla_llvm_disable_expensive_passes",
)
_refused: set[str] = set()
_from_settings: Callable[[str], Iterable[tuple[str, Any]]] = lambda platform: ()


def on_compile(chosen: Callable[[str], Iterable[tuple[str, Any]]]) -> None:
    """Set the function that gives, for a platform, the options of settings whenever a program is compiled."""
    global _from_settings
    _from_settings = chosen


def defaults(platform: str) -> dict[str, Any]:
    """The options set unless the user sets them, without those that this jaxlib was found not to have."""
    options = {**_EVERYWHERE, **(_CPU if platform == "cpu" else {})}
    return {name: value for name, value in options.items() if name not in _refused}


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


def check(options: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The user's options in canonical form.

    Raises:
        ArgumentError: for a value that cannot be an option. Unknown names are reported when a program is compiled.
    """
    for name, value in options.items():
        if not isinstance(name, str) or not name.startswith("xla_"):
            raise ArgumentError(f"{name!r} is not an option of XLA{_near(name)}", fix="their names begin with xla_")
        if not isinstance(value, (bool, int, float, str)):
            raise ArgumentError(
                f"the option {name} is given {value!r:.60} of type {type(value).__name__}",
                fix="options are bools, ints, floats or strings",
            )
    return tuple(sorted(options.items()))


def check_known(message: str) -> None:
    """Raise ArgumentError if the text of a compile error names an option, or its value, as none of XLA's."""
    unknown = re.search(r"No such compile option: '(\w+)'", message)
    if unknown:
        raise ArgumentError(
            f"this jaxlib's XLA has no option {unknown[1]!r}{_near(unknown[1])}",
            fix="leave it out, or correct its name",
        )
    wrong = re.search(r"While setting option (\w+), '(.*?)' is not a valid (\w+) value", message)
    if wrong:
        raise ArgumentError(
            f"the option {wrong[1]} is given {wrong[2]!r}, which is not of type {wrong[3]}", fix=f"give it a {wrong[3]}"
        )


def _near(name: Any) -> str:
    """ "; did you mean 'x'?", where a known option has a name like it."""
    typed = dir(type(xc.CompileOptions().executable_build_options.debug_options))
    return nearest(str(name), [*(n for n in typed if n.startswith("xla_")), *_OFTEN])


def chosen(
    platform: str, overrides: dict[str, Any] | None = None, fitting: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The options by name: the package's, then those that fit the program, then those of settings, then the user's."""
    return {**defaults(platform), **(fitting or {}), **dict(_from_settings(platform)), **(overrides or {})}


def options(device: Any, overrides: dict[str, Any] | None = None, fitting: dict[str, Any] | None = None) -> Any:
    """jaxlib's CompileOptions for a program on one device, or on the devices of a mesh."""
    one = isinstance(device, xc.Device)
    ids = [device.id] if one else [each.id for each in device.devices.flat]
    made = xc.CompileOptions()
    build = made.executable_build_options
    made.num_replicas = build.num_replicas = 1
    made.num_partitions = build.num_partitions = len(ids)
    if not one:
        build.use_spmd_partitioning = build.use_shardy_partitioner = True
    made.device_assignment = xc.DeviceAssignment.create(np.array([ids], np.int32))
    made.env_option_overrides = list(chosen(device.platform, overrides, fitting).items())
    return with_backend_options(made, option_sets.SMALL_LOOPS) if device.platform == "cpu" else made


def plain(
    replicas: int, partitions: int, assignment: Any, overrides: Mapping[str, Any], profile: bytes | None, detailed: bool
) -> Any:
    """Return jaxlib's CompileOptions for programs on some devices, without the package's own options."""
    made = xc.CompileOptions()
    build = made.executable_build_options
    made.num_replicas = build.num_replicas = replicas
    made.num_partitions = build.num_partitions = partitions
    build.debug_options.xla_detailed_logging = detailed
    if profile is not None:
        build.fdo_profile = profile
    if assignment is not None:
        ids = np.asarray(assignment, np.int32).reshape(replicas, partitions)
        made.device_assignment = xc.DeviceAssignment.create(ids)
    made.env_option_overrides = list(overrides.items())
    return made


def keep_kernels(made: Any, directory: Path | None) -> None:
    """Let XLA read from a directory which kernels were the fastest on the GPU, and add those that it times.

    No part of the key of a program: call it after that was computed.
    """
    if directory is not None and option_sets.TIMING.isdisjoint(name for name, _ in made.env_option_overrides):
        made.executable_build_options.debug_options.xla_gpu_per_fusion_autotune_cache_dir = str(directory)
