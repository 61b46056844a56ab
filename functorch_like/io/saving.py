"""`save`: a pytree in one safetensors file, or in a folder of them to which several processes write."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

from functorch_like.calling import api_boundary
from functorch_like.distributed.lifecycle import joined
from functorch_like.distributed.member import Member
from functorch_like.errors import CheckpointError, DistributedError
from functorch_like.io.files import TensorFile, library, sync_folder, write_tensors, write_text
from functorch_like.io.manifest import KEY, SUM, Leaf, Manifest, check_whole, manifest_text, read_manifest
from functorch_like.io.prepared import Prepared, prepare

SUFFIX = ".safetensors"
INDEX = "index.json"
#: Seconds that a process waits for the others to write their parts.
_PATIENCE = 600.0


@api_boundary.public
def save(path: str | PathLike[str], tree: object) -> None:
    """Write a pytree to disk.

    A path that ends in `.safetensors` becomes one file, any other a folder of such files with an index. Other
    frameworks read the tensors, which have the paths of their leaves as names: `params.layers.0.w`. The structure,
    dtypes that the format lacks, Python's numbers and strings, and checksums are in the header or the index.

    The file or folder is complete and on disk when the call returns. If the process is killed before, the old content
    is unchanged. It costs one copy to the host, a checksum, and the writing.

    In a program of several processes all call it with the same tree, and into the same folder; each writes the parts of
    split arrays that it has.

    Args:
        path: of the file or folder.
        tree: pytree of arrays, NumPy arrays, numbers and strings.

    Raises:
        CheckpointError: for leaves of other types, which it names, and where it cannot be written.
        UnsupportedError: where the safetensors library is not installed.

    >>> import functorch_like as ft, functorch_like.numpy as fnp, tempfile
    >>> path = tempfile.mkdtemp() + "/model.safetensors"
    >>> ft.io.save(path, {"w": fnp.ones((2, 3), "bfloat16"), "step": 7})
    >>> ft.io.load(path)["w"].dtype.name
    'bfloat16'
    """
    save_with(path, tree, {})


@api_boundary.public
def save_async(path: str | PathLike[str], tree: object) -> Future[None]:
    """Copy a pytree to the host, and write it to disk in a thread.

    The tree may be donated, deleted or changed as soon as the call has returned. Writes are made one after the other,
    and Python waits for them before it ends. In a program of several processes all call it in the same order, and do
    not wait for each other; the threads do.

    Args:
        path: as for `save`.
        tree: as for `save`.

    Returns:
        A future: its `result()` waits until the write is complete, in all processes, and raises the error if there was
        one in any of them.

    Raises:
        CheckpointError: for leaves that cannot be saved.

    >>> import functorch_like as ft, functorch_like.numpy as fnp, tempfile
    >>> path = tempfile.mkdtemp() + "/state"
    >>> ft.io.save_async(path, [fnp.ones(3), "note"]).result()
    >>> ft.io.load(path)[1]
    'note'
    """
    return save_async_with(path, tree, {})


def save_with(path: str | PathLike[str], tree: object, info: dict[str, Any]) -> None:
    """Save with data of the caller's."""
    library()
    state = joined()
    if state is None:
        _write(Path(path), prepare(tree, info))
    else:  # in the thread: the processes agree in the order in which they save
        _submit_together(state.member, Path(path), tree, info, copy=False).result()


def save_async_with(
    path: str | PathLike[str], tree: object, info: dict[str, Any], after: Callable[[], None] = lambda: None
) -> Future[None]:
    """Save as `save_async` does, with data of the caller's, and a call after the write."""
    library()
    state = joined()
    if state is not None:
        return _submit_together(state.member, Path(path), tree, info, copy=True, after=after)
    prepared = prepare(tree, info, copy=True)

    def write() -> None:
        _write(Path(path), prepared)
        after()

    return _writer().submit(write)


@cache
def _writer() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "functorch_like.io")


# ------------------------------------------------------------------------------------------------------- one process
def _write(path: Path, prepared: Prepared) -> None:
    if path.suffix == SUFFIX:
        _make_folder(path.parent)
        text, checksum = manifest_text(prepared.manifest)
        write_tensors(path, prepared.tensors, {KEY: text, SUM: checksum})
        return
    _make_folder(path)
    part = _part_name(secrets.token_hex(4), 0, 1)
    _write_part(path / part, prepared)
    _write_index(path, _in_file(prepared.manifest, part))


def _make_folder(path: Path) -> None:
    try:
        if not path.is_dir():
            path.mkdir(parents=True, exist_ok=True)
            sync_folder(path.parent)
    except OSError as e:
        raise CheckpointError(f"the folder {path} cannot be made: {e}", fix="choose another place") from e


