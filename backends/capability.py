"""Instruction sets of the processor: `backends.cpu.get_cpu_capability()`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from functorch_like.backends.xla import processor

#: PyTorch's name of each level, the processor feature that implies it, and the bits of its registers; widest first.
_LEVELS = (
    ("AVX512", "avx512f", 512),
    ("AVX2", "avx2", 256),
    ("SVE256", "sve", 256),
    ("NEON", "asimd", 128),
    ("DEFAULT", "", 128),
)
#: Features that matter to array programs, of the hundred that processors have.
_LISTED = (
    "sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512_vnni",
    "avx512_bf16", "avx512_fp16", "avx_vnni", "amx_tile", "amx_bf16", "amx_int8", "asimd", "asimdhp", "asimddp", "sve",
    "sve2", "bf16", "i8mm",
)  # fmt: skip


class Capability(str):
    """The widest instruction set, as text ("AVX512"), and with it further facts.

    Attributes:
        name: name of the processor.
        instruction_sets: those that XLA compiles for, by the kernel's names.
        vector_bits: the width of a register.
        cores: number of cores of the machine.
        threads: number of logical processors that this process may use.
        caches: bytes of the first core's caches: {"L1d": 49152, "L2": ...}.
    """

    name: str
    instruction_sets: tuple[str, ...]
    vector_bits: int
    cores: int
    threads: int
    caches: dict[str, int]

    def __new__(cls) -> Capability:
        features = processor.features()
        level, _, bits = next(each for each in _LEVELS if not each[1] or each[1] in features)
        self = super().__new__(cls, level)
        self.name, self.vector_bits = processor.name(), bits
        self.instruction_sets = tuple(name for name in _LISTED if name in features)
        self.threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.cores = _cores()
        self.caches = dict(_caches())
        return self

    def describe(self) -> str:
        """Return all facts as text."""
        caches = ", ".join(f"{name} {size // 1024} KiB" for name, size in self.caches.items())
        return (
            f"{self.name}: {self}, {self.vector_bits} bits; {self.threads} threads in use, {self.cores} cores; "
            f"{caches or 'caches unknown'}; {' '.join(self.instruction_sets)}"
        )


def _cores() -> int:
    """Return the number of cores, where Linux lists which threads share one; else that of logical processors."""
    siblings: set[str] = set()
    for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology/thread_siblings_list"):
        try:
            siblings.add(path.read_text())
        except OSError:
            continue
    return len(siblings) or os.cpu_count() or 1


def _caches() -> Iterator[tuple[str, int]]:
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index[0-9]*")):
        try:
            level, kind, size = ((index / part).read_text().strip() for part in ("level", "type", "size"))
        except OSError:
            continue
        letter = {"Data": "d", "Instruction": "i"}.get(kind, "")
        yield f"L{level}{letter}", int(size.rstrip("KM")) * {"K": 1024, "M": 1 << 20}.get(size[-1], 1)
