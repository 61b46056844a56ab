"""Programs as scripts that run on their own."""

from __future__ import annotations

import base64
import dataclasses
import enum
import zlib
from typing import Any

import numpy as np

from functorch_like.debug.minifying.programs import Program
from functorch_like.errors import UnsupportedError
from functorch_like.ir.jaxpr import Jaxpr, Literal

#: Arrays of up to this many elements are written as numbers.
_READABLE = 64

_HEAD = '''"""The smallest program found that fails: {kind}."""

import base64, zlib

import numpy as np
from numpy import inf, nan

import functorch_like as ft
from functorch_like import backends, dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import TABLE
from functorch_like.ir.trace_to_jaxpr import stage
'''
_TAIL = {
    "mismatch": """
from functorch_like.ir.reference import reference

print("compiled: ", ft.jit({main})(*args))
print("reference:", reference({jaxpr}, args))
""",
    "nondeterminism": """
program = ft.jit({main})
for _ in range(4):
    print(program(*args))
""",
}
_RUN = """
print(ft.block_until_ready(ft.jit({main})(*args)))
"""


def script(program: Program, kind: str) -> str:
    """Return a program as the text of a script.

    Args:
        program: the jaxpr and its arguments.
        kind: the failure.

    Raises:
        UnsupportedError: for a program that holds Python functions or other objects that text does not name.
    """
    writer = _Writer()
    main = writer.define(program.jaxpr)
    staged = writer.staged(main, program.jaxpr)
    head = _HEAD.format(kind=kind) + "".join(f"from {m} import {n}\n" for m, n in sorted(writer.imports))
    args = ",\n    ".join(writer.array(a) for a in program.args)
    tail = _TAIL.get(kind, _RUN).format(main=main, jaxpr=staged)
    run = "\n".join(f"    {line}" if line else "" for line in tail.strip().splitlines())
    body = "\n\n\n".join([head, *writer.functions, f"args = [\n    {args},\n]" if args else "args = []"])
    # As in the search: the optimised program, compiled anew.
    return f'{body}\nwith backends.cache.flags(enabled=False), backends.compilation.flags(tiers="off"):\n{run}\n'


class _Writer:
    """Writer of values as Python expressions, and of jaxprs as functions."""

    def __init__(self) -> None:
        self.functions: list[str] = []
        self.imports: set[tuple[str, str]] = set()

    def define(self, jaxpr: Jaxpr) -> str:
        """Write a function; return its name."""
        names: dict[Any, str] = {}
        read = lambda a: self.array(a.value) if type(a) is Literal else names.setdefault(a, f"v{len(names)}")
        header = ", ".join(read(v) for v in jaxpr.inputs)
        lines: list[str] = []
        for e in jaxpr.equations:
            given = [*map(read, e.inputs), *(f"{k}={self.value(v, e.prim.name)}" for k, v in e.params.items())]
            results = ", ".join(read(v) for v in e.outputs)
            comma = "," if e.prim.multiple_results and len(e.outputs) == 1 else ""
            left = f"{results}{comma} = " if e.outputs else ""
            lines.append(f"    {left}TABLE[{e.prim.name!r}]({', '.join(given)})")
        name = f"f{len(self.functions)}"
        returned = f"    return [{', '.join(map(read, jaxpr.outputs))}]"
        self.functions.append("\n".join([f"def {name}({header}):", *lines, returned]))
        return name

    def staged(self, name: str, jaxpr: Jaxpr) -> str:
        """Return the expression that makes a jaxpr of a function that was written."""
        avals = ", ".join(f"ShapedArray({a.shape}, dtypes.exact_dtype({a.dtype.name!r}))" for a in jaxpr.in_avals)
        return f"stage({name}, [{avals}], name={name!r})[0]"

    def value(self, value: Any, name: str) -> str:
        """Return a parameter as an expression."""
        if value is None or (isinstance(value, (bool, int, str, bytes)) and not isinstance(value, enum.Enum)):
            return repr(value)
        if isinstance(value, (float, complex)):
            return f"{type(value).__name__}({str(value)!r})"
        if isinstance(value, Jaxpr):
            return self.staged(self.define(value), value)
        if isinstance(value, np.dtype):
            return f"dtypes.exact_dtype({value.name!r})"
        if isinstance(value, (np.ndarray, np.generic)):
            return self.array(np.asarray(value))
        inner = lambda v: self.value(v, name)
        if isinstance(value, enum.Enum):
            return f"{self.type(value)}[{value.name!r}]"
        if isinstance(value, tuple):
            items = "".join(f"{inner(v)}, " for v in value)
            return f"({items})" if type(value) is tuple else f"{self.type(value)}({items})"
        if isinstance(value, (list, frozenset, set)):
            return f"{type(value).__name__}([{', '.join(map(inner, value))}])"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{inner(k)}: {inner(v)}" for k, v in value.items()) + "}"
        if dataclasses.is_dataclass(value):
            fields = ", ".join(f"{f.name}={inner(getattr(value, f.name))}" for f in dataclasses.fields(value) if f.init)
            return f"{self.type(value)}({fields})"
        raise UnsupportedError(
            f"the program holds {value!r:.60} as a parameter of {name}, which a script cannot name",
            fix="minify a function without callbacks and foreign functions; the result's .jaxpr shows the program",
        )

    def type(self, value: Any) -> str:
        """Return the name of a value's type, which the script imports."""
        self.imports.add((type(value).__module__, type(value).__name__))
        return type(value).__name__

    def array(self, x: Any) -> str:
        """Return an array as an expression."""
        x = np.asarray(x)
        dtype = f"dtypes.exact_dtype({x.dtype.name!r})"
        if x.size <= _READABLE:
            plain = x.astype(float) if x.dtype.kind == "V" or x.dtype.isbuiltin != 1 else x
            return f"np.array({plain.tolist()!r}, {dtype}).reshape({x.shape})"
        packed = base64.b85encode(zlib.compress(np.ascontiguousarray(x).tobytes(), 9)).decode()
        return f"np.frombuffer(zlib.decompress(base64.b85decode({packed!r})), {dtype}).reshape({x.shape})"
