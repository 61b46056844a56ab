"""The processor that XLA compiles for: its name and its features."""

from __future__ import annotations

import functools
import os
import platform
import re
from collections.abc import Iterable

#: Levels of XLA's flag `xla_cpu_max_isa`, the newest first, each with the beginnings of the features that it forbids
#: besides those of the levels before it.
_FORBIDS = (
    ("AMX_FP16", ()),
    ("AMX", ("amx_fp16",)),
    ("AVX512_BF16", ("amx_",)),
    ("AVX512_VNNI", ("avx512_bf16",)),
    ("AVX512", ("avx512_vnni", "avx512_fp16")),
    ("AVX2", ("avx512", "avx10", "avx_vnni")),
    ("AVX", ("avx2", "fma")),
    ("SSE4_2", ("avx", "f16c", "vaes", "vpclmulqdq")),
)


@functools.cache
def _described() -> dict[str, str]:
    """Return the flags of the first processor in /proc/cpuinfo, which stands for all."""
    facts: dict[str, str] = {}
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if not line.strip():
                    break
                name, _, value = line.partition(":")
                facts[name.strip()] = value.strip()
    except OSError:
        facts["model name"] = platform.processor()
    return facts


def name() -> str:
    """Return the processor's name as its maker gives it."""
    facts = _described()
    return facts.get("model name") or facts.get("CPU part") or platform.machine()


@functools.cache
def features() -> frozenset[str]:
    """Instruction sets and the like that XLA may use, by the names the kernel gives them: "avx2", "fma", "asimd"."""
    facts = _described()
    return allowed((facts.get("flags") or facts.get("Features") or "").split(), os.environ.get("XLA_FLAGS", ""))


def allowed(features: Iterable[str], flags: str) -> frozenset[str]:
    """Return the features that remain under the text of XLA_FLAGS: its `xla_cpu_max_isa` forbids newer ones."""
    limits = re.findall(r"--xla_cpu_max_isa=(\w+)", flags)
    levels = [level for level, _ in _FORBIDS]
    if not limits or limits[-1].upper() not in levels:  # a level of another architecture: XLA checks it
        return frozenset(features)
    forbidden = tuple(start for _, starts in _FORBIDS[: levels.index(limits[-1].upper()) + 1] for start in starts)
    return frozenset(f for f in features if not f.startswith(forbidden))


@functools.cache
def identity() -> bytes:
    """Return the features that machine code depends on. `cpu_feature_guard` of jaxlib names only its own minimum."""
    keys = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags", "Features", "CPU part")
    lines = [f"{key}: {value}" for key, value in _described().items() if key in keys]
    return "\n".join([platform.machine(), platform.system(), *lines]).encode()