def _part_name(token: str, rank: int, count: int) -> str:
    return f"part-{token}-{rank + 1:05d}-of-{count:05d}{SUFFIX}"


def _write_part(path: Path, prepared: Prepared) -> None:
    text, checksum = manifest_text(_in_file(prepared.manifest, path.name))
    write_tensors(path, prepared.tensors, {"part": text, "part.blake2b": checksum})


def _in_file(manifest: Manifest, file: str) -> Manifest:
    return manifest._replace(
        leaves=tuple(
            leaf._replace(pieces=tuple(piece._replace(file=file) for piece in leaf.pieces)) for leaf in manifest.leaves
        )
    )


def _write_index(folder: Path, manifest: Manifest) -> None:
    """Make the parts the checkpoint, in one step; then remove those of the one before."""
    text, checksum = manifest_text(manifest)
    write_text(folder / INDEX, json.dumps({"manifest": text, "blake2b": checksum}))
    used = {piece.file for leaf in manifest.leaves for piece in leaf.pieces}
    for old in folder.glob(f"part-*{SUFFIX}"):
        if old.name not in used:
            old.unlink(missing_ok=True)


# -------------------------------------------------------------------------------------------------- several processes
def _submit_together(
    member: Member,
    path: Path,
    tree: object,
    info: dict[str, Any],
    *,
    copy: bool,
    after: Callable[[], None] = lambda: None,
) -> Future[None]:
    """Let the thread write the part of this process, and call `after` once all processes have written."""
    prepared: Prepared | Exception
    try:
        prepared = prepare(tree, info, copy=copy, first=member.rank == 0)
    except Exception as e:
        prepared = e

    def write() -> None:
        _save_together(member, path, prepared)
        after()

    future = _writer().submit(write)
    if isinstance(prepared, Exception):
        raise prepared  # the others are notified by the thread
    return future


def _save_together(member: Member, path: Path, prepared: Prepared | Exception) -> None:
    """Each process writes its part; the first one makes them the checkpoint once all are on disk."""
    rank, count = member.rank, member.count
    token = _exchange(member, secrets.token_hex(4).encode(), path)[0].decode()
    failure: Exception | None = None
    try:
        if isinstance(prepared, Exception):
            raise prepared
        if path.suffix == SUFFIX:
            if prepared.spread:
                raise CheckpointError(
                    f"{path} is one file, and other processes have parts of {', '.join(prepared.spread[:5])}",
                    fix="save into a folder: a path without .safetensors",
                )
            if rank == 0:
                _write(path, prepared)
        else:
            _make_folder(path)
            _write_part(path / _part_name(token, rank, count), prepared)
    except Exception as e:
        failure = e
    _agree(member, failure, path, "writing its part")
    if path.suffix == SUFFIX:
        return
    try:
        if rank == 0:
            _write_index(path, _united([path / _part_name(token, r, count) for r in range(count)]))
    except Exception as e:
        failure = e
    _agree(member, failure, path, "writing the index")


def _exchange(member: Member, value: bytes, path: Path) -> dict[int, bytes]:
    """The values of all processes."""
    return member.exchange("ft.io", value, _PATIENCE, what=f"saving {path}")


def _agree(member: Member, failure: Exception | None, path: Path, what: str) -> None:
    """Raise in all processes where one of them has failed."""
    answers = _exchange(member, b"failed" if failure is not None else b"", path)
    failed = sorted(rank for rank, answer in answers.items() if answer)
    if failure is not None:
        raise failure
    if failed:
        raise DistributedError(
            f"process {failed[0]} failed at {what} of {path}; the checkpoint that was there is unchanged",
            fix="read the error of that process",
        )


def _united(parts: list[Path]) -> Manifest:
    """The manifest of all parts."""
    manifests: list[Manifest] = []
    for part in parts:
        file = TensorFile(part)
        file.close()
        manifests.append(read_manifest(file.metadata.get("part"), file.metadata.get("part.blake2b"), whole=False))
    if any([leaf[:5] for leaf in m.leaves] != [leaf[:5] for leaf in manifests[0].leaves] for m in manifests):
        raise CheckpointError("the processes saved different trees", fix="pass the same tree in every process")
    leaves = [_joined_leaf(same) for same in zip(*(m.leaves for m in manifests), strict=True)]
    return check_whole(manifests[0]._replace(leaves=tuple(leaves)))


def _joined_leaf(same: tuple[Leaf, ...]) -> Leaf:
    return same[0]._replace(pieces=tuple(piece for leaf in same for piece in leaf.pieces))
