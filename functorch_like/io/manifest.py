"""The manifest of a checkpoint: its structure, its leaves, and where the parts of each array are, as JSON."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any, NamedTuple

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.errors import CheckpointError
from functorch_like.io.structure import count_leaves, malformed

VERSION = 1
#: Kinds of leaves that are arrays.
ARRAYS = ("array", "numpy", "scalar")
#: The key of the manifest in the metadata of a safetensors file, and that of its checksum.
KEY, SUM = "functorch_like", "functorch_like.blake2b"


class Piece(NamedTuple):
    """One stored part of an array.

    Attributes:
        file: its name in the checkpoint's folder; empty for the file that has the manifest.
        tensor: its name in the file.
        start, shape: the part of the array.
        digest: of the bytes.
    """

    file: str
    tensor: str
    start: tuple[int, ...]
    shape: tuple[int, ...]
    digest: str


class Leaf(NamedTuple):
    """One leaf of the saved tree.

    Attributes:
        name: its path, e.g. "params.w".
        kind: "array", "numpy", "scalar" for NumPy's, or "value" for Python's own.
        dtype, shape, weak: of arrays.
        value: of other leaves, as JSON data.
        pieces: where the array is.
    """

    name: str
    kind: str
    dtype: str = ""
    shape: tuple[int, ...] = ()
    weak: bool = False
    value: Any = None
    pieces: tuple[Piece, ...] = ()

    @property
    def aval(self) -> ShapedArray:
        """The abstract value of an array."""
        return ShapedArray(self.shape, dtypes.exact_dtype(self.dtype), self.weak)


class Manifest(NamedTuple):
    """The content of a checkpoint.

    Attributes:
        structure: of the tree, as `structure.encode` gives it.
        leaves: in the order of `tree.flatten`.
        info: JSON data of the caller that saved it.
    """

    structure: Any
    leaves: tuple[Leaf, ...]
    info: dict[str, Any]


def digest(data: Any) -> str:
    """A checksum of bytes."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def manifest_text(manifest: Manifest) -> tuple[str, str]:
    """The JSON of a manifest, and its checksum."""
    leaves = [
        {**leaf._asdict(), "pieces": [piece._asdict() for piece in leaf.pieces]} for leaf in manifest.leaves
    ]  # fmt: skip
    data = {"version": VERSION, "structure": manifest.structure, "leaves": leaves, "info": manifest.info}
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text, digest(text.encode())


def read_manifest(text: Any, checksum: Any, *, whole: bool = True) -> Manifest:
    """Read a manifest, and check all its entries.

    Args:
        text: its JSON.
        checksum: of the text.
        whole: False for that of one part, whose pieces do not make up arrays.

    Raises:
        CheckpointError: where it is damaged, contradicts itself, or is of a later version.
    """
    if not isinstance(text, str) or digest(text.encode(errors="surrogatepass")) != checksum:
        raise malformed("the checksum of its manifest is another")
    try:
        data = json.loads(text)
        structure_leaves = count_leaves(data["structure"])
    except (ValueError, RecursionError, TypeError, KeyError) as e:
        raise malformed(f"its manifest is not JSON of the right form ({type(e).__name__})") from e
    if data.get("version") != VERSION:
        raise CheckpointError(
            f"the checkpoint has version {data.get('version')!r:.20} of the format, and this package reads {VERSION}",
            fix="read it with the version of the package that wrote it, or a later one",
        )
    leaves, info = data.get("leaves"), data.get("info")
    if not isinstance(leaves, list) or not isinstance(info, dict):
        raise malformed("its manifest lacks leaves or info")
    manifest = Manifest(data["structure"], tuple(_leaf(leaf) for leaf in leaves), info)
    names = {leaf.name for leaf in manifest.leaves}
    if len(names) != len(leaves) or structure_leaves != len(leaves):
        raise malformed("its structure and its leaves differ in number, or two leaves have one name")
    return check_whole(manifest) if whole else manifest


def check_whole(manifest: Manifest) -> Manifest:
    """Return a manifest whose pieces make up the arrays.

    Raises:
        CheckpointError: where they do not.
    """
    for leaf in manifest.leaves:
        if leaf.kind in ARRAYS:
            _check_cover(leaf)
    return manifest


def _leaf(data: Any) -> Leaf:
    fields = _fields(Leaf, data, {"name": str, "kind": str, "dtype": str, "shape": list, "weak": bool, "pieces": list})
    leaf = Leaf(**{**fields, "shape": _sizes(fields["shape"]), "pieces": tuple(map(_piece, fields["pieces"]))})
    if leaf.kind == "value":
        return leaf
    if leaf.kind not in ARRAYS:
        raise malformed(f"leaf {leaf.name!r:.100} is of an unknown kind")
    try:
        dtypes.exact_dtype(leaf.dtype)
    except Exception as e:
        raise malformed(f"leaf {leaf.name!r:.100} has an unknown dtype {leaf.dtype!r:.40}") from e
    return leaf


def _piece(data: Any) -> Piece:
    fields = _fields(Piece, data, {"file": str, "tensor": str, "start": list, "shape": list, "digest": str})
    name = fields["file"]
    if "/" in name or "\\" in name or "\0" in name or name in (".", ".."):
        raise malformed(f"it names a file {name!r:.100} outside of its folder")
    return Piece(**{**fields, "start": _sizes(fields["start"]), "shape": _sizes(fields["shape"])})


def _fields(kind: Any, data: Any, types: dict[str, type]) -> dict[str, Any]:
    if not isinstance(data, dict) or set(data) != set(kind._fields):
        raise malformed(f"an entry of its manifest is not of type {kind.__name__.lower()}")
    if any(type(data[name]) is not of for name, of in types.items()):
        raise malformed(f"a {kind.__name__.lower()} of its manifest has a field of a wrong type")
    return data


def _sizes(values: list[Any]) -> tuple[int, ...]:
    if len(values) > 64 or any(type(v) is not int or not 0 <= v < 2**62 for v in values):
        raise malformed("a shape of its manifest is none")
    return tuple(values)


def _check_cover(leaf: Leaf) -> None:
    """Check that pieces lie inside of an array, do not overlap, and leave nothing out."""
    rank = len(leaf.shape)
    if any(len(p.start) != rank or len(p.shape) != rank for p in leaf.pieces):
        raise malformed(f"a piece of {leaf.name!r:.100} has another rank than the array")
    starts = np.array([p.start for p in leaf.pieces], np.int64).reshape(len(leaf.pieces), rank)
    stops = starts + np.array([p.shape for p in leaf.pieces], np.int64).reshape(starts.shape)
    inside = bool((stops <= np.array(leaf.shape, np.int64)).all())
    covered = sum(math.prod(p.shape) for p in leaf.pieces)
    overlap = any(
        bool(((starts[:k] < stops[k]) & (stops[:k] > starts[k])).all(axis=1).any()) for k in range(1, len(starts))
    )
    if not inside or overlap or covered != math.prod(leaf.shape):
        raise malformed(f"the pieces of {leaf.name!r:.100} do not make up an array of shape {leaf.shape}")
