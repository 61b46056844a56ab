"""Types of pytree nodes that files of exported programs name, beside dicts, lists and tuples.

A file holds a type's registered name, the auxiliary data as bytes, and the children. So a program can be loaded only
where its types are registered, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from functorch_like.errors import ArgumentError

T = TypeVar("T")
Aux = TypeVar("Aux")


class NodeFormat(NamedTuple):
    """The form in which nodes of one type are stored.

    Attributes:
        kind: the type.
        name: its name in files.
        pack: returns the auxiliary data as bytes.
        unpack: the inverse of `pack`.
    """

    kind: type
    name: str
    pack: Callable[[Any], bytes]
    unpack: Callable[[bytes], Any]


_BY_NAME: dict[str, NodeFormat] = {}
_BY_TYPE: dict[type, NodeFormat] = {}


def register_pytree_node_serialization(
    nodetype: type[T],
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Aux], bytes | bytearray],
    deserialize_auxdata: Callable[[bytes], Aux],
) -> type[T]:
    """Register how nodes of a type are stored, for functions that take or return them.

    Exported functions are stored with the structures of their arguments and results. A process that loads one needs the
    same registration.

    Args:
        nodetype: a type that `tree.register_pytree_node` or one of its relatives has registered.
        serialized_name: a name for the type in files, unique and always the same, such as "my_package.State".
        serialize_auxdata: returns the auxiliary data of a node as bytes.
        deserialize_auxdata: makes the auxiliary data of these bytes.

    Returns:
        The type.

    Raises:
        ArgumentError: for a type that is no node of pytrees, or is registered already, as its name may be.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> class Line:
    ...     def __init__(self, slope, unit):
    ...         self.slope, self.unit = slope, unit
    >>> ft.tree.register_pytree_node(Line, lambda x: ((x.slope,), x.unit), lambda unit, xs: Line(*xs, unit))
    >>> Line = ft.export.register_pytree_node_serialization(
    ...     Line, serialized_name="docs.Line", serialize_auxdata=str.encode, deserialize_auxdata=bytes.decode
    ... )
    >>> made = ft.export.export(ft.jit(lambda x: Line(2 * x.slope, x.unit)))(Line(fnp.ones(2), "m"))
    >>> twice = ft.export.deserialize(made.serialize()).call(Line(fnp.ones(2), "m"))
    >>> twice.slope.tolist(), twice.unit
    ([2.0, 2.0], 'm')
    """
    pack = lambda aux: bytes(serialize_auxdata(aux))
    return _register(NodeFormat(nodetype, serialized_name, pack, deserialize_auxdata))


def register_namedtuple_serialization(nodetype: type[T], *, serialized_name: str) -> type[T]:
    """Register how a named tuple is stored, for functions that take or return it, as states of optimizers are.

    Args:
        nodetype: a type that `collections.namedtuple` or `typing.NamedTuple` has made.
        serialized_name: a name for the type in files, unique and always the same, such as "my_package.State". The type
            must have the same fields where it is loaded.

    Returns:
        The type.

    Raises:
        ArgumentError: for a type that is no named tuple, or is registered already, as its name may be.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> from typing import NamedTuple
    >>> class State(NamedTuple):
    ...     count: ft.Array
    ...     mean: ft.Array
    >>> State = ft.export.register_namedtuple_serialization(State, serialized_name="docs.State")
    >>> step = ft.jit(lambda s, x: State(s.count + 1, s.mean + (x - s.mean) / (s.count + 1)))
    >>> stored = ft.export.export(step)(State(fnp.zeros(()), fnp.zeros(())), 3.0).serialize()
    >>> ft.export.deserialize(stored).call(State(fnp.zeros(()), fnp.zeros(())), 3.0).mean.item()
    3.0
    """
    fields = getattr(nodetype, "_fields", None)
    if not (isinstance(nodetype, type) and issubclass(nodetype, tuple) and isinstance(fields, tuple)):
        raise ArgumentError(f"{nodetype!r:.60} is not a named tuple", fix="use register_pytree_node_serialization")

    def unpack(data: bytes) -> None:
        stored = tuple(json.loads(data))
        if stored != fields:
            raise ArgumentError(
                f"{serialized_name} was stored with the fields {stored}, and has the fields {fields} here",
                fix="load it where the type has the same fields, or export it again",
            )

    pack = lambda aux: json.dumps(fields).encode()
    return _register(NodeFormat(nodetype, serialized_name, pack, unpack))


def _register(made: NodeFormat) -> Any:
    known = _BY_NAME.get(made.name) or _BY_TYPE.get(made.kind)
    if known is not None:
        raise ArgumentError(
            f"{made.kind.__name__} as {made.name!r}: {known.kind.__name__} is stored as {known.name!r} already",
            fix="register each type once, under a name of its own",
        )
    _BY_NAME[made.name] = _BY_TYPE[made.kind] = made
    return made.kind


def packed(kind: type, aux: Any) -> tuple[str, bytes] | None:
    """Return the name of a type of nodes and auxiliary data as bytes; None for a type that is not registered."""
    known = _BY_TYPE.get(kind)
    return None if known is None else (known.name, known.pack(aux))


def unpacked(name: str, data: bytes) -> tuple[type, Any]:
    """Return the type of a name and the auxiliary data of bytes.

    Raises:
        ArgumentError: for a name that is not registered.
    """
    known = _BY_NAME.get(name)
    if known is None:
        raise ArgumentError(
            f"the exported program takes or returns a {name}, which is not registered here",
            fix="import what calls export.register_pytree_node_serialization for it, before it is loaded",
        )
    return known.kind, known.unpack(data)
