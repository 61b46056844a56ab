"""Arrays of a checkpoint, whole or by parts, read from its files and checked against its checksums."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.errors import CheckpointError
from functorch_like.io.files import FORMAT, Stored, TensorFile, logical_dtype, stored
from functorch_like.io.manifest import KEY, SUM, Leaf, Manifest, Piece, digest, read_manifest
from functorch_like.io.saving import INDEX
from functorch_like.io.structure import LEAF, malformed

Index = tuple[slice, ...]


class Checkpoint:
    """An open checkpoint.

    Attributes:
        manifest: its contents.
        foreign: True for a file that another program wrote.
    """

    foreign = False

    def __init__(self, path: Path, verify: bool) -> None:
        self._path, self._verify = path, verify
        self._files: dict[str, TensorFile] = {}
        self._verified: set[tuple[str, str]] = set()
        try:
            self.manifest = self._index() if path.is_dir() else self._header()
            self._check_files()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its files."""
        for file in self._files.values():
            file.close()

    # --------------------------------------------------------------------------------------------------- its manifest
    def _index(self) -> Manifest:
        try:
            text = (self._path / INDEX).read_text(encoding="utf-8")
        except FileNotFoundError as e:
            raise CheckpointError(
                f"the folder {self._path} has no {INDEX}: no checkpoint was completed in it", fix="check the path"
            ) from e
        except (OSError, ValueError) as e:
            raise malformed(f"{INDEX} cannot be read: {e}") from e
        try:
            data = json.loads(text)
            text, checksum = data["manifest"], data["blake2b"]
        except (ValueError, TypeError, KeyError, RecursionError) as e:
            raise malformed(f"{INDEX} is none") from e
        return read_manifest(text, checksum)

    def _header(self) -> Manifest:
        file = self._file("")
        if KEY in file.metadata or SUM in file.metadata:
            return read_manifest(file.metadata.get(KEY), file.metadata.get(SUM))
        if "part" in file.metadata:
            raise CheckpointError(f"{self._path} is one part of a checkpoint", fix="load its folder")
        self.foreign = True
        return _foreign_manifest(file)

    def _file(self, name: str) -> TensorFile:
        file = self._files.get(name)
        if file is None:
            file = self._files[name] = TensorFile(self._path / name if name else self._path)
        return file

    def _check_files(self) -> None:
        """Check that the files have the tensors that the manifest names, with their shapes and dtypes."""
        for leaf in self.manifest.leaves:
            for piece in leaf.pieces:
                like = stored_like(leaf, piece)
                tensor = self._file(piece.file).tensors.get(piece.tensor)
                if tensor is None or (FORMAT.get(tensor.dtype), tensor.shape) != like:
                    raise malformed(
                        f"{piece.file or self._path.name} lacks {piece.tensor!r:.100}, or has another array"
                    )

    # ----------------------------------------------------------------------------------------------------- its arrays
    def read(self, leaf: Leaf, index: Index | None = None) -> np.ndarray[Any, Any]:
        """Return an array, or the part of it at an index of slices."""
        bounds = _bounds(leaf.shape, index)
        shape, dtype = tuple(stop - start for start, stop in bounds), dtypes.exact_dtype(leaf.dtype)
        whole: np.ndarray[Any, Any] | None = None
        for piece in leaf.pieces:
            common = _common(bounds, piece)
            if common is None:
                continue
            part = self._part(piece, dtype, common)
            if part.shape == shape:
                return part
            if whole is None:
                whole = np.empty(shape, dtype)
            whole[tuple(slice(a - start, b - start) for (a, b), (start, _) in zip(common, bounds, strict=True))] = part
        return np.empty(shape, dtype) if whole is None else whole

    def _part(self, piece: Piece, dtype: dtypes.DType, bounds: Sequence[tuple[int, int]]) -> np.ndarray[Any, Any]:
        file = self._file(piece.file)
        inner = [(a - start, b - start) for (a, b), start in zip(bounds, piece.start, strict=True)]
        first, last = inner[0] if inner else (0, 1)
        everything = not inner or (first, last) == (0, piece.shape[0])
        key = (piece.file, piece.tensor)
        if self._verify and piece.digest and key not in self._verified and not everything:
            self._compare(piece, file.digest(piece.tensor))
        data = file.rows(piece.tensor, first, last)
        if self._verify and piece.digest and key not in self._verified and everything:
            self._compare(piece, digest(data))
        self._verified.add(key)
        rows = data.view(dtype).reshape(((last - first), *piece.shape[1:]) if inner else ())
        return rows[(slice(None), *(slice(a, b) for a, b in inner[1:]))] if inner else rows

    def _compare(self, piece: Piece, digest: str) -> None:
        if digest != piece.digest:
            raise CheckpointError(
                f"the bytes of {piece.tensor!r} in {piece.file or self._path} are not those that were saved",
                fix="restore from another copy; verify=False reads them all the same",
            )


def stored_like(leaf: Leaf, piece: Piece) -> tuple[str, tuple[int, ...]]:
    """The dtype and shape that a piece has in its file."""
    dtype = dtypes.exact_dtype(leaf.dtype)
    one = stored(np.empty((1,), dtype))
    return one.dtype.name, (*piece.shape, *one.shape[1:])


def _bounds(shape: tuple[int, ...], index: Index | None) -> list[tuple[int, int]]:
    if index is None:
        return [(0, size) for size in shape]
    return [s.indices(size)[:2] for s, size in zip(index, shape, strict=True)]


def _common(bounds: Sequence[tuple[int, int]], piece: Piece) -> list[tuple[int, int]] | None:
    """The intersection of an index and a piece, or None."""
    both = [
        (max(a, start), min(b, start + size))
        for (a, b), start, size in zip(bounds, piece.start, piece.shape, strict=True)
    ]
    return both if all(a < b for a, b in both) else None


def _foreign_manifest(file: TensorFile) -> Manifest:
    """The manifest of a file that another program wrote: a dict of arrays."""
    leaves: list[Leaf] = []
    for name, tensor in sorted(file.tensors.items()):
        dtype = logical_dtype(tensor)
        _check_bytes(name, tensor, dtype)
        piece = Piece("", name, (0,) * len(tensor.shape), tensor.shape, "")
        leaves.append(Leaf(name, "array", dtype.name, tensor.shape, False, None, (piece,)))
    structure = {"dict": [["str", leaf.name, LEAF] for leaf in leaves]}
    return Manifest(structure, tuple(leaves), {})


def _check_bytes(name: str, tensor: Stored, dtype: dtypes.DType) -> None:
    if tensor.end - tensor.begin != math.prod(tensor.shape) * dtype.itemsize:
        raise malformed(f"{name!r:.100} has another size than its shape and dtype")
