"""Random programs as Python source: drawn line by line while they are traced, printed as a script that runs."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import core, dtypes, lax, nn
from functorch_like.avals import ShapedArray
from functorch_like.errors import FtError
from functorch_like.ir.trace_to_jaxpr import StageTrace
from functorch_like.testing.choices import Choices

#: Names of dtypes in the source: the one that a program computes in, and a narrower one that it casts to.
MAIN, NARROW = "F", "H"


class Argument(NamedTuple):
    """An argument of a program.

    Args:
        name: in the source.
        shape: of the array.
        dtype: MAIN, NARROW or the name of a dtype.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str


class Program:
    """A function as source.

    Args:
        arguments: of the function.
        lines: of its body; the last returns.
        main: the dtype that MAIN stands for.
        narrow: the dtype that NARROW stands for.
        made: the choices that it was drawn by.
        total: a scalar of its result that is differentiated with respect to its floating arguments; None for none.
    """

    def __init__(
        self,
        arguments: Sequence[Argument],
        lines: Sequence[str],
        main: str,
        narrow: str,
        made: Sequence[int],
        total: str | None = None,
    ) -> None:
        self.arguments, self.lines, self.main, self.narrow = list(arguments), list(lines), main, narrow
        self.made, self.total = list(made), total

    @property
    def source(self) -> str:
        """The function's definition."""
        names, body = ", ".join(a.name for a in self.arguments), textwrap.indent("\n".join(self.lines), "    ")
        if self.total is None:
            return f"def f({names}):\n{body}"
        argnums = tuple(k for k, a in enumerate(self.arguments) if a.dtype in (MAIN, NARROW))
        slopes = f"ft.grad(lambda *args: {self.total.format('inner(*args)')}, argnums={argnums})(*args)"
        return f"def inner({names}):\n{body}\n\n\ndef f(*args):\n    return {slopes}"

    def function(self, wide: bool = False) -> Callable[..., Any]:
        """Return the function; `wide` makes all its floats float64."""
        names = namespace(*(("float64", "float64") if wide else (self.main, self.narrow)))
        exec(compile(self.source, "<drawn program>", "exec"), names)
        return names["f"]

    def values(self, seed: int = 0) -> list[np.ndarray[Any, Any]]:
        """Return arrays to call it with, of numbers that its dtypes hold."""
        names = {"rng": np.random.default_rng(seed), "dtypes": dtypes}
        return [np.asarray(eval(self._drawn(a), names)) for a in self.arguments]

    def dtype(self, name: str) -> str:
        """Return the dtype that a name in the source stands for."""
        return {MAIN: self.main, NARROW: self.narrow}.get(name, name)

    @property
    def script(self) -> str:
        """A script that runs it."""
        return "\n".join([
            "import numpy as np",
            "import functorch_like as ft, functorch_like.numpy as fnp",
            "from functorch_like import dtypes, lax, nn",
            "",
            f'F, H = "{self.main}", "{self.narrow}"',
            "rng = np.random.default_rng(0)",
            "args = [",
            *(f"    {self._drawn(a)}," for a in self.arguments),
            "]",
            "",
            "",
            self.source,
            "",
            "",
            "print(ft.jit(f)(*args))",
        ])  # fmt: skip

    def _drawn(self, a: Argument) -> str:
        name = self.dtype(a.dtype)
        if not dtypes.is_inexact(np.dtype(getattr(dtypes, name))):
            bounds = "0, 2" if name == "bool_" else "-5, 6"
            return f"rng.integers({bounds}, {a.shape}).astype(dtypes.{name})"
        return f"(2.2 * (rng.integers(0, 2, {a.shape}) - 0.5) * rng.uniform(0.1, 1.0, {a.shape})).astype(dtypes.{name})"

    def __repr__(self) -> str:
        avals = ", ".join(f"{a.name}: {self.dtype(a.dtype)}{list(a.shape)}" for a in self.arguments)
        return f"# F = {self.main}, H = {self.narrow}; {avals}\n{self.source}"


def namespace(main: str, narrow: str) -> dict[str, Any]:
    """Names that the source may use."""
    return {"ft": ft, "fnp": fnp, "lax": lax, "nn": nn, "np": np, MAIN: main, NARROW: narrow}


