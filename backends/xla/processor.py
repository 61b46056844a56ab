"""The processor that XLA compiles for: what it is called, and what it can do."""

from __future__ import annotations

import functools
import platform


@functools.cache
def _described() -> dict[str, str]:
    """What /proc/cpuinfo says of the first processor, which stands for all."""
    found: dict[str, str] = {}
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if not line.strip():
                    break
                name, _, value = line.partition(":")
                found[name.strip()] = value.strip()
    except OSError:
        found["model name"] = platform.processor()
    return found


def name() -> str:
    """What its maker calls it."""
    found = _described()
    return found.get("model name") or found.get("CPU part") or platform.machine()


@functools.cache
def features() -> frozenset[str]:
    """Instruction sets and the like, by the names the kernel gives them: "avx2", "fma", "asimd"."""
    found = _described()
    return frozenset((found.get("flags") or found.get("Features") or "").split())


@functools.cache
def identity() -> bytes:
    """What machine code depends on. `cpu_feature_guard` of jaxlib names only its own minimum."""
    wanted = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags", "Features", "CPU part")
    lines = [f"{key}: {value}" for key, value in _described().items() if key in wanted]
    return "\n".join([platform.machine(), platform.system(), *lines]).encode()
