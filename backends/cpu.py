"""Settings of programs for CPUs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from functorch_like.backends.capability import Capability
from functorch_like.backends.flag_blocks import Block, Module, adopt
from functorch_like.backends.settings import AtStart, Setting, in_force
from functorch_like.backends.validators import Kind, integer, parse_boolean
from functorch_like.backends.xla import client
from functorch_like.backends.xla.processor import features
from functorch_like.errors import ArgumentError, nearest

#: Primitives that have another lowering for CPUs besides the plain one, and its effect.
FAST_LOWERINGS: dict[str, str] = {}


def _check(value: Any) -> Any:
    if type(value) is bool:
        return value
    names = [v.strip() for v in value.split(",")] if isinstance(value, str) else list(value)
    if names == ["all"] or names == ["none"]:
        return names == ["all"]
    if not all(isinstance(n, str) and n.strip("-") for n in names) or len({n.startswith("-") for n in names}) > 1:
        raise ValueError
    if FAST_LOWERINGS:  # else no primitive is imported yet, and `_chosen` checks the names later
        _known(names)
    return tuple(sorted(set(names)))


def _parse(text: str) -> Any:
    try:
        return parse_boolean(text)
    except ValueError:
        return _check(text)


def _known(names: Any) -> None:
    for name in names:
        plain = name.removeprefix("-")
        if plain not in FAST_LOWERINGS:
            raise ArgumentError(
                f"cpu.fast_lowerings names {plain!r}, which has no fast lowering{nearest(plain, FAST_LOWERINGS)}",
                fix=f"use some of {', '.join(sorted(FAST_LOWERINGS))}",
            )


class _Settings(Module, name="cpu"):
    fast_lowerings = Setting[Any](
        True,
        Kind(
            "True (all), False (none), names of primitives, or names with a minus before each: all but these",
            _check,
            _parse,
        ),
        "Where XLA's own lowering of an operation is slow on CPUs, lower it in another way of the same meaning.\n\n"
        "True: every operation that has one. False: none. 'sort,cumsum': these alone. '-sort,-cumsum': all but these.",
        changes="StableHLO: how operations are lowered",
        elsewhere={"gpu": "these lowerings are for CPUs"},
        program=True,
    )
    num_threads = AtStart(
        0,
        integer(0),
        "Number of threads that XLA computes with on CPUs; 0 stands for all that the process may use.",
        changes="the CPU client's pools of threads",
        env="FT_CPU_THREADS",
        elsewhere={"gpu": "it is about CPUs"},
    )
    kept_memory = AtStart[int | None](
        None,
        integer(0, none="an eighth of the memory that the process may have, and 2 GiB at most"),
        "Most bytes of freed memory that the process keeps for later arrays and temporaries.\n\n"
        "0 leaves it to the C library: glibc returns each block of more than 32 MB to the system, and the next array "
        "of that size pays for its pages again, which takes longer than most operations on them. With None, glibc's "
        "variables in the environment (MALLOC_TRIM_THRESHOLD_ and its like) take precedence. `ft.clear_caches()` "
        "returns the memory to the system. Threads other than the main one keep 64 MB each, unless MALLOC_ARENA_MAX=1 "
        "is in the environment. Other C libraries have no such setting.",
        changes="glibc's mallopt: M_MMAP_THRESHOLD and M_TRIM_THRESHOLD",
        env="FT_CPU_KEPT_MEMORY",
        elsewhere={"gpu": "it is about the memory of the host"},
    )


fast_lowerings: Any
num_threads: int
kept_memory: int | None
client.on_threads(lambda: _Settings.num_threads.value)
client.on_kept_memory(lambda: _Settings.kept_memory.value)


def fast_lowering(primitive: str, what: str) -> Callable[[], bool]:
    """Declare, at import, that a primitive has a fast lowering for CPUs.

    Args:
        primitive: its name.
        what: the effect of the lowering, in a few words.

    Returns:
        A predicate for lowering rules: True if the fast lowering is to be used.
    """
    FAST_LOWERINGS[primitive] = what
    return lambda: in_force().derive(_chosen)(primitive)


def _chosen() -> Callable[[str], bool]:
    """Return True if a primitive's fast lowering is on."""
    chosen = _Settings.fast_lowerings.value
    if type(chosen) is bool:
        return lambda primitive: chosen
    _known(chosen)
    off = chosen[0].startswith("-")
    return lambda primitive: f"-{primitive}" not in chosen if off else primitive in chosen


@functools.cache
def get_cpu_capability() -> Capability:
    """Return the newest instruction set that the processor has and XLA compiles for.

    Returns:
        The widest instruction set as text ("AVX512", "AVX2", "NEON", ...), as PyTorch has it; attributes give the
        rest: name, instruction_sets, vector_bits, cores, threads, caches.

    >>> from functorch_like import backends
    >>> backends.cpu.get_cpu_capability().vector_bits in (128, 256, 512)
    True
    """
    return Capability()


def has_bfloat16() -> bool:
    """Return True if the processor has units for products of bfloat16.

    >>> from functorch_like import backends
    >>> isinstance(backends.cpu.has_bfloat16(), bool)
    True
    """
    return not features().isdisjoint(("avx512_bf16", "amx_bf16", "bf16"))


flags: Block
adopt(__name__, _Settings)
