"""Programs compiled for devices that are not there: looked into, never run.

Compiling for GPUs needs the CUDA plugin's wheels, of jaxlib's version, and NVIDIA's assembler:
`pip install 'functorch_like[gpu-aot]'`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from functorch_like import interrupts
from functorch_like.backends.xla import compile_options, cuda, gpu_targets, mlir
from functorch_like.backends.xla.jaxlib_api import JaxRuntimeError, xc
from functorch_like.errors import CompileError, DeviceError

INSTALL = "pip install 'functorch_like[gpu-aot]': the wheels of the CUDA plugin, and NVIDIA's assembler"
_CALL = re.compile(r'custom_call_target="([^"]+)"')
_FUSION = re.compile(r"\bkind=k(\w+)")
_TRITON = re.compile(r"__triton\w*")


def devices(card: str, hosts: int = 1, per_host: int = 1) -> list[Any]:
    """Return devices that programs can be compiled for.

    Args:
        card: one of `gpu_targets.NAMES`.
        hosts: machines.
        per_host: GPUs of each.

    Raises:
        DeviceError: where the plugin is not installed.
        ArgumentError: for an unknown card.
    """
    text = gpu_targets.description(card)
    plugin = cuda.find_plugin()
    if plugin is None:
        raise DeviceError("compiling for GPUs needs the CUDA plugin, which is not installed", fix=INSTALL)
    api = cuda.load_plugin(plugin)
    topology = xc.make_c_api_device_topology(api, "", target_config=text, topology=f"1x{hosts}x{per_host}")
    return list(topology._make_compile_only_devices())


@functools.cache
def cpu_devices(count: int) -> list[Any]:
    """Return CPU devices to compile for, as many as requested; they are not those that arrays are on."""
    return list(xc.make_cpu_client(asynchronous=False, num_devices=count).devices())


class Program(NamedTuple):
    """A compiled program that cannot run here.

    Attributes:
        text: optimised HLO.
        memory: bytes on each device: argument, output, temp, alias.
        size: bytes of the serialised program for a GPU.
    """

    text: str
    memory: dict[str, int]
    size: int

    @property
    def calls(self) -> list[str]:
        """The targets of custom calls."""
        return sorted(set(_CALL.findall(self.text)))

    @property
    def fusions(self) -> list[str]:
        """The kinds of fusions, and of kernels that Triton makes."""
        return sorted({*_FUSION.findall(self.text), *_TRITON.findall(self.text)})


def compile(
    module: Any,
    targets: Sequence[Any],
    *,
    name: str = "",
    options: Mapping[str, Any] | None = None,
    fitting: dict[str, Any] | None = None,
) -> Program:
    """Compile a module for devices of `devices`.

    Args:
        module: a result of `build`, for the platform of the devices.
        targets: as many devices as the module has partitions, of `devices` or `cpu_devices`.
        name: for messages.
        options: XLA's options by name, which override those of settings.
        fitting: options chosen by the program's content, which settings override.

    Raises:
        CompileError: where XLA refuses, with XLA's text; for example a custom call of a target that no plugin has.
    """
    count = len(targets)
    made = xc.CompileOptions()
    made.num_replicas, made.num_partitions = 1, count
    build = made.executable_build_options
    build.num_replicas, build.num_partitions = 1, count
    if count > 1:
        build.use_spmd_partitioning = build.use_shardy_partitioner = True
    made.device_assignment = xc.DeviceAssignment.create(np.array([[d.id for d in targets]], np.int32))
    where, client = xc.DeviceList(tuple(targets)), targets[0].client
    while True:
        chosen = compile_options.chosen(targets[0].platform, dict(options or {}), fitting)
        made.env_option_overrides = list(chosen.items())
        try:
            # Clients of topologies take a module, others bytes, for the reason that `executable` gives.
            loads = client.runtime_type != "compile_only_runtime"
            with interrupts.all_held, interrupts.awaited:
                compiled = (
                    client.compile_and_load(mlir.bytecode(module), where, made)
                    if loads
                    else client.compile(module, where, made)
                )
            break
        except (JaxRuntimeError, ValueError) as error:
            if compile_options.refuse(str(error)):
                continue
            raise CompileError(
                f"XLA cannot compile {name!r} for {targets[0].device_kind}: {error}", fix=_fix(error)
            ) from error
    stats = compiled.get_compiled_memory_stats()
    memory = {part: int(getattr(stats, f"{part}_size_in_bytes")) for part in ("argument", "output", "temp", "alias")}
    text = "\n\n".join(m.to_string() for m in compiled.hlo_modules())
    return Program(text, memory, 0 if loads else len(compiled.serialize()))


def _fix(error: Exception) -> str:
    text = str(error)
    if "No PTX compilation provider" in text or "libdevice not found" in text:
        return INSTALL
    return "name a target that the plugin registers" if "No FFI handler registered" in text else ""
