"""The file format of exported programs: a line that names it, a SHA-256, a header in JSON, and StableHLO's bytes.

Compatibility, as docs/shipping.md promises it:

- The header's fields may grow within a format; readers pass over unknown fields, and a field added later
  has a default. `FORMAT` is raised where an older reader would misread a file, and newer formats are refused.
- The programs are portable artifacts of StableHLO, which later versions of jaxlib read for five years.
- Reading executes nothing but what is registered for types of nodes: bytes are compared with their checksum, and each
  field with its type and range.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import sys
from collections.abc import Sequence
from types import NoneType
from typing import Any, NamedTuple, NoReturn

from functorch_like import dtypes, tree
from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.backends.xla import guard
from functorch_like.backends.xla.partition_spec import PartitionSpec
from functorch_like.errors import ArgumentError, FtError, TreeError, UnsupportedError
from functorch_like.exporting import nodes
from functorch_like.primitives.effects.call_exported import Split

MAGIC = b"functorch_like program\n"
#: The newest format that this version reads: that of programs for several devices. Others are written in format 1.
FORMAT = 2
_PLATFORMS = ("cpu", "gpu")
_DEEPEST = 200
_MOST_ELEMENTS = 2**62


class Contents(NamedTuple):
    """Contents of a file.

    Attributes:
        name: of the function.
        stablehlo: the version of StableHLO that the programs are in.
        in_tree, out_tree: the structures of the arguments and of the result.
        in_avals, out_avals: of their leaves.
        programs: pairs of platform and portable artifact.
        written_by: versions of functorch_like and jaxlib; empty where the file has none.
        derivative: the file of the derivative in reverse mode; empty where there is none.
        split: how the programs are split over several devices; None where they are for one.
    """

    name: str
    stablehlo: str
    in_tree: Any
    out_tree: Any
    in_avals: tuple[ShapedArray, ...]
    out_avals: tuple[ShapedArray, ...]
    programs: tuple[tuple[str, bytes], ...]
    written_by: dict[str, str]
    derivative: bytes = b""
    split: Split | None = None


def argument_names(in_tree: Any) -> list[str]:
    """Return the names of the leaves of arguments for messages: `args[0]['w']`, `kwargs['x']`."""
    return [("args", "kwargs")[int(path[1])] + path[3:] for path in tree.leaf_paths(in_tree)]


def leaves_of(arguments: tuple[Any, dict[str, Any]], in_tree: Any, name: str) -> list[Any]:
    """The leaves of the arguments of a call of an exported function.

    Raises:
        TreeError: for arguments of another structure than it was exported for.
    """
    leaves, structure = xla.flatten(arguments)
    if structure != in_tree:
        raise TreeError(
            f"{name} was exported for arguments {in_tree}, and is given {structure}",
            fix="pass what it was exported for, without static arguments",
        )
    return leaves


def versions() -> dict[str, str]:
    """The versions that a file written now names."""
    return {"functorch_like": sys.modules["functorch_like"].__version__, "jaxlib": guard.jaxlib_version()}


# -------------------------------------------------------------------------------------------------------------- writing
def pack(contents: Contents) -> bytes:
    """The bytes of a file.

    Raises:
        UnsupportedError: where arguments or results are of other containers than dicts, lists, tuples and None.
    """
    header = {
        "format": 1 if contents.split is None else 2,
        "name": contents.name,
        "stablehlo": contents.stablehlo,
        "in_tree": _node_data(contents.in_tree, contents.name),
        "out_tree": _node_data(contents.out_tree, contents.name),
        "in_avals": [[a.shape, a.dtype.name, a.weak_type] for a in contents.in_avals],
        "out_avals": [[a.shape, a.dtype.name, a.weak_type] for a in contents.out_avals],
        "programs": [[name, len(program)] for name, program in contents.programs],
        "written_by": contents.written_by,
        "derivative": base64.b64encode(contents.derivative).decode(),
    }
    if contents.split is not None:
        header |= contents.split._asdict()
    text = json.dumps(header).encode()
    body = len(text).to_bytes(8, "little") + text + b"".join(program for _, program in contents.programs)
    return MAGIC + hashlib.sha256(body).digest() + body


def _node_data(structure: Any, name: str, depth: int = 0) -> Any:
    """A structure as JSON data: a leaf is "*", None is null, and a container is an object with its kind as the key."""
    node = structure.node_data()
    if node is None:
        return "*"
    kind, about = node
    if kind is NoneType:
        return None
    if depth > _DEEPEST:
        raise UnsupportedError(
            f"{name} takes or returns containers nested more than {_DEEPEST} deep, which cannot be stored",
            fix="export a function of flatter containers",
        )
    inner = [_node_data(child, name, depth + 1) for child in structure.children()]
    if kind in (list, tuple):
        return {kind.__name__: inner}
    if kind is dict and all(type(k) in (str, int) for k in about):
        return {"dict": [[k, child] for k, child in zip(about, inner, strict=True)]}
    found = nodes.packed(kind, about)
    if found is not None:
        return {"node": [found[0], base64.b64encode(found[1]).decode(), inner]}
    raise UnsupportedError(
        f"{name} takes or returns a {kind.__name__}, which cannot be stored",
        fix="export a function of dicts (with keys that are strings or ints), lists and tuples; or register the type "
        "by export.register_pytree_node_serialization",
    )


# -------------------------------------------------------------------------------------------------------------- reading
def unpack(data: bytes) -> Contents:
    """The contents of a file, from its bytes.

    Raises:
        ArgumentError: for other bytes, damaged ones, fields that make no sense, and newer formats.
    """
    body = _checked_body(data)
    size = int.from_bytes(body[:8], "little")
    if size > len(body) - 8:
        _refuse(f"its header of {size} bytes is cut off")
    header = _parsed(body[8 : 8 + size])
    _check_format(header)
    in_avals, out_avals = (_avals(header, key) for key in ("in_avals", "out_avals"))
    return Contents(
        name=_text(header, "name"),
        stablehlo=_text(header, "stablehlo"),
        in_tree=_structure(header, "in_tree", len(in_avals)),
        out_tree=_structure(header, "out_tree", len(out_avals)),
        in_avals=in_avals,
        out_avals=out_avals,
        programs=_programs(header, body[8 + size :]),
        written_by=_written_by(header),
        derivative=_derivative(header),
        split=_split(header, len(in_avals), len(out_avals)) if header["format"] == 2 else None,
    )


def _split(header: dict[str, Any], ins: int, outs: int) -> Split:
    """Return how a program is split over several devices."""
    axes = tuple((name, size) for name, size in _items(header, "axes", 2))
    names = [name for name, _ in axes]
    if not all(type(name) is str and type(size) is int and size > 0 for name, size in axes) or len(set(names)) < len(
        names
    ):
        _refuse(f"its mesh is {axes!r:.60}")
    return Split(axes, _specs(header, "ins", ins, names), _specs(header, "outs", outs, names))


def _specs(header: dict[str, Any], key: str, count: int, names: Sequence[str]) -> tuple[PartitionSpec | None, ...]:
    stored = header.get(key)
    if type(stored) is not list or len(stored) != count:
        _refuse(f"its field {key!r} is {stored!r:.60}, not a list of {count} specs")
    specs: list[PartitionSpec | None] = []
    for entries in stored:
        try:
            spec = None if entries is None else PartitionSpec(*(tuple(e) if type(e) is list else e for e in entries))
            if spec is not None and not set(spec.mentioned()) <= set(names):
                raise ValueError
        except (FtError, TypeError, ValueError):
            _refuse(f"its field {key!r} has the spec {entries!r:.60}")
        specs.append(spec)
    return tuple(specs)


def _derivative(header: dict[str, Any]) -> bytes:
    stored = header.get("derivative", "")
    try:
        return base64.b64decode(stored, validate=True)
    except (TypeError, ValueError):
        _refuse(f"its field 'derivative' is {stored!r:.60}")


def _refuse(reason: str) -> NoReturn:
    raise ArgumentError(
        f"the exported program cannot be read: {reason}", fix="export it again, or get the file from its author again"
    )


def _checked_body(data: bytes) -> bytes:
    """The bytes after the checksum, which agree with it."""
    start = len(MAGIC) + 32
    if not data.startswith(MAGIC):
        raise ArgumentError("these bytes are not an exported program", fix="pass what Exported.serialize() gave")
    if len(data) < start + 8:
        _refuse(f"it is cut off after {len(data)} bytes")
    body = data[start:]
    if hashlib.sha256(body).digest() != data[len(MAGIC) : start]:
        raise ArgumentError("the exported program is damaged: its checksum is another one", fix="store it again")
    return body


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArgumentError(
            f"the exported program cannot be read: its header is not JSON ({error})", fix="export it again"
        ) from None
    if type(header) is not dict:
        _refuse("its header is not an object of JSON")
    return header


def _check_format(header: dict[str, Any]) -> None:
    stored = header.get("format")
    if type(stored) is not int or stored < 1:
        _refuse(f"its format is {stored!r:.60}, not a number from 1 on")
    if stored > FORMAT:
        written = _written_by(header).get("functorch_like", "")
        raise ArgumentError(
            f"the program is stored in format {stored}, and this version reads up to {FORMAT}",
            fix=f"update functorch_like{f' to {written} or later' if written else ''}",
        )


def _text(header: dict[str, Any], key: str) -> str:
    value = header.get(key)
    if type(value) is not str:
        _refuse(f"its field {key!r} is {value!r:.60}, not a string")
    return value


def _items(header: dict[str, Any], key: str, length: int) -> list[list[Any]]:
    """A field that is a list of lists of one length."""
    value = header.get(key)
    if type(value) is not list or not all(type(item) is list and len(item) == length for item in value):
        _refuse(f"its field {key!r} is {value!r:.60}, not a list of lists of {length}")
    return value


def _avals(header: dict[str, Any], key: str) -> tuple[ShapedArray, ...]:
    return tuple(_aval(key, i, *item) for i, item in enumerate(_items(header, key, 3)))


def _aval(key: str, index: int, shape: Any, dtype: Any, weak: Any) -> ShapedArray:
    where = f"{key}[{index}]"
    if type(shape) is not list or not all(type(n) is int and n >= 0 for n in shape) or len(shape) > 64:
        _refuse(f"the shape of {where} is {shape!r:.60}")
    if math.prod(n or 1 for n in shape) > _MOST_ELEMENTS:
        _refuse(f"the shape of {where} is {tuple(shape)!r:.60}, which no memory holds")
    if type(dtype) is not str or type(weak) is not bool:
        _refuse(f"the dtype of {where} is {dtype!r:.60}, weak: {weak!r:.60}")
    try:
        return ShapedArray(tuple(shape), dtypes.exact_dtype(dtype), weak)
    except (FtError, TypeError, ValueError):
        _refuse(f"the dtype of {where} is {dtype!r:.60}")


def _structure(header: dict[str, Any], key: str, leaves: int) -> Any:
    if key not in header:
        _refuse(f"it has no field {key!r}")
    structure = _node(header[key], key, 0)
    if structure.num_leaves != leaves:
        _refuse(f"{key} has {structure.num_leaves} leaves, and there are {leaves} shapes for them")
    return structure


def _node(data: Any, key: str, depth: int) -> Any:
    """Return the structure that `_node_data` has written."""
    if data is None:
        return xla.structure(None)
    if data == "*":
        return xla.leaf_structure
    if depth > _DEEPEST:
        _refuse(f"{key} is nested more than {_DEEPEST} deep")
    inner = lambda items: [_node(item, key, depth + 1) for item in items]
    match data:
        case {"list": list(items), **rest} if not rest:
            return xla.structure_of((list, None), inner(items))
        case {"tuple": list(items), **rest} if not rest:
            return xla.structure_of((tuple, None), inner(items))
        case {"dict": list(items), **rest} if not rest and all(map(_is_entry, items)):
            children = dict(zip([k for k, _ in items], inner([v for _, v in items]), strict=True))
            keys = xla.structure(dict.fromkeys(children, 0)).node_data()[1]  # in the order of structures
            return xla.structure_of((dict, keys), [children[k] for k in keys])
        case {"node": [str(name), str(text), list(items)], **rest} if not rest:
            return xla.structure_of(nodes.unpacked(name, _decoded(text, key)), inner(items))
    _refuse(f"{key} has a node {data!r:.60}")


def _decoded(text: str, key: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        _refuse(f"{key} has auxiliary data that are no bytes: {text!r:.60}")


def _is_entry(item: Any) -> bool:
    return type(item) is list and len(item) == 2 and type(item[0]) in (str, int)


def _programs(header: dict[str, Any], data: bytes) -> tuple[tuple[str, bytes], ...]:
    programs: dict[str, bytes] = {}
    at = 0
    for name, length in _items(header, "programs", 2):
        if name not in _PLATFORMS or name in programs:
            _refuse(f"it has a program for {name!r:.60}; there may be one for each of {', '.join(_PLATFORMS)}")
        if type(length) is not int or not 0 < length <= len(data) - at:
            _refuse(f"its program for {name} has {length!r:.60} bytes, and {len(data) - at} are left")
        programs[name] = data[at : at + length]
        at += length
    if not programs or at != len(data):
        _refuse(f"it has {len(programs)} programs, and {len(data) - at} bytes behind them")
    return tuple(programs.items())


def _written_by(header: dict[str, Any]) -> dict[str, str]:
    stored = header.get("written_by", {})
    if type(stored) is not dict or not all(type(value) is str for value in stored.values()):
        _refuse(f"its field 'written_by' is {stored!r:.60}")
    return stored
