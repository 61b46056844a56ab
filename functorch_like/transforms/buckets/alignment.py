"""Comparison of traces of one function for several numbers of rows.

The traces are the same program where all sizes in them are `scale * rows + offset`. Constants may be anything. Those
that depend on the number of rows become arguments of the program; their values are read from the trace for that number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from functorch_like import source_info
from functorch_like.avals import ShapedArray
from functorch_like.errors import UnsupportedError
from functorch_like.ir.jaxpr import Equation, Jaxpr, Literal, inner_jaxprs
from functorch_like.transforms.buckets import sizes
from functorch_like.transforms.buckets.sizes import Extent


class Sized(NamedTuple):
    """A trace for a number of rows.

    Attributes:
        rows: the number.
        jaxpr: the trace; its first inputs are `consts`.
        consts: the values that the function closed over.
        tree: the structure of the results.
    """

    rows: int
    jaxpr: Jaxpr
    consts: list[Any]
    tree: Any


class Mismatch(Exception):
    """Two traces that are not the same program.

    Args:
        reason: the difference.
        equation: the equation at which they differ.
    """

    def __init__(self, reason: str, equation: Equation | None = None) -> None:
        super().__init__(reason)
        self.reason, self.equation = reason, equation

    def error(self, name: str) -> UnsupportedError:
        """The error for the user."""
        line = source_info.user_line(self.equation.source) if self.equation is not None else None
        return UnsupportedError(
            f"{name} is another program for another number of rows: {self.reason}",
            fix="write loops over rows as vmap or lax.scan, and sizes as x.shape; or call it without buckets",
            at=str(line or ""),
            operation=self.equation.prim.name if self.equation is not None else "",
        )


class Comparison:
    """A trace at the bucket's size and one for another number of rows; by both, sizes are functions of that number.

    Attributes:
        main: the trace at the bucket's size.
        other: a trace for another number of rows.
        holes: positions among the additional arguments of the constants that depend on the number of rows, by
            the id of their atom in `main`.
        hole_avals: their types in `main`.
    """

    def __init__(self, main: Sized, other: Sized) -> None:
        self.main, self.other = main, other
        self.rows = main.rows, other.rows
        self.holes: dict[int, int] = {}
        self.hole_avals: list[ShapedArray] = []
        self.values = [*_constants(main), *_constants(other)]  # keeps ids their own
        self._main, self._other = _values(main), _values(other)
        for atom, _ in self._read(main, other, self._main, self._other):
            if id(atom) not in self.holes:
                self.holes[id(atom)] = len(self.holes)
                self.hole_avals.append(atom.aval)

    def extent(self, first: int, second: int, equation: Equation | None = None) -> Extent:
        """A size from its values in both traces."""
        result = sizes.fitted(first, second, self.rows)
        if result is None:
            raise Mismatch(f"a size is {first} for {self.rows[0]} rows and {second} for {self.rows[1]}", equation)
        return result

    def extents(self, first: Sequence[int], second: Sequence[int], equation: Equation | None = None) -> list[Extent]:
        """Sizes of the axes of a value."""
        return [self.extent(a, b, equation) for a, b in zip(first, second, strict=True)]

    def constant(self, atom: Any) -> Any:
        """The value of an atom of `main` that is a constant for any number of rows, or None."""
        return None if id(atom) in self.holes else self._main.get(id(atom))

    def read(self, sized: Sized) -> list[Any]:
        """Values of the holes for another number of rows.

        Raises:
            Mismatch: where the trace for it is another program.
        """
        result: dict[int, Any] = {}
        values = _values(sized)
        for atom, value in self._read(self.main, sized, self._main, values):
            place = self.holes.get(id(atom))
            if place is None:
                raise Mismatch(f"a constant is another one for {sized.rows} rows")
            if place in result and not _same(result[place], value):
                raise Mismatch(f"a constant has two values for {sized.rows} rows")
            result[place] = value
        self._check_sizes(self.main.jaxpr, self.other.jaxpr, sized.jaxpr, sized.rows)
        return [result[k] if k in result else self._filler(k) for k in range(len(self.holes))]

    def _filler(self, place: int) -> Any:
        """The value in `main` of a constant that happens to be the same for another number of rows."""
        key = next(k for k, p in self.holes.items() if p == place)
        return self._main[key]

    # ------------------------------------------------------------------------------------------------------ walking
    def _read(
        self, main: Sized, other: Sized, first: dict[int, Any], second: dict[int, Any]
    ) -> Iterator[tuple[Any, Any]]:
        """Constants of `main` that differ in the other trace, with their values there."""
        for a, b, equation in _atoms(main.jaxpr, other.jaxpr, len(main.consts), len(other.consts)):
            known, there = id(a) in first, id(b) in second
            if known != there:
                raise Mismatch("a constant in one is computed in the other", equation)
            if not known:
                continue
            if a.aval.dtype != b.aval.dtype or a.aval.ndim != b.aval.ndim:
                raise Mismatch(f"constants are {a.aval!r} and {b.aval!r}", equation)
            if not _same(first[id(a)], second[id(b)]):
                yield a, second[id(b)]

    def _check_sizes(self, main: Jaxpr, other: Jaxpr, new: Jaxpr, rows: int) -> None:
        """Check that a trace for another number of rows has the sizes that the first two predict."""
        for (a, e), (b, _), (c, _) in zip(_numbers(main), _numbers(other), _numbers(new), strict=True):
            if type(a) is not type(b) or type(a) is not type(c):
                raise Mismatch(f"a parameter is {a!r} and {c!r}", e)
            if type(a) is int:
                if a == b == c:
                    continue
                fitted = _line(a, b, self.rows)
                if fitted is None or fitted[0] * rows + fitted[1] != c:
                    raise Mismatch(f"a size is {a}, {b} and {c} for {self.rows[0]}, {self.rows[1]} and {rows} rows", e)
            elif a != c and a == a:
                raise Mismatch(f"a parameter is {a!r} for {self.rows[0]} rows and {c!r} for {rows}", e)


def _line(first: int, second: int, rows: tuple[int, int]) -> tuple[int, int] | None:
    scale, rest = divmod(first - second, rows[0] - rows[1])
    return None if rest else (scale, first - scale * rows[0])


def _constants(sized: Sized) -> list[Any]:
    return [sized.jaxpr, sized.consts]


def _values(sized: Sized) -> dict[int, Any]:
    """Constants of a trace by the ids of their atoms: literals, and what the function closed over."""
    values = {id(v): c for v, c in zip(sized.jaxpr.inputs, sized.consts, strict=False)}
    for jaxpr in _jaxprs(sized.jaxpr, set()):
        atoms = [a for e in jaxpr.equations for a in e.inputs] + list(jaxpr.outputs)
        values.update((id(a), a.value) for a in atoms if isinstance(a, Literal))
    return values


def _jaxprs(jaxpr: Jaxpr, seen: set[int]) -> Iterator[Jaxpr]:
    """A jaxpr and all inside of it, each once."""
    if id(jaxpr) in seen:
        return
    seen.add(id(jaxpr))
    yield jaxpr
    for e in jaxpr.equations:
        for inner in inner_jaxprs(e.params):
            yield from _jaxprs(inner, seen)


def _same(a: Any, b: Any) -> bool:
    """Return True for constants that are equal bit for bit."""
    if a is b:
        return True
    x, y = np.asarray(a), np.asarray(b)
    return x.shape == y.shape and x.dtype == y.dtype and x.tobytes() == y.tobytes()


def _atoms(main: Jaxpr, other: Jaxpr, consts: int, consts2: int) -> Iterator[tuple[Any, Any, Equation | None]]:
    """Operands and results of both programs, side by side."""
    bound = dict(zip(main.inputs[consts:], other.inputs[consts2:], strict=True))
    if len(main.equations) != len(other.equations):
        e = _first_difference(main, other)
        raise Mismatch(f"it has {len(main.equations)} operations and {len(other.equations)}", e)
    for e, o in zip(main.equations, other.equations, strict=True):
        if e.prim is not o.prim or len(e.inputs) != len(o.inputs) or len(e.outputs) != len(o.outputs):
            raise Mismatch(f"{e.prim.name} in one is {o.prim.name} in the other", e)
        for a, b in zip(e.inputs, o.inputs, strict=True):
            if a in bound and bound[a] is not b:
                raise Mismatch(f"an operand of {e.prim.name} is another one", e)
            yield a, b, e
        main_inner, other_inner = list(inner_jaxprs(e.params)), list(inner_jaxprs(o.params))
        if len(main_inner) != len(other_inner):
            raise Mismatch(f"{e.prim.name} has another body", e)
        for x, y in zip(main_inner, other_inner, strict=True):
            if len(x.inputs) != len(y.inputs):
                raise Mismatch(f"{e.prim.name} closes over other values", e)
            yield from _atoms(x, y, 0, 0)
        bound.update(zip(e.outputs, o.outputs, strict=True))
    if len(main.outputs) != len(other.outputs):
        raise Mismatch(f"it has {len(main.outputs)} results and {len(other.outputs)}")
    for a, b in zip(main.outputs, other.outputs, strict=True):
        if a in bound and bound[a] is not b:
            raise Mismatch("a result is another value")
        yield a, b, None


def _first_difference(main: Jaxpr, other: Jaxpr) -> Equation | None:
    pairs = zip(main.equations, other.equations, strict=False)
    first = next((e for e, o in pairs if e.prim is not o.prim), None)
    return first or (main.equations[-1] if main.equations else None)


def _numbers(jaxpr: Jaxpr) -> Iterator[tuple[Any, Equation]]:
    """Parameters and shapes of a program as plain values, in order."""
    for e in jaxpr.equations:
        for name, value in e.params.items():
            yield from ((leaf, e) for leaf in _leaves(name, value))
        for v in e.outputs:
            yield v.aval.ndim, e
            yield from ((n, e) for n in v.aval.shape)
            yield v.aval.dtype, e
        for inner in inner_jaxprs(e.params):
            yield from _numbers(inner)


def _leaves(name: str, value: Any) -> Iterator[Any]:
    """The plain values in a parameter; functions and rules are another object in each trace, and left out."""
    if isinstance(value, (tuple, list)):
        yield len(value)
        for v in value:
            yield from _leaves(name, v)
    elif isinstance(value, (bool, int, float, str, np.dtype, type(None))):
        yield value


__all__ = ["Comparison", "Mismatch", "Sized"]
