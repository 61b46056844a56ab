"""Compiled programs kept on disk: compiling one small kernel takes 25 ms, loading it half a millisecond.

Whether, where and how much is kept is set in `functorch_like.backends.cache`.

TRAP: jaxlib checks nothing about what it loads. Machine code of another version or for another processor loads and
runs, and whoever can write the file runs code in our name. Hence a key that names version and processor, a checksum,
and a directory nobody else can write to.
"""

from __future__ import annotations

import functools
import os
import re
import stat
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from functorch_like.backends.xla import counters, digest, processor, sharding
from functorch_like.backends.xla.jaxlib_api import FULL_VERSION, JaxRuntimeError

_MAGIC = b"functorch_like executable 1\n"
_UNFINISHED = ".new-"
_NAME = re.compile(r"[0-9a-f]{64}|\.new-.*")
DEFAULT_BYTES = 2 << 30
# Looking over the directory costs, and most processes write little: so it is done when a name begins like this, which
# one in 64 does, and the limit may be passed by about as many programs; and when 64 like the one written would pass it.
_SWEEPING = ("00", "40", "80", "c0")


_asked: Callable[[], tuple[bool, str, int]] = lambda: (True, "", DEFAULT_BYTES)


def on_settings(ask: Callable[[], tuple[bool, str, int]]) -> None:
    """What tells whether programs are kept, where ("" is the default place), and how many bytes of them."""
    global _asked
    _asked = ask


def directory() -> Path | None:
    """Where programs are kept; None if the cache is off, or there is no directory that is ours alone."""
    enabled, named, _ = _asked()
    return _usable(named) if enabled else None


@functools.cache
def _usable(named: str) -> Path | None:
    try:
        path = Path(named) if named else default_directory()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        trouble = _trouble(path)
    except (OSError, RuntimeError) as error:
        trouble = str(error)
    if trouble:
        warnings.warn(
            f"compiled programs are not kept on disk, so each process compiles anew: {trouble}. Set FT_CACHE_DIR (or "
            "backends.cache.directory) to a directory of yours with mode 0700, or FT_CACHE=0 to do without",
            stacklevel=2,
        )
        return None
    return path


def default_directory() -> Path:
    """functorch_like/ in $XDG_CACHE_HOME or ~/.cache."""
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


def key(program: Any, options: Any, device: Any, about: str = "") -> str | None:
    """The name a program is kept under; None if it is not kept.

    `program` is a module, or a fingerprint of it in bytes. The name covers it without the user's lines (or editing a
    comment above would recompile), all options (XLA_FLAGS among them: jaxlib reads them into every CompileOptions),
    jaxlib, and the processor. `about` tells what else is kept of a program.
    """
    if device.platform != "cpu" or directory() is None:
        return None
    if not isinstance(program, bytes):
        from functorch_like.backends.xla import mlir

        program = mlir.anonymous_bytecode(program)
    found = digest.sha256(_MAGIC)
    for part in (
        FULL_VERSION.encode(),
        processor.identity(),
        options.SerializeAsString(),
        str(len(device.client.devices())).encode(),
        program,
        about.encode(),
    ):
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.hexdigest()


def load(name: str | None, device: Any, options: Any, host_calls: Sequence[Any] = ()) -> Any:
    """The program kept under a key, or None; its callbacks call `host_calls` now. A damaged file is removed."""
    folder, body = directory(), _read(name)
    if folder is None or name is None or body is None:
        return None
    if b"lapack_" in body:  # the name of a routine that it calls; nobody lowered it in this process, perhaps
        from functorch_like.backends.xla import lapack

        lapack.ensure()
    if b"cuhybrid_" in body:
        from functorch_like.backends.xla import cusolver

        cusolver.ensure_hybrid()
    try:
        rebound = [list(host_calls)] if host_calls else []
        found = device.client.deserialize_executable(body, sharding.device_list(device), options, *rebound)
    except (JaxRuntimeError, ValueError):
        _remove(folder / name)  # ours, whole, and still refused: compile again
        return None
    _touch(folder / name)
    return found


def recall(name: str | None) -> str | None:
    """The text kept under a key, or None."""
    body = _read(name)
    return None if body is None else body.decode(errors="replace")


def _read(name: str | None) -> bytes | None:
    folder = directory()
    if folder is None or name is None:
        return None
    try:
        content = (folder / name).read_bytes()
    except OSError:
        return None
    header = len(_MAGIC) + digest.SIZE
    body = content[header:]
    if content[:header] == _MAGIC + digest.sha256(body).digest():
        return body
    _remove(folder / name)
    return None


def store(name: str, executable: Any) -> None:
    """Keep a program. Failing to is no error: a full disk must not stop a computation."""
    try:
        body = executable.serialize()
    except (JaxRuntimeError, ValueError):
        return  # not every program can be
    counters.cache_writes += _write(name, body)


def remember(name: str | None, text: str) -> None:
    """Keep a short text beside the programs."""
    if name is not None:
        _write(name, text.encode())


def _write(name: str, body: bytes) -> bool:
    folder = directory()
    if folder is None:
        return False
    import tempfile  # 4 ms, and whoever writes has compiled

    try:
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=_UNFINISHED)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + digest.sha256(body).digest() + body)
            os.replace(temporary, folder / name)  # atomic: a reader sees the whole file or none
        except BaseException:
            _remove(Path(temporary))
            raise
    except OSError:
        return False
    if name.startswith(_SWEEPING) or 64 * len(body) > _asked()[2]:
        sweep(folder)
    return True


def alias(name: str | None, other: str | None) -> None:
    """Keep the program of one key under another key, too. It is one file with two names."""
    folder = directory()
    if folder is None or name is None or other is None:
        return
    try:
        os.link(folder / name, folder / other)
    except OSError:
        return  # another process did, or the file system knows no links


class File(NamedTuple):
    """A file of the cache; its bytes are shared among the names it has."""

    used: float
    size: float
    path: Path
    inode: int


def files(folder: Path) -> list[File]:
    """What lies in a directory of the cache."""
    found: list[File] = []
    for entry in os.scandir(folder):
        try:
            seen = entry.stat()
        except OSError:
            continue  # another process was faster
        found.append(File(seen.st_mtime, seen.st_size / seen.st_nlink, Path(entry.path), seen.st_ino))
    return found


def sweep(folder: Path) -> None:
    """Remove the programs not used for longest, until nine tenths of the limit are left."""
    limit = _asked()[2]
    found = files(folder)
    total = sum(file.size for file in found)
    if total <= limit:
        return
    for file in sorted(found):
        if total <= limit * 0.9:
            return
        _remove(file.path)
        total -= file.size


def clear() -> int:
    """Remove all programs; how many there were."""
    folder = directory()
    if folder is None:
        return 0
    ours = [file for file in files(folder) if _NAME.fullmatch(file.path.name)]
    for file in ours:
        _remove(file.path)
    return programs(ours)


def programs(found: Sequence[File]) -> int:
    """How many programs files are: one may have several names."""
    return len({file.inode for file in found if not file.path.name.startswith(_UNFINISHED)})


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
