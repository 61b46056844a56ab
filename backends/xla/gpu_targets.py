"""Descriptions of GPUs, by which XLA compiles for them on machines without one.

The figures are those of XLA's public target specifications, and NVIDIA's data sheets. Kernels are chosen without
timing, so that they may differ from those of a machine with the GPU.
"""

from __future__ import annotations

from typing import Any

from functorch_like.errors import ArgumentError, nearest

# Facts that cards of these generations have in common.
_COMMON: dict[str, Any] = {
    "threads_per_block_limit": 1024,
    "threads_per_warp": 32,
    "shared_memory_per_block": 49152,
    "threads_per_core_limit": 2048,
    "block_dim_limit_x": 2147483647,
    "block_dim_limit_y": 65535,
    "block_dim_limit_z": 65535,
    "registers_per_core_limit": 65536,
    "registers_per_block_limit": 65536,
    "thread_dim_limit_x": 1024,
    "thread_dim_limit_y": 1024,
    "thread_dim_limit_z": 64,
    "device_vendor": "NVIDIA Corporation",
    "device_address_bits": 64,
    "pcie_bandwidth": 34359738368,
    "ecc_enabled": True,
    "driver_version": "13.0.0",
    "runtime_version": "12.8.0",
    "compile_time_toolkit_version": "12.8.0",
    "dnn_version": "9.10.0",
}
_HOPPER: dict[str, Any] = {
    "core_count": 132,
    "fpus_per_core": 128,
    "l2_cache_size": 52428800,
    "clock_rate_ghz": 1.98,
    "shared_memory_per_core": 233472,
    "shared_memory_per_block_optin": 232448,
    "cuda_compute_capability": "{ major: 9 minor: 0 feature_extension: ACCELERATED_FEATURES }",
}
_CARDS: dict[str, dict[str, Any]] = {
    "h100": {
        **_HOPPER,
        "memory_bandwidth": 3352320000000,
        "device_memory_size": 84942979072,
        "name": "NVIDIA H100 80GB HBM3",
    },
    "h200": {
        **_HOPPER,
        "memory_bandwidth": 4800000000000,
        "device_memory_size": 151397597184,
        "name": "NVIDIA H200 141GB HBM3e",
    },
    "a100": {
        "core_count": 108,
        "fpus_per_core": 64,
        "l2_cache_size": 41943040,
        "clock_rate_ghz": 1.41,
        "shared_memory_per_core": 167936,
        "shared_memory_per_block_optin": 166912,
        "cuda_compute_capability": "{ major: 8 minor: 0 }",
        "memory_bandwidth": 2039000000000,
        "device_memory_size": 84987740160,
        "name": "NVIDIA A100-SXM4-80GB",
    },
}
NAMES = tuple(_CARDS)


def description(card: str) -> str:
    """Return a GPU's description as XLA reads it (a GpuTargetConfigProto as text).

    Raises:
        ArgumentError: for a card that is not listed.
    """
    if card not in _CARDS:
        raise ArgumentError(f"no GPU {card!r} is described{nearest(card, NAMES)}", fix=f"use one of {', '.join(NAMES)}")
    fields = {**_COMMON, **_CARDS[card]}
    lines = [f"  {name}{_value(name, value)}" for name, value in fields.items()]
    return (
        "gpu_device_info {\n" + "\n".join(lines) + '\n}\nplatform_name: "CUDA"\n'
        "dnn_version_info { major: 9 minor: 10 patch: 0 }\n"
        f'device_description_str: "{fields["name"]}"\n'
    )


def _value(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return f": {str(value).lower()}"
    if isinstance(value, str):
        return f" {value}" if value.startswith("{") else f': "{value}"'
    return f": {value}"


def memory_size(card: str) -> int:
    """Return the bytes of a GPU's memory."""
    description(card)
    return int(_CARDS[card]["device_memory_size"])
