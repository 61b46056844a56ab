"""Fingerprints of programs, equal in all processes: keys by which programs are loaded from disk without lowering.

The lowering of a jaxpr depends on the jaxpr, on the settings, and on the package's code; the fingerprint covers all
three. A jaxpr with a Python function or a primitive from outside of the package has no fingerprint.
"""

from __future__ import annotations

import dataclasses
import enum
import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from functorch_like import source_info
from functorch_like.avals import ShapedArray
from functorch_like.backends import __file__ as _backends_file
from functorch_like.backends import settings, xla
from functorch_like.backends.xla.configuration import ContextValues
from functorch_like.backends.xla.digest import digest
from functorch_like.ir.jaxpr import Jaxpr, Literal, effects
from functorch_like.primitives import __file__ as _primitives_file


class _Opaque(Exception):
    """Error for an object without a text that identifies it."""


def fingerprint(jaxpr: Jaxpr, *parts: Any) -> bytes | None:
    """Return a digest of a jaxpr, the settings and the package's code; None if it cannot be computed.

    Args:
        jaxpr: the program.
        parts: names, numbers, dtypes, avals, and tuples of these.
    """
    try:
        texts = [_digest(jaxpr), _code()]
        _write((parts, xla.settings()), texts)
    except _Opaque:
        return None
    return digest("\n".join(texts).encode()).digest()


def _digest(jaxpr: Jaxpr) -> str:
    result = jaxpr.memo("fingerprint", lambda: _read(jaxpr))
    if result is None:
        raise _Opaque
    return result


def _read(jaxpr: Jaxpr) -> str | None:
    names: dict[Any, str] = {}
    texts: list[str] = []

    def write(atoms: Sequence[Any]) -> None:
        for atom in atoms:
            if type(atom) is Literal:
                _write((atom.aval, np.asarray(atom.value)), texts)
            else:
                texts.append(names[atom])

    def define(variables: Sequence[Any]) -> None:
        for v in variables:
            names[v] = f"v{len(names)}"

    try:
        define(jaxpr.inputs)
        texts += [repr(v.aval) for v in jaxpr.inputs]  # avals of results follow from the equations
        for e in jaxpr.equations:
            if not e.prim.builtin or effects(e):
                raise _Opaque  # lowering finds the calls of Python in a program
            texts.append(e.prim.name)
            if type(e.source) in _WRAPPED:
                texts.append(repr(source_info.attributes(e.source)))
            write(e.inputs)
            _write(e.params, texts)
            define(e.outputs)
        write(jaxpr.outputs)
    except _Opaque:
        return None
    return digest("\n".join(texts).encode()).hexdigest()


def _write(value: Any, texts: list[str]) -> None:
    kind: type[Any] = type(value)
    if kind in _PLAIN:
        texts.append(repr(value))
    elif kind is tuple or kind is list or isinstance(value, tuple):
        items: Sequence[Any] = value
        if kind is tuple and _PLAIN.issuperset(map(type, items)):  # most tuples: shapes, axes
            texts.append(repr(items))
            return
        texts.append(f"{kind.__name__}{len(items)}")
        for each in items:
            _write(each, texts)
    elif kind is dict:
        texts.append(f"dict{len(value)}")
        for name, each in value.items():
            texts.append(name)
            _write(each, texts)
    elif kind is settings.Values:
        _write(value.set, texts)
    elif kind is ContextValues:
        pass  # the jaxpr has been traced with them
    else:
        _write_object(value, kind, texts)


#: Sources that may hold attributes for the compiler.
_WRAPPED = frozenset((source_info.Annotated, source_info.Scoped))
_PLAIN = frozenset((bool, int, float, complex, str, bytes, type(None)))


def _write_object(value: Any, kind: type[Any], texts: list[str]) -> None:
    if isinstance(value, Jaxpr):
        texts.append(_digest(value))
    elif kind is ShapedArray:
        texts.append(repr(value))  # without the weak type, which does not change the lowering
    elif isinstance(value, np.dtype):
        texts.append(value.name)
    elif isinstance(value, (np.ndarray, np.generic)) and value.dtype != object:
        array = np.asarray(value)
        texts.append(f"{array.dtype.name}{array.shape}{array.tobytes().hex()}")
    elif isinstance(value, enum.Enum):
        texts.append(f"{kind.__qualname__}.{value.name}")
    elif hasattr(kind, "shape_tuple"):  # a mesh; its devices are in the options of the program
        texts.append(f"mesh {kind.shape_tuple.fget(value)}")
    elif dataclasses.is_dataclass(kind):
        texts.append(kind.__qualname__)
        for field in dataclasses.fields(kind):
            _write(getattr(value, field.name), texts)
    else:
        raise _Opaque


@cache
def _code() -> str:
    """Hash of the sizes and times of the source files by which a jaxpr becomes a program, part of each cache key."""
    status = [(entry.name, entry.stat()) for entry in _sources()]
    return digest("\n".join(f"{name} {s.st_size} {s.st_mtime_ns}" for name, s in status).encode()).hexdigest()


def _sources() -> Iterator[os.DirEntry[str]]:
    """Yield the source files that lower and compile a jaxpr; not those that trace, since the key has the jaxpr."""
    package = Path(__file__).parents[1]
    yield from (entry for entry in _sorted(package) if entry.name.endswith(".py"))
    folders = [package / name for name in ("ir", "interpreters", "compiler", "sharding")]
    folders += [Path(_primitives_file).parent, Path(_backends_file).parent]
    while folders:
        for entry in _sorted(folders.pop()):
            if entry.name.endswith(".py"):
                yield entry
            elif entry.is_dir() and entry.name != "__pycache__":
                folders.append(Path(entry.path))


def _sorted(folder: Path) -> list[os.DirEntry[str]]:
    return sorted(os.scandir(folder), key=lambda entry: entry.name)
