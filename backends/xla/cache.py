"""Compiled programs kept on disk: compiling one small kernel takes 25 ms, loading it half a millisecond.

Environment variables, read at the first compilation:
    FT_CACHE            "0" turns the cache off.
    FT_CACHE_DIR        where; by default functorch_like/ in $XDG_CACHE_HOME or ~/.cache.
    FT_CACHE_MAX_BYTES  how much; 2 GiB by default. The programs not used for longest go first.

TRAP: jaxlib checks nothing about what it loads. Machine code of another version or for another processor loads and
runs, and whoever can write the file runs code in our name. Hence a key that names version and processor, a checksum,
and a directory nobody else can write to.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import stat
import tempfile
import warnings
from pathlib import Path
from typing import Any

from functorch_like.backends.xla import counters, sharding
from functorch_like.backends.xla.jaxlib_api import FULL_VERSION, JaxRuntimeError

_MAGIC = b"functorch_like executable 1\n"
_DIGEST = hashlib.sha256().digest_size
_DEFAULT_BYTES = 2 << 30
# Looking over the directory costs; once in so many writes is enough, and the limit may be passed by as many programs.
_WRITES_BETWEEN_SWEEPS = 64
_writes = 0


@functools.cache
def directory() -> Path | None:
    """Where programs are kept; None if the cache is off, or there is no directory that is ours alone."""
    if os.environ.get("FT_CACHE", "1") == "0":
        return None
    try:
        path = _chosen()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        trouble = _trouble(path)
    except (OSError, RuntimeError) as error:
        trouble = str(error)
    if trouble:
        warnings.warn(
            f"compiled programs are not kept on disk, so each process compiles anew: {trouble}. Set FT_CACHE_DIR to a "
            "directory of yours with mode 0700, or FT_CACHE=0 to do without",
            stacklevel=2,
        )
        return None
    return path


def _chosen() -> Path:
    named = os.environ.get("FT_CACHE_DIR")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    # The standard says to ignore a relative XDG_CACHE_HOME.
    return (Path(base) if base and os.path.isabs(base) else Path.home() / ".cache") / "functorch_like"


def _trouble(path: Path) -> str:
    """Why a directory cannot be trusted, or an empty string."""
    found = path.stat()
    if hasattr(os, "getuid") and found.st_uid != os.getuid():
        return f"{path} belongs to another user"
    if stat.S_IMODE(found.st_mode) & 0o077:
        return f"{path} is open to other users (mode {stat.S_IMODE(found.st_mode):04o})"
    if not os.access(path, os.W_OK | os.X_OK):
        return f"{path} cannot be written to"
    return ""


@functools.cache
def _processor() -> bytes:
    """What machine code depends on. `cpu_feature_guard` of jaxlib names only its own minimum."""
    wanted = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags", "Features", "CPU part")
    lines = []
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if not line.strip():
                    break  # the first processor stands for all
                if line.partition(":")[0].strip() in wanted:
                    lines.append(line)
    except OSError:
        lines.append(platform.processor())
    return "".join([platform.machine(), platform.system(), *lines]).encode()


def key(module: Any, options: Any, device: Any) -> str | None:
    """The name a program is kept under; None if it is not kept.

    It covers the module without the user's lines (or editing a comment above would recompile), all options
    (XLA_FLAGS among them: jaxlib reads them into every CompileOptions), jaxlib, and the processor.
    """
    if device.platform != "cpu" or directory() is None:
        return None
    from functorch_like.backends.xla import mlir

    digest = hashlib.sha256(_MAGIC)
    for part in (
        FULL_VERSION.encode(),
        _processor(),
        options.SerializeAsString(),
        str(len(device.client.devices())).encode(),
        mlir.anonymous_bytecode(module),
    ):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def load(name: str, device: Any, options: Any) -> Any:
    """The program kept under a key, or None. A damaged file is removed."""
    folder = directory()
    if folder is None:
        return None
    path = folder / name
    try:
        content = path.read_bytes()
    except OSError:
        return None
    header = len(_MAGIC) + _DIGEST
    body = content[header:]
    if content[:header] == _MAGIC + hashlib.sha256(body).digest():
        try:
            found = device.client.deserialize_executable(body, sharding.device_list(device), options)
        except (JaxRuntimeError, ValueError):
            pass  # ours, whole, and still refused: compile again
        else:
            _touch(path)
            return found
    _remove(path)
    return None


def store(name: str, executable: Any) -> None:
    """Keep a program. Failing to is no error: a full disk must not stop a computation."""
    global _writes
    folder = directory()
    if folder is None:
        return
    try:
        body = executable.serialize()
    except (JaxRuntimeError, ValueError):
        return  # not every program can be
    try:
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(body).digest() + body)
            os.replace(temporary, folder / name)  # atomic: a reader sees the whole file or none
        except BaseException:
            _remove(Path(temporary))
            raise
    except OSError:
        return
    counters.cache_writes += 1
    if _writes % _WRITES_BETWEEN_SWEEPS == 0:
        sweep(folder)
    _writes += 1


def sweep(folder: Path) -> None:
    """Remove the programs not used for longest, until nine tenths of the limit are left."""
    text = os.environ.get("FT_CACHE_MAX_BYTES", "")
    limit = int(text) if text.isdecimal() else _DEFAULT_BYTES
    found = []
    for entry in os.scandir(folder):
        try:
            seen = entry.stat()
        except OSError:
            continue  # another process was faster
        found.append((seen.st_mtime, seen.st_size, entry.path))
    total = sum(size for _, size, _ in found)
    if total <= limit:
        return
    for _, size, path in sorted(found):
        if total <= limit * 0.9:
            return
        _remove(Path(path))
        total -= size


def _touch(path: Path) -> None:
    try:
        os.utime(path)
    except OSError:
        return  # only the order of removal depends on it


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError:
        return  # gone already, or on a disk gone read-only
