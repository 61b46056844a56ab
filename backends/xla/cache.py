"""Compiled programs kept on disk: compiling one small kernel takes 25 ms, loading it half a millisecond.

Whether, where and how much is kept is set in `functorch_like.backends.cache`.

TRAP: jaxlib checks nothing about what it loads. Machine code of another version or for another processor loads and
runs, and a writer of the file runs code in the user's name. Hence three precautions: a key that names version and
processor, a checksum that covers the name of the file too, and files that no other user can write to.
"""

from __future__ import annotations

import functools
import os
import re
import stat
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from functorch_like.backends.xla import cache_policy, counters, cuda, host_kernels, processor, sharding
from functorch_like.backends.xla.digest import SIZE, digest
from functorch_like.backends.xla.jaxlib_api import FULL_VERSION, JaxRuntimeError

_MAGIC = b"functorch_like executable 4\n"
_UNFINISHED = ".new-"
_TEXT = ".text"
_KERNELS = "kernels-"
_NAME = r"[0-9a-f]{64}(\.text)?|\.new-.*"
# On Windows these bits are not about other users.
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH if hasattr(os, "getuid") else 0
# Listing the directory takes time: 0.2 s for 50,000 files. Most processes write little, so the first listing comes
# after a program whose name begins like this (one in 64), or 64 of which would exceed the limit.
_SWEEPING = ("00", "40", "80", "c0")
# After a listing, a process writes one part in so many of the free space before the next one. So eight processes that
# write at once keep to the limit.
_SHARE = 8
#: Bytes that this process may write before it lists a directory again, by directory and limit.
_room: dict[tuple[Path, int], int] = {}


def directory() -> Path | None:
    """Return the directory of programs; None if the cache is off, or no directory is this user's alone."""
    enabled, named, _ = cache_policy.settings()
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
            "backends.cache.directory) to a directory that only you can write to, or FT_CACHE=0 to do without",
            stacklevel=2,
        )
        return None
    return path