class Value(NamedTuple):
    """Result of a line."""

    name: str
    shape: tuple[int, ...]
    inexact: bool

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


class Writer:
    """Writer of a program. Each line is traced as it is drawn: so shapes are known, and refused lines are left out.

    Args:
        choices: what decides.
        main: the dtype it computes in.
        narrow: a narrower one.
        outer: the writer of the function in which this one is written; its values may be read.

    Attributes:
        refused: lines that raised, with the reason.
    """

    def __init__(
        self, choices: Choices, main: str = "float32", narrow: str = "bfloat16", outer: Writer | None = None
    ) -> None:
        self.choices, self.main, self.narrow, self.outer = choices, main, narrow, outer
        self.arguments: list[Argument] = []
        self.lines: list[str] = []
        self.values: list[Value] = []
        self.refused: list[str] = [] if outer is None else outer.refused
        self._counter: Iterator[int] = itertools.count() if outer is None else outer._counter
        self._names = namespace("float64", "float64") if outer is None else dict(outer._names)
        self._trace = StageTrace("program", core.EVALUATE)

    def argument(self, shape: Sequence[int], dtype: str = MAIN) -> Value:
        """Add an argument to the whole program; inside of a function it is read from there."""
        if self.outer is not None:
            value = self.outer.argument(shape, dtype)
            self._names[value.name] = self.outer._names[value.name]
            return value
        return self.parameter(f"a{len(self.arguments)}", shape, dtype)

    def parameter(self, name: str, shape: Sequence[int], dtype: str = MAIN) -> Value:
        """Add a parameter to the function."""
        self.arguments.append(Argument(name, tuple(shape), dtype))
        wide = "float64" if dtype in (MAIN, NARROW) else dtype
        self._names[name] = self._trace.input(ShapedArray(tuple(shape), np.dtype(wide)))
        return self._value(name)

    def inner(self, *shapes: Sequence[int]) -> Writer:
        """Return a writer of a function inside of this one, with parameters of these shapes."""
        writer = Writer(self.choices, self.main, self.narrow, self)
        for shape in shapes:
            writer.values.append(writer.parameter(f"p{next(self._counter)}", shape))
        return writer

    def define(self, writer: Writer, result: str) -> str:
        """Add the function that an inner writer wrote, and return its name."""
        name = f"f{next(self._counter)}"
        header = f"def {name}({', '.join(a.name for a in writer.arguments)}):"
        body = [line for text in [*writer._live(result), f"return {result}"] for line in text.splitlines()]
        text = "\n".join([header, *(f"    {line}" for line in body)])
        exec(text, self._names)
        self.lines.append(text)
        return name

    def write(self, expression: str) -> Value | None:
        """Add a line that computes an expression; None if it was refused."""
        name = f"v{next(self._counter)}"
        try:
            with core.set_current_trace(self._trace):
                exec(f"{name} = {expression}", self._names)
        except FtError as error:
            self.refused.append(f"{expression}: {str(error).splitlines()[0]}")
            return None
        self.lines.append(f"{name} = {expression}")
        value = self._value(name)
        self.values.append(value)
        return value

    def _value(self, name: str) -> Value:
        aval = core.aval_of(self._names[name])
        return Value(name, tuple(aval.shape), dtypes.is_inexact(aval.dtype))

    def _live(self, *results: str) -> list[str]:
        """The lines that results need."""
        needed, lines = " ".join(results), list[str]()
        for line in reversed(self.lines):
            name = re.match(r"(?:def )?(\w+)", line)[1]  # type: ignore[index]
            if re.search(rf"\b{name}\b", needed):
                needed += f"\n{line}"
                lines.insert(0, line)
        return lines

    def program(self, *results: str, total: str | None = None) -> Program:
        """Return what was written, without what the results do not need."""
        lines = [*self._live(*results), f"return {', '.join(results)}"]
        used = set(re.findall(r"\w+", "\n".join(lines)))
        kept = [a for a in self.arguments if a.name in used]
        if not any(a.dtype in (MAIN, NARROW) for a in kept):
            total = None
        return Program(kept, lines, self.main, self.narrow, self.choices.made, total)
