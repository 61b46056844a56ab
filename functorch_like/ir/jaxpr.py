"""Jaxprs: recorded programs as data, with their evaluation and text.

A `Jaxpr` is closed: the values that the traced function closes over are among its inputs. So it may be cached,
transformed and compiled anywhere. Values derived from it (its jvp, its batched forms, its executable) are memoised on
the jaxpr and freed with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from functorch_like import dtypes, source_info
from functorch_like.avals import ShapedArray
from functorch_like.core import Primitive, Signature, state
from functorch_like.errors import refuse_pickling


class Var:
    """A variable of a jaxpr."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval


class Literal:
    """A small constant of a jaxpr.

    Attributes:
        value: NumPy array.
        aval: its shape, dtype and weak type.
        operand: operand for primitives: a NumPy scalar for a weak constant, since arrays are strongly typed.
    """

    __slots__ = ("aval", "operand", "value")

    def __init__(self, value: np.ndarray[Any, Any], aval: ShapedArray) -> None:
        self.value, self.aval = value, aval
        weak = aval.weak_type and not aval.shape and not dtypes.may_be_narrowed(aval.dtype)
        self.operand: Any = value[()] if weak else value


Atom = Var | Literal


class Equation:
    """One applied primitive: operands, parameters, results, and the recorded traceback of the user's line.

    Attributes:
        signature: signature of the primitive, avals and parameters; None for an equation that a pass has made.
    """

    __slots__ = ("inputs", "outputs", "params", "prim", "signature", "source")

    def __init__(
        self,
        prim: Primitive,
        inputs: Sequence[Any],
        params: dict[str, Any],
        outputs: Sequence[Var],
        source: Any,
        signature: Signature | None = None,
    ) -> None:
        self.prim, self.inputs, self.params, self.outputs, self.source = prim, inputs, params, outputs, source
        self.signature = signature

    def of(self, inputs: Sequence[Any]) -> Equation:
        """Return the equation with other operands of the same avals."""
        return Equation(self.prim, inputs, self.params, self.outputs, self.source, self.signature)


def effects(equation: Equation) -> frozenset[str]:
    """Return the effects besides computing results: a subset of "ordered" and "unordered"."""
    of = equation.prim.effects
    return of(**equation.params) if of is not None else frozenset()


