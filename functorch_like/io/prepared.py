"""A tree made ready to be written: its manifest, and the parts of arrays that this process has, on the host."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from functorch_like import tree
from functorch_like.core import ArrayImpl, Tracer, aval_of
from functorch_like.errors import CheckpointError, FtError
from functorch_like.io import values
from functorch_like.io.files import flat_bytes, stored
from functorch_like.io.manifest import Leaf, Manifest, Piece, digest
from functorch_like.io.structure import encode


class Prepared(NamedTuple):
    """The data of one write.

    Attributes:
        manifest: its pieces are those of this process, with no file yet.
        tensors: the pieces, by the names of their tensors.
        spread: names of leaves of which other processes have parts.
    """

    manifest: Manifest
    tensors: dict[str, np.ndarray[Any, Any]]
    spread: list[str]


def prepare(
    tree_of_arrays: Any, info: dict[str, Any] | None = None, *, copy: bool = False, first: bool = True
) -> Prepared:
    """Copy a tree to the host.

    Args:
        tree_of_arrays: the tree.
        info: JSON data to keep with it.
        copy: let no memory be shared with the tree, which may be donated or changed before it is written.
        first: this is the process that writes the arrays that all processes have.

    Raises:
        CheckpointError: for leaves that cannot be saved; names each.
    """
    pairs, _ = tree.flatten_with_path(tree_of_arrays)
    leaves: list[Leaf] = []
    tensors: dict[str, np.ndarray[Any, Any]] = {}
    spread: list[str] = []
    refused: list[str] = []
    for name, (_, value) in zip(leaf_names([path for path, _ in pairs]), pairs, strict=True):
        why = _refusal(value) or _name_refusal(name)
        if why:
            refused.append(f"    {name.encode(errors='backslashreplace').decode()}: {why}")
        elif values.is_plain(value):
            leaves.append(Leaf(name, "value", value=values.encode(value)))
        else:
            if not _is_whole(value):
                spread.append(name)
            leaves.append(_array(name, value, tensors, copy, first))
    if refused:
        raise CheckpointError(
            "leaves of the tree cannot be saved:\n" + "\n".join(refused),
            fix="save arrays, numbers, strings and containers of these; leave functions and objects out",
        )
    return Prepared(Manifest(encode(tree_of_arrays), tuple(leaves), info or {}), tensors, spread)


def leaf_names(paths: list[Any]) -> list[str]:
    """Names of leaves: `params.layers.0.w`; or as Python writes the path, where a key has a dot or begins with `__`."""
    return [_leaf_name(path) for path in paths]


def _leaf_name(path: Any) -> str:
    plain = dotted(path)
    if plain.count(".") >= max(len(path), 1) or plain.startswith("__"):
        return tree.keystr(path)
    return plain or "value"


def dotted(path: Any) -> str:
    """The keys of a path, joined by dots."""
    return tree.keystr(path, simple=True, separator=".")


def _refusal(value: Any) -> str:
    """Return the reason why a leaf cannot be saved, or an empty string."""
    if values.is_plain(value):
        return ""
    if isinstance(value, Tracer):
        return f"{aval_of(value)!r} is only traced; save outside of jit, or from io_callback"
    if not isinstance(value, (ArrayImpl, np.ndarray, np.generic)):
        return f"a {type(value).__name__}"
    try:
        aval_of(value)
        if isinstance(value, ArrayImpl) and value.is_deleted():
            return "its memory was donated to a computation, or deleted"
    except FtError as e:
        return e.reason
    return ""


def _name_refusal(name: str) -> str:
    """Return the reason why a name cannot stand in a file, or an empty string."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return "a key of its path has half of a surrogate pair, which is not text that files hold"
    return ""


def _is_whole(value: Any) -> bool:
    return not isinstance(value, ArrayImpl) or value.is_fully_addressable or value.is_fully_replicated


def _array(name: str, value: Any, tensors: dict[str, np.ndarray[Any, Any]], copy: bool, first: bool) -> Leaf:
    aval = aval_of(value)
    kind = "array" if isinstance(value, ArrayImpl) else "scalar" if isinstance(value, np.generic) else "numpy"
    if _is_whole(value):
        parts = [((0,) * aval.ndim, np.asarray(value))] if first else []
    else:
        shards: Any = value.addressable_shards  # pyright: ignore[reportAttributeAccessIssue]
        own = [shard for shard in shards if shard.replica_id == 0]
        parts = [(tuple(s.start or 0 for s in shard.index), np.asarray(shard.data)) for shard in own]
    pieces: list[Piece] = []
    for start, part in parts:
        host = np.array(part, order="C", copy=True if copy else None)
        tensor = name if host.shape == aval.shape else f"{name}@{','.join(map(str, start))}"
        while tensor in tensors:  # a leaf with such a name
            tensor += "'"
        tensors[tensor] = stored(host)
        pieces.append(Piece("", tensor, start, host.shape, digest(flat_bytes(host))))
    weak = aval.weak_type and kind == "array"
    return Leaf(name, kind, aval.dtype.name, aval.shape, weak, None, tuple(pieces))