def default_directory() -> Path:
    """functorch_like/ in $XDG_CACHE_HOME or ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    # The standard requires programs to ignore a relative XDG_CACHE_HOME.
    return (Path(base) if base and os.path.isabs(base) else Path.home() / ".cache") / "functorch_like"


def _trouble(path: Path) -> str:
    """Return the reason why a directory cannot be trusted, or an empty string."""
    status = path.stat()
    if _belongs_to_another(status):
        return f"{path} belongs to another user"
    if status.st_mode & _WRITABLE_BY_OTHERS:
        return f"other users can write to {path} (mode {stat.S_IMODE(status.st_mode):04o}: chmod go-w)"
    if not os.access(path, os.W_OK | os.X_OK):
        return f"{path} cannot be written to"
    return ""


def _belongs_to_another(status: os.stat_result) -> bool:
    return hasattr(os, "getuid") and status.st_uid != os.getuid()


def key(program: Any, options: Any, device: Any, about: str = "") -> str | None:
    """The name a program is kept under; None if it is not kept.

    `program` is a module, or a fingerprint of it in bytes. The name covers it without the user's lines (or editing a
    comment above would recompile), all options (XLA_FLAGS among them: jaxlib reads them into every CompileOptions),
    jaxlib, and the processor. `about` names the other facts kept of a program.
    """
    client = device.client
    on_gpu = device.platform != "cpu"
    if directory() is None or (on_gpu and _compiles_with_others(client)):
        return None
    if not isinstance(program, bytes):
        from functorch_like.backends.xla import mlir

        program = mlir.anonymous_bytecode(program)
    hashed = digest(_MAGIC)
    chosen = options.SerializeAsString()
    # Files of such programs from before `library_check` looked at them may end the process.
    if b"xla_cpu_use_onednn" in chosen:
        hashed.update(b"without products of many matrices")
    for part in (
        FULL_VERSION.encode(),
        cuda.identity(client.local_devices()[0]) if on_gpu else processor.identity(),
        chosen,
        str(len(client.devices())).encode(),
        program,
        about.encode(),
    ):
        hashed.update(len(part).to_bytes(8, "little"))
        hashed.update(part)
    return hashed.hexdigest()


def _compiles_with_others(client: Any) -> bool:
    """Return True for GPUs of several processes: they share the work of compiling, so that all of them must do so."""
    return len(client.devices()) > len(client.local_devices())


def kernels(device: Any) -> Path | None:
    """Return the directory in which XLA keeps which kernels were the fastest on a GPU; None if they are not kept.

    The cache's limit does not count them: they are small.
    """
    folder, client = directory(), device.client
    if folder is None or device.platform == "cpu" or _compiles_with_others(client):
        return None
    on = digest(FULL_VERSION.encode() + cuda.identity(client.local_devices()[0])).hexdigest()
    path = folder / f"{_KERNELS}{on[:16]}"
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return None
    return path


def home(name: str | None) -> str:
    """Return the host and path of a program on disk, equal in processes that share the file; "" if it is not kept."""
    folder = directory()
    if name is None or folder is None:
        return ""
    import socket  # for programs of several processes alone

    return f"{socket.gethostname()}:{folder / name}"


def has(home: str) -> bool:
    """Return True if there is a program at the place that `home` returned."""
    return bool(home) and Path(home.partition(":")[2]).exists()


def load(name: str | None, device: Any, options: Any, host_calls: list[Any]) -> Any:
    """The program kept under a key, or None; its callbacks call `host_calls` now. A damaged file is removed.

    If this process has not lowered the program, `host_calls` is empty, and receives the kernels that the program calls.
    """
    folder, body = directory(), _read(name)
    if folder is None or name is None or body is None:
        return None
    try:
        program = deserialized(body, device, options, host_calls)
    except (JaxRuntimeError, ValueError):
        _remove(folder / name)  # an intact file of the package that jaxlib refuses: compile again
        return None
    _touch(folder / name)
    return program


def deserialized(body: bytes, device: Any, options: Any, host_calls: list[Any]) -> Any:
    """Load a compiled program from its bytes, onto a device or a mesh; `host_calls` receives the kernels it calls."""
    if b"lapack_" in body:  # the name of a routine that it calls; it may not have been lowered in this process
        from functorch_like.backends.xla import lapack

        lapack.ensure()
    if b"cuhybrid_" in body:
        from functorch_like.backends.xla import cusolver

        cusolver.ensure_hybrid()
    host_kernels.bind(body, host_calls)
    rebound = [list(host_calls)] if host_calls else []
    return device.client.deserialize_executable(body, sharding.device_list(device), options, *rebound)


def recall(name: str | None) -> str | None:
    """The text kept under a key, or None."""
    folder, body = directory(), _read(name + _TEXT if name else None)
    if folder is None or name is None or body is None:
        return None
    _touch(folder / (name + _TEXT))
    return body.decode(errors="replace")


def _read(name: str | None) -> bytes | None:
    folder = directory()
    if folder is None or name is None:
        return None
    try:
        with open(folder / name, "rb") as file:
            seen = os.fstat(file.fileno())
            content = file.read()
    except OSError:
        return None
    header = len(_MAGIC) + SIZE
    body = content[header:]
    # The directory was checked once; since then, a user who can write to its parent may have replaced it.
    trusted = not _belongs_to_another(seen) and not seen.st_mode & _WRITABLE_BY_OTHERS
    if trusted and content[:header] == _header(name, body):
        return body
    _remove(folder / name)
    return None


def _header(name: str, body: bytes) -> bytes:
    """Return the first bytes of a file. They cover the name: an entry under another name is another program."""
    return _MAGIC + digest(name.encode() + b"\n" + body).digest()


def store(name: str, executable: Any) -> None:
    """Write a program to disk. A failure is not an error: a full disk must not stop a computation."""
    try:
        body = executable.serialize()
    except (JaxRuntimeError, ValueError):
        return  # XLA cannot serialise every program
    counters.cache_writes += _write(name, body)


def remember(name: str | None, text: str | None) -> None:
    """Keep a short text beside the programs."""
    if name is not None and text is not None:
        _write(name + _TEXT, text.encode())


def _write(name: str, body: bytes) -> bool:
    folder = directory()
    if folder is None:
        return False
    import tempfile  # 4 ms, little after compiling

    try:
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=_UNFINISHED)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_header(name, body) + body)
            os.replace(temporary, folder / name)  # atomic: a reader sees the whole file or none
        except BaseException:
            _remove(Path(temporary))
            raise
    except OSError:
        return False
    _keep_to_limit(folder, name, len(body))
    return True


def _keep_to_limit(folder: Path, name: str, size: int) -> None:
    """Sweep the directory after a file was written to it, if it may now be full."""
    limit = cache_policy.settings()[2]
    room = _room.get((folder, limit))
    if room is None and not name.startswith(_SWEEPING) and 64 * size <= limit:
        return
    if room is not None and room >= size:
        _room[folder, limit] = room - size
        return
    # A little room even in a full directory, or each write would list it.
    _room[folder, limit] = max((limit - sweep(folder)) // _SHARE, limit >> 10)


class File(NamedTuple):
    """A file of the cache: when it was used last, its size in bytes and its name."""

    used: float
    size: int
    name: str


def files(folder: Path) -> list[File]:
    """List the files in a directory of the cache."""
    entries: list[File] = []
    for entry in os.scandir(folder):
        try:
            seen = entry.stat()
        except OSError:
            continue  # another process was faster
        if not stat.S_ISREG(seen.st_mode):
            continue
        entries.append(File(seen.st_mtime, seen.st_size, entry.name))
    return entries


def sweep(folder: Path) -> int:
    """Remove the programs not used for longest, until nine tenths of the limit are left; return the bytes in use."""
    limit = cache_policy.settings()[2]
    entries = files(folder)
    total = sum(file.size for file in entries)
    if total > limit:
        for file in sorted(entries):
            if total <= limit * 0.9:
                break
            _remove(folder / file.name)
            total -= file.size
    return total


def clear() -> int:
    """Remove all programs, and return their number."""
    folder = directory()
    if folder is None:
        return 0
    import shutil  # 3 ms

    for path in folder.glob(f"{_KERNELS}*"):
        shutil.rmtree(path, ignore_errors=True)
    own = [file for file in files(folder) if re.fullmatch(_NAME, file.name)]
    for file in own:
        _remove(folder / file.name)
    return programs(own)


def programs(entries: Sequence[File]) -> int:
    """Return how many of the files are programs; others are texts, or were not finished."""
    return sum(not file.name.startswith(_UNFINISHED) and not file.name.endswith(_TEXT) for file in entries)


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