def inner_jaxprs(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """Yield the jaxprs among an equation's parameters, those in tuples included."""
    for value in params.values():
        if type(value) is Jaxpr:
            yield value
        elif isinstance(value, tuple):
            for v in value:
                if type(v) is Jaxpr:
                    yield v


def with_inner_jaxprs(params: dict[str, Any], change: Callable[[Jaxpr], Jaxpr]) -> dict[str, Any]:
    """Return an equation's parameters with other jaxprs in the places where `inner_jaxprs` finds them."""

    def changed(value: Any) -> Any:
        if type(value) is Jaxpr:
            return change(value)
        return tuple(map(changed, value)) if type(value) is tuple and any(type(v) is Jaxpr for v in value) else value

    return {name: changed(value) for name, value in params.items()}


class Jaxpr:
    """A closed program: inputs, equations, outputs.

    Args:
        inputs: variables.
        equations: in order of execution.
        outputs: variables and literals.
        name: name in its text.
        origin: description of its making: "traced by jit", "jvp of loss".
    """

    __slots__ = ("__weakref__", "_effects", "_memo", "equations", "inputs", "name", "origin", "outputs")

    def __init__(
        self, inputs: list[Var], equations: list[Equation], outputs: list[Atom], name: str, origin: str = ""
    ) -> None:
        self.inputs, self.equations, self.outputs = inputs, equations, outputs
        self.name, self.origin = name, origin
        self._memo: dict[Any, Any] = {}
        self._effects: frozenset[str] | None = None

    __reduce_ex__ = refuse_pickling("a jaxpr")

    def __deepcopy__(self, memo: Any) -> Jaxpr:
        return self

    @property
    def __name__(self) -> str:
        """The name, for code that takes a jaxpr as a function."""
        return self.name

    @property
    def in_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.inputs]

    @property
    def out_avals(self) -> list[ShapedArray]:
        return [a.aval for a in self.outputs]

    @property
    def effects(self) -> frozenset[str]:
        """Effects besides computing results: a subset of "ordered" and "unordered"."""
        if self._effects is None:
            self._effects = frozenset[str]().union(*(effects(e) for e in self.equations if e.prim.effects))
        return self._effects

    def memo(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return the value that is memoised under a key; the first call makes it.

        If two threads make it at once, both get the value that was stored first, with the memos on it.
        """
        try:
            return self._memo[key]
        except KeyError:
            return self._memo.setdefault(key, make())

    def __str__(self) -> str:
        return "\n\n".join(map(str, definitions(self)))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return display(self)._repr_html_()


def count_equations(jaxpr: Jaxpr) -> int:
    """Return the number of equations of a jaxpr and its inner jaxprs, each counted at every place of use."""

    def count() -> int:
        return sum(1 + sum(map(count_equations, inner_jaxprs(e.params))) for e in jaxpr.equations)

    return jaxpr.memo("equations", count)


def evaluate(jaxpr: Jaxpr, args: Iterable[Any]) -> list[Any]:
    """Apply the equations under the current trace; each keeps the user's line at which it was recorded."""
    values: dict[Any, Any] = dict(zip(jaxpr.inputs, args, strict=True))
    carried = state.source
    try:
        for equation in jaxpr.equations:
            state.source = equation.source
            operands = [values[a] if type(a) is Var else a.operand for a in equation.inputs]
            out = state.trace.process(equation.prim, operands, equation.params)
            if equation.prim.multiple_results:
                values.update(zip(equation.outputs, out, strict=True))
            else:
                values[equation.outputs[0]] = out
    finally:
        state.source = carried
    return [a.operand if isinstance(a, Literal) else values[a] for a in jaxpr.outputs]


# ---------------------------------------------------------------------------------------------------------- text
#: Number of inputs, operands and results of a jaxpr or equation that a shortened display lists.
MOST_LISTED = 30


class Row(NamedTuple):
    """Text of one equation.

    Attributes:
        results: names and avals.
        primitive: name of the primitive.
        operands: names and literals.
        params: "name=value" of each parameter.
        place: the user's line and named scopes; empty if unknown.
        equation: the equation.
    """

    results: str
    primitive: str
    operands: tuple[str, ...]
    params: tuple[str, ...]
    place: str
    equation: Equation

    def __str__(self) -> str:
        return f"{self.results} = {self.primitive}({', '.join([*self.operands, *self.params])})"


class Definition(NamedTuple):
    """Text of one jaxpr, as a Python function.

    Attributes:
        title: its name, unique among the definitions.
        inputs: names and avals.
        origin: origin of the jaxpr.
        rows: a row for each equation.
        outputs: names and literals.
        jaxpr: the jaxpr.
    """

    title: str
    inputs: str
    origin: str
    rows: list[Row]
    outputs: str
    jaxpr: Jaxpr

    def __str__(self) -> str:
        lines = [(str(row), row.place) for row in self.rows]
        width = min(max((len(line) for line, _ in lines), default=0), 88)
        body = [f"    {line:<{width}}  # {place}" if place else f"    {line}" for line, place in lines]
        origin = f"  # {self.origin}" if self.origin else ""
        return "\n".join([f"def {self.title}({self.inputs}):{origin}", *body, f"    return {self.outputs}"])


def definitions(jaxpr: Jaxpr, most: int | None = None) -> list[Definition]:
    """Return the text of a jaxpr in parts: a definition for each jaxpr that it calls, and last its own.

    Args:
        jaxpr: any jaxpr.
        most: largest number of rows of each definition; None for all.
    """
    printer = _Printer(most)
    printer.define(jaxpr)
    return printer.parts


def display(jaxpr: Jaxpr, most: int = 300) -> Any:
    """Return a display of a jaxpr in colours; in notebooks, inner jaxprs fold.

    Args:
        jaxpr: any jaxpr.
        most: largest number of equations that are shown of each jaxpr.
    """
    from functorch_like.ir.jaxpr_display import JaxprDisplay  # late: few programs display jaxprs

    return JaxprDisplay(definitions(jaxpr, most), count_equations(jaxpr))


class _Printer:
    """Maker of Python-like text: a `def` for each jaxpr that is called, and then one for the jaxpr itself."""

    def __init__(self, most: int | None) -> None:
        self.most = most
        self.done: dict[int, str] = {}
        self.taken: set[str] = set()
        self.parts: list[Definition] = []

    def define(self, jaxpr: Jaxpr) -> str:
        if id(jaxpr) in self.done:
            return self.done[id(jaxpr)]
        names: dict[Var, str] = {}

        def name(atom: Any) -> str:
            if isinstance(atom, Literal):
                return literal_text(atom.value)
            return names.setdefault(atom, letters(len(names)))

        header = self.listed([f"{name(v)}: {v.aval!r}" for v in jaxpr.inputs])
        rows: list[Row] = []
        for eqn in jaxpr.equations:
            operands = tuple(name(a) for a in eqn.inputs)
            if self.most is not None and len(rows) >= self.most:
                for v in eqn.outputs:
                    name(v)
                continue
            params = tuple(f"{k}={self.param(v)}" for k, v in eqn.params.items() if v is not None and k != "spec")
            results = self.listed([f"{name(v)}: {v.aval!r}" for v in eqn.outputs]) or "()"
            line = source_info.user_line(eqn.source) if eqn.source is not None else None
            place = " in ".join(filter(None, (line.short if line else "", source_info.scope(eqn.source))))
            rows.append(Row(results, eqn.prim.name, operands, params, place, eqn))
        outs = self.listed([name(a) for a in jaxpr.outputs])
        title = self.done[id(jaxpr)] = self.unique(jaxpr.name)
        self.parts.append(Definition(title, header, jaxpr.origin, rows, outs or "()", jaxpr))
        return title

    def listed(self, texts: list[str]) -> str:
        """Join texts by commas; with `most`, only the first `MOST_LISTED` of them."""
        most = len(texts) if self.most is None else MOST_LISTED
        more = f"... {len(texts) - most} more" if len(texts) > most else ""
        return ", ".join(filter(None, [*texts[:most], more]))

    def param(self, value: Any) -> str:
        if isinstance(value, Jaxpr):
            return self.define(value)
        if isinstance(value, tuple) and any(isinstance(v, Jaxpr) for v in value):
            return f"({', '.join(map(self.param, value))})"
        if isinstance(value, np.dtype):
            return value.name
        if callable(value):  # a user's rule
            return source_info.name_of(value)
        return repr(value)

    def unique(self, name: str) -> str:
        result, k = name, 1
        while result in self.taken:
            result, k = f"{name}_{k}", k + 1
        self.taken.add(result)
        return result


def letters(n: int) -> str:
    """Return the name of the n-th variable: a, b, ..., z, ba, bb, ...; Python's keywords get an underscore."""
    text = ""
    while True:
        text = chr(97 + n % 26) + text
        n //= 26
        if not n:
            return text + "_" if text in ("as", "if", "in", "is", "or") else text


def literal_text(value: Any) -> str:
    """Return the text of a number, or of the elements of a small array, as in Python."""
    return str(np.asarray(value).tolist())
