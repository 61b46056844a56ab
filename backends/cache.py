"""Compiled programs kept on disk, so that a new process does not compile them again.

It is on by default. A program is found again if the operations, the compile options, the version of jaxlib and the
processor are the same; for GPUs, the card and NVIDIA's libraries. Programs for GPUs with callbacks, and those of
several processes with GPUs, are not kept. A file that is damaged, or has another name than it was written under, is
compiled anew. No other user may be able to write to the directory, because loading a program runs its code; others may
read it.

>>> from functorch_like import backends
>>> with backends.cache.flags(enabled=False):
...     backends.cache.stats().directory is None
True
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from functorch_like.backends.flag_blocks import Block, Module, adopt
from functorch_like.backends.settings import Setting
from functorch_like.backends.validators import Kind, boolean, integer
from functorch_like.backends.xla import cache_policy as _policy
from functorch_like.backends.xla import counters as _counters

_CHANGES = "compiled programs on disk"


def _path(value: Any) -> str:
    path = os.fspath(value)
    if not isinstance(path, str):
        raise ValueError
    return os.path.abspath(os.path.expanduser(path)) if path else ""


class _Settings(Module, name="cache"):
    enabled = Setting(
        True,
        boolean,
        "Keep compiled programs on disk, and load them from there.",
        changes=_CHANGES,
        env="FT_CACHE",
        in_key=False,
    )
    directory = Setting(
        "",
        Kind("a path, or '' for functorch_like/ in $XDG_CACHE_HOME or ~/.cache", _path),
        "Directory of the compiled programs, which no other user may be able to write to. It is created if missing.",
        changes=_CHANGES,
        env="FT_CACHE_DIR",
        in_key=False,
    )
    max_bytes = Setting(
        _policy.DEFAULT_BYTES,
        integer(0),
        "Most bytes kept on disk. Beyond that, the least recently used programs are removed from time to time.",
        changes=_CHANGES,
        env="FT_CACHE_MAX_BYTES",
        in_key=False,
    )


enabled: bool
directory: str
max_bytes: int

_policy.on_settings(lambda: (_Settings.enabled.value, _Settings.directory.value, _Settings.max_bytes.value))


class Stats(NamedTuple):
    """Counts of the cache in this process, and of the files on disk.

    Attributes:
        hits: number of programs loaded.
        compiles: number of programs compiled.
        writes: number of programs written.
        programs: number of programs in the directory.
        bytes: their size together.
        directory: its path; None if nothing is kept.
    """

    hits: int
    compiles: int
    writes: int
    programs: int
    bytes: int
    directory: str | None


def stats() -> Stats:
    """Return counts of the cache in this process, and of the files on disk.

    >>> from functorch_like import backends
    >>> backends.cache.stats().hits >= 0
    True
    """
    from functorch_like.backends.xla import cache as disk  # not needed at import

    folder = disk.directory()
    files = [] if folder is None else disk.files(folder)
    return Stats(
        _counters.cache_hits,
        _counters.compiles + _counters.optimised,
        _counters.cache_writes,
        disk.programs(files),
        sum(file.size for file in files),
        None if folder is None else str(folder),
    )


def clear() -> int:
    """Remove all programs from the disk; those already loaded stay in use.

    Returns:
        The number of programs removed.

    >>> import tempfile
    >>> from functorch_like import backends
    >>> with backends.cache.flags(directory=tempfile.mkdtemp()):
    ...     backends.cache.clear()
    0
    """
    from functorch_like.backends.xla import cache as disk  # not needed at import

    return disk.clear()


flags: Block
adopt(__name__, _Settings)
