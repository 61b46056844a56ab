"""`load` and `describe`: a saved tree as it was, or in the structure and on the devices of an example."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np

from functorch_like import tree as trees
from functorch_like.arrays.devices import device_put
from functorch_like.avals import ShapeDtypeStruct
from functorch_like.backends.xla import named_sharding
from functorch_like.calling import api_boundary
from functorch_like.core import ArrayImpl, Tracer, aval_of
from functorch_like.errors import CheckpointError
from functorch_like.io import values
from functorch_like.io.manifest import ARRAYS, Leaf
from functorch_like.io.prepared import dotted, leaf_names
from functorch_like.io.reading import Checkpoint
from functorch_like.io.structure import decode, too_deep
from functorch_like.primitives.elementwise.conversion import convert_element_type
from functorch_like.sharding.assembly import make_array_from_callback

T = TypeVar("T")


@overload
def load(
    path: str | PathLike[str],
    like: None = None,
    *,
    shardings: object = None,
    partial: bool = False,
    verify: bool = True,
) -> Any: ...
@overload
def load(
    path: str | PathLike[str], like: T, *, shardings: object = None, partial: bool = False, verify: bool = True
) -> T: ...
@api_boundary.public
def load(
    path: str | PathLike[str],
    like: object = None,
    *,
    shardings: object = None,
    partial: bool = False,
    verify: bool = True,
) -> object:
    """Read a pytree that `save` wrote, or the tensors of a safetensors file from elsewhere.

    Nothing in the file is executed, and no class that it names is imported. A split array is read in the parts that the
    devices of this process hold; the mesh may be another one than that of `save`.

    Args:
        path: of the file or folder.
        like: an example of the tree: arrays or `ShapeDtypeStruct`s, NumPy arrays, numbers. Leaves are found by their
            paths, and go where the example's arrays are, or where its shardings are. Without it, the tree is made of
            Python's own containers, and arrays go to the default device.
        shardings: where to put arrays, as a prefix pytree, in place of where those of `like` are.
        partial: read the leaves that the file has, and keep those of `like` for the others.
        verify: compare checksums.

    Returns:
        The tree. Arrays have the dtypes and weak types with which they were saved.

    Raises:
        CheckpointError: for a file that is missing, damaged or cut off; where the file and `like` differ, with a line
            for each leaf; where the tree has nodes that only `like` describes.
        UnsupportedError: where the safetensors library is not installed.

    >>> import functorch_like as ft, functorch_like.numpy as fnp, tempfile
    >>> path = tempfile.mkdtemp() + "/state.safetensors"
    >>> ft.io.save(path, {"w": fnp.arange(3.0), "steps": (1, 2)})
    >>> ft.io.load(path)
    {'steps': (1, 2), 'w': Array([0., 1., 2.], dtype=float32)}
    >>> ft.io.load(path, {"w": fnp.zeros(3), "more": 5}, partial=True)
    {'more': 5, 'w': Array([0., 1., 2.], dtype=float32)}
    """
    with Checkpoint(Path(path), verify) as checkpoint:
        if like is None:
            return _as_saved(checkpoint, shardings)
        return _like(checkpoint, str(path), like, shardings, partial)


@api_boundary.public
def describe(path: str | PathLike[str]) -> dict[str, ShapeDtypeStruct | bool | int | float | complex | str]:
    """Return the leaves of a checkpoint by their names, without reading arrays: shapes and dtypes, numbers, strings.

    Args:
        path: of the file or folder.

    Raises:
        CheckpointError: for a file that is missing or damaged.

    >>> import functorch_like as ft, functorch_like.numpy as fnp, tempfile
    >>> path = tempfile.mkdtemp() + "/state.safetensors"
    >>> ft.io.save(path, {"w": fnp.arange(3.0), "name": "net"})
    >>> ft.io.describe(path)
    {'name': 'net', 'w': ShapeDtypeStruct(shape=(3,), dtype=float32)}
    """
    with Checkpoint(Path(path), verify=False) as checkpoint:
        return {
            leaf.name: ShapeDtypeStruct(leaf.shape, leaf.dtype) if leaf.kind in ARRAYS else values.decode(leaf.value)
            for leaf in checkpoint.manifest.leaves
        }


class Target(NamedTuple):
    """The kind of a restored leaf ("array", "numpy", "scalar" or "value"), and the place of an array."""

    kind: str
    place: Any = None


# --------------------------------------------------------------------------------------------------------- as it was
def _as_saved(checkpoint: Checkpoint, shardings: Any) -> Any:
    leaves = checkpoint.manifest.leaves
    try:
        whole = decode(checkpoint.manifest.structure, iter(leaves))
        # A Leaf is a tuple, but counts as a leaf of the tree here.
        places = _places(shardings, trees.map(lambda _: 0, whole, is_leaf=_is_leaf), len(leaves))
        rest = iter([_read(checkpoint, leaf, Target(leaf.kind, p)) for leaf, p in zip(leaves, places, strict=True)])
        return trees.map(lambda _: next(rest), whole, is_leaf=_is_leaf)
    except RecursionError as e:
        raise too_deep() from e


def _is_leaf(node: Any) -> bool:
    return isinstance(node, Leaf)


def _places(shardings: Any, whole: Any, count: int) -> Sequence[Any]:
    if shardings is None:
        return [None] * count
    places = trees.broadcast_prefix(shardings, whole, "shardings of load")
    return [None if place is None else named_sharding.from_user(place, "a sharding of load") for place in places]


# ------------------------------------------------------------------------------------------------------ as an example
def _like(checkpoint: Checkpoint, path: str, like: Any, shardings: Any, partial: bool) -> Any:
    pairs, treedef = trees.flatten_with_path(like)
    saved = {leaf.name: leaf for leaf in checkpoint.manifest.leaves}
    names = leaf_names([p for p, _ in pairs])
    if checkpoint.foreign:  # its names may have dots
        names = [n if n in saved else dotted(p) for n, (p, _) in zip(names, pairs, strict=True)]
    examples = [leaf for _, leaf in pairs]
    places = _places(shardings, like, len(examples))
    rows = [(n, _saved_text(saved.get(n)), _example_text(x)) for n, x in zip(names, examples, strict=True)]
    wrong = [
        row for row, x in zip(rows, examples, strict=True) if not _fits(saved.get(row[0]), x, partial)
    ]  # fmt: skip
    if not partial:
        wrong += [(n, _saved_text(leaf), "-") for n, leaf in saved.items() if n not in names]
    if wrong:
        raise CheckpointError(
            f"{path} and like= differ in {len(wrong)} of {len({*names, *saved})} leaves:\n{_table(wrong)}",
            fix="make like= as the file is (ft.io.describe lists it); partial=True takes the leaves that both have",
        )
    return treedef.unflatten(
        [
            _read(checkpoint, saved[n], _target(x, place)) if n in saved else x
            for n, x, place in zip(names, examples, places, strict=True)
        ]
    )


def _fits(leaf: Leaf | None, example: Any, partial: bool) -> bool:
    if leaf is None:
        return partial
    if leaf.kind == "value" or values.is_plain(example):
        return leaf.kind == "value" and type(values.decode(leaf.value)) is type(example)
    aval = _example_aval(example)
    return aval is not None and (aval.shape, aval.dtype) == (leaf.shape, leaf.aval.dtype)


def _example_aval(example: Any) -> Any:
    if isinstance(example, ShapeDtypeStruct):
        return example.aval
    return aval_of(example) if isinstance(example, (ArrayImpl, np.ndarray, np.generic, Tracer)) else None


def _saved_text(leaf: Leaf | None) -> str:
    if leaf is None:
        return "-"
    return repr(leaf.aval.strong()) if leaf.kind in ARRAYS else type(values.decode(leaf.value)).__name__


def _example_text(example: Any) -> str:
    aval = _example_aval(example)
    return type(example).__name__ if aval is None else repr(aval.strong())


def _table(rows: list[tuple[str, str, str]]) -> str:
    shown = [("", "file", "like"), *rows[:50]]
    widths = [max(len(row[k]) for row in shown) for k in range(3)]
    lines = ["    " + "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in shown]
    return "\n".join([*lines, f"    ... and {len(rows) - 50} more"] if len(rows) > 50 else lines)


def _target(example: Any, place: Any) -> Target:
    if values.is_plain(example):
        return Target("value")
    if place is not None:
        return Target("array", place)
    if isinstance(example, ArrayImpl):
        array: Any = example
        return Target("array", array.sharding if array._committed else None)
    if isinstance(example, ShapeDtypeStruct):
        return Target("array", example.sharding)
    return Target("scalar" if isinstance(example, np.generic) else "numpy")


# ---------------------------------------------------------------------------------------------------------- one leaf
def _read(checkpoint: Checkpoint, leaf: Leaf, target: Target) -> Any:
    if target.kind == "value":
        return values.decode(leaf.value)
    if target.kind != "array" and target.place is None:
        host = checkpoint.read(leaf)
        return host[()] if target.kind == "scalar" else host
    place = target.place
    if place is None or isinstance(place, named_sharding.SingleDeviceSharding):
        array = device_put(checkpoint.read(leaf), place)
    else:
        array = make_array_from_callback(
            leaf.shape, place, lambda index: checkpoint.read(leaf, index), dtype=leaf.aval.dtype
        )
    return convert_element_type(array, new_dtype=leaf.aval.dtype, weak_type=True) if leaf.weak else array
