"""Rolling: stretches of one path that repeat become a loop, whose number of steps is a guard.

This serves loops with Python counters, whose states differ in each step. Three or more stretches at one line are
rolled where they have the same equations: operands come from the same place of the step before, and numbers written
into them are equal or progress evenly. That the next step continues the pattern is a conjecture. So a new number of
steps is verified by a trace, which needs no compiling; unverified results are dropped.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from functorch_like.compiler.fingerprint import fingerprint
from functorch_like.ir.jaxpr import Equation, Jaxpr, Literal, Var
from functorch_like.primitives import elementwise, structural
from functorch_like.transforms.paths.control import INDEX, loop, strong
from functorch_like.transforms.paths.play import Env, play, read
from functorch_like.transforms.paths.tree import Node
from functorch_like.transforms.paths.words import Words

_LEAST = 3  # steps
MOST = 1000  # steps of a loop, however few were traced: if the conjecture is wrong, it may have no end


class Local(NamedTuple):
    """The result of an earlier equation of the same step."""

    position: int


class Carried(NamedTuple):
    """A result of the step before."""

    position: int


class Outer(NamedTuple):
    """A value from before the loop."""

    var: Var


class Progression(NamedTuple):
    """A number that is `start + step * k`, or `start * 2 ** (power * k)`, in the step k."""

    start: np.ndarray[Any, Any]
    step: Any = None
    power: int | None = None

    def at(self, k: int) -> Any:
        if self.power is not None:
            return np.ldexp(self.start, self.power * k)
        return self.start if self.step is None else self.start + np.asarray(self.step * k, self.start.dtype)

    def staged(self, k: Any) -> Any:
        """Return the number for a traced step."""
        dtype = self.start.dtype
        if self.power is not None:
            info, whole = np.finfo(dtype), np.dtype(f"int{8 * dtype.itemsize}")
            exponent = elementwise.mul(_converted(k, whole), np.asarray(self.power, whole))
            bits = elementwise.shift_left(
                elementwise.add(exponent, np.asarray(info.maxexp - 1, whole)), np.asarray(info.nmant, whole)
            )
            return elementwise.mul(np.asarray(self.start), elementwise.bitcast_convert_type(bits, new_dtype=dtype))
        if self.step is None:
            return self.start
        return elementwise.add(
            np.asarray(self.start), elementwise.mul(_converted(k, dtype), np.asarray(self.step, dtype))
        )

    def reach(self) -> int:
        """Return the step up to which `staged` is exact."""
        if self.power:
            return (np.finfo(self.start.dtype).maxexp - 8) // abs(self.power)
        if self.step is None or self.start.dtype.kind != "f":
            return MOST
        fine = [float(x) * 1024 for x in (self.start, self.step)]
        exact = np.finfo(self.start.dtype).nmant >= 23 and all(x == round(x) and abs(x) < 2**13 for x in fine)
        return MOST if exact else 0


def _converted(k: Any, dtype: Any) -> Any:
    return structural.convert_element_type(k, new_dtype=dtype, weak_type=False)


Source = Local | Carried | Outer | Progression


class Loop(NamedTuple):
    """Stretches of a path that repeat.

    Attributes:
        first, steps: the guard before the first of them, and their number.
        stay, leave: the value of their guards, and of the last one. They are equal where Python's own bound ends it.
        guard: the variable of the guard before the first.
        body: the equations of one step.
        sources: the sources of the operands of each.
        start: the carried values of the first step.
        flag: the position of the guard among the results of a step.
        results, before: by position, the variables of the last step, and of the one before, that are used later.
        counted: numbers used later that look as if the loop counted them.
    """

    first: int
    steps: int
    stay: Words
    leave: Words
    guard: Var
    body: list[Equation]
    sources: list[list[Source]]
    start: dict[int, Any]
    flag: int
    results: dict[int, Var]
    before: dict[int, Var]
    counted: dict[Literal, tuple[Progression, int]]

    def reach(self) -> int:
        """Return the number of steps up to which the loop's results are Python's."""
        moving = [s for row in self.sources for s in row if isinstance(s, Progression)]
        return min([MOST, *(p.reach() - 1 for p in [*moving, *(p for p, _ in self.counted.values())])])

    @property
    def last(self) -> int:
        return self.first + self.steps

    def play(self, env: Env, most: Any) -> tuple[Any, Any]:
        """Run the loop, at most so many steps; return their number and the last value of the guard."""
        outputs = [v for e in self.body for v in e.outputs]
        now = sorted({*self.start, *self.results, *self.before})
        old = sorted(self.before)
        zero = lambda p: structural.full(outputs[p].aval.shape, 0, outputs[p].aval.dtype)
        first = [strong(read(self.start[p], env)) if p in self.start else zero(p) for p in now]
        expected = np.array(bool(self.stay[0]))

        def more(k: Any, flag: Any, *_: Any) -> Any:
            return elementwise.and_(elementwise.eq(flag, expected), elementwise.lt(k, most))

        def step(k: Any, _: Any, *values: Any) -> list[Any]:
            carried, local = (
                dict(zip(now, values, strict=False)),
                self.step(k, dict(zip(now, values, strict=False)), env),
            )
            new = [strong(local[p]) for p in now]
            return [elementwise.add(k, np.array(1, INDEX)), local[self.flag], *new, *(carried[p] for p in old)]

        start = [np.array(0, INDEX), read(self.guard, env), *first, *map(zero, old)]
        k, flag, *values = loop(more, step, start, "rolled")
        env.update((self.results[p], x) for p, x in zip(now, values, strict=False) if p in self.results)
        env.update((self.before[p], x) for p, x in zip(old, values[len(now) :], strict=True))
        for literal, (progression, offset) in self.counted.items():
            env[literal] = progression.staged(elementwise.add(k, np.array(offset, INDEX)))
        return k, flag

    def step(self, k: Any, carried: dict[int, Any], env: Env) -> list[Any]:
        """Return the results of the equations of one step."""
        local: list[Any] = []

        def value(source: Source) -> Any:
            if isinstance(source, Local):
                return local[source.position]
            if isinstance(source, Carried):
                return carried[source.position]
            return env[source.var] if isinstance(source, Outer) else source.staged(k)

        for e, sources in zip(self.body, self.sources, strict=True):
            inner = Equation(e.prim, [Var(v.aval) for v in e.outputs[:0]], e.params, e.outputs, e.source)
            atoms = [Var(a.aval) for a in e.inputs]
            inner.inputs = atoms
            values: Env = dict(zip(atoms, map(value, sources), strict=True))
            play([inner], values)
            local += [values[v] for v in e.outputs]
        return local


def find_loop(leaf: Node) -> Loop | None:
    """Return the longest loop of a path that can be rolled."""
    path, words = leaf.path(), leaf.decisions()
    lines = [n.guard.line for n in path[:-1] if n.guard is not None]
    best: Loop | None = None
    start = 0
    while start < len(words):
        end = start
        while end + 1 < len(words) and words[end] == words[start] and lines[end + 1] == lines[start]:
            end += 1
        if end - start >= _LEAST and (best is None or end - start > best.steps):
            best = _Finder(path, words, start, end).loop() or best
        start = max(end, start + 1)
    return best


class _Different(Exception):
    """Stretches that are not alike."""


class _Finder:
    """Comparison of the stretches between guards `first` and `last` of a path."""

    def __init__(self, path: list[Node], words: list[Words], first: int, last: int) -> None:
        self.path, self.words, self.first, self.last = path, words, first, last
        self.steps = last - first
        self.stretches = [n.equations for n in path[first : last + 1]]  # the first comes before the loop
        outputs = [[v for e in equations for v in e.outputs] for equations in self.stretches]
        self.outputs = outputs
        self.places = [{v: p for p, v in enumerate(output)} for output in outputs]
        self.start: dict[int, Any] = {}

    def loop(self) -> Loop | None:
        guards = [n.guard for n in self.path[self.first : self.last + 1]]
        if any(g is None or g.var.aval.dtype != bool or g.var.aval.shape for g in guards):
            return None
        try:
            sources = [self.equation(j) for j in range(len(self.stretches[2]))]
            flags = {self.places[i].get(g.var) for i, g in enumerate(guards) if i and g is not None}
            if any(len(s) != len(sources) for s in self.stretches[1:]) or len(flags) != 1 or None in flags:
                return None
            results, before = self.used_later()
        except _Different:
            return None
        guard = guards[0]
        assert guard is not None
        moving = [s for row in sources for s in row if isinstance(s, Progression)]
        stay, leave = self.words[self.first], self.words[self.last]
        return Loop(
            self.first, self.steps, stay, leave, guard.var, self.stretches[2], sources, self.start,
            next(p for p in flags if p is not None), results, before,
            self.counted(moving),
        )  # fmt: skip

    def equation(self, j: int) -> list[Source]:
        """Return the sources of the operands of the equation at a position, in all steps."""
        try:
            rows = [s[j] for s in self.stretches[1:]]
        except IndexError:
            raise _Different from None
        e = rows[1]
        for r in rows:
            same = r.prim is e.prim and len(r.inputs) == len(e.inputs) and _same(r.params, e.params)
            if not same or [v.aval.strong() for v in r.outputs] != [v.aval.strong() for v in e.outputs]:
                raise _Different
        return [self.operand([r.inputs[m] for r in rows]) for m in range(len(e.inputs))]

    def operand(self, atoms: list[Any]) -> Source:
        """Return the source of one operand, given its atoms in all steps."""
        if all(type(a) is Literal for a in atoms):
            return _progression([a.value for a in atoms])
        sources = [self.source(a, i + 1) for i, a in enumerate(atoms)]
        if isinstance(sources[1], Carried):
            if any(s != sources[1] for s in sources[2:]):
                raise _Different
            position = sources[1].position
            known = self.start.setdefault(position, atoms[0])
            if known is not atoms[0] and not _equal(known, atoms[0]):
                raise _Different
            if atoms[0].aval.strong() is not self.outputs[1][position].aval.strong():
                raise _Different
            return sources[1]
        if any(s != sources[0] for s in sources):
            raise _Different
        return sources[0]

    def source(self, atom: Any, step: int) -> Source:
        if type(atom) is not Var:
            return Progression(atom.value)
        if atom in self.places[step]:
            return Local(self.places[step][atom])
        if step > 1 and atom in self.places[step - 1]:
            return Carried(self.places[step - 1][atom])
        return Outer(atom)

    def tail(self) -> list[Any]:
        """Return the atoms used after the loop."""
        rest = self.path[self.last + 1 :]
        atoms = [a for n in rest for e in n.equations for a in e.inputs]
        atoms += [n.guard.var for n in rest if n.guard is not None]
        return [*atoms, *(self.path[-1].outputs or ())]

    def used_later(self) -> tuple[dict[int, Var], dict[int, Var]]:
        results: dict[int, Var] = {}
        before: dict[int, Var] = {}
        for a in self.tail():
            if type(a) is Var and a in self.places[-1]:
                results[self.places[-1][a]] = a
            elif type(a) is Var and a in self.places[-2]:
                before[self.places[-2][a]] = a
            elif type(a) is Var and any(a in p for p in self.places[1:-2]):
                raise _Different
        return results, before

    def counted(self, moving: list[Progression]) -> dict[Literal, tuple[Progression, int]]:
        """Return numbers used later that a progression passes at the last step, or at the one after."""
        result: dict[Literal, tuple[Progression, int]] = {}
        for a in self.tail():
            if type(a) is not Literal or a.value.shape or a.value.dtype.kind not in "if":
                continue
            ones = Progression(np.asarray(1, a.value.dtype), np.asarray(1, a.value.dtype))
            for p in [*(p for p in moving if p.step is not None or p.power is not None), ones]:
                offset = next(
                    (k for k in (-1, 0) if p.start.dtype == a.value.dtype and p.at(self.steps + k) == a.value), None
                )
                if offset is not None:
                    result[a] = p, offset
                    break
        return result


def _progression(values: list[Any]) -> Progression:
    """Return the progression that numbers make."""
    first = values[0]
    if all(v.dtype == first.dtype and v.tobytes() == first.tobytes() for v in values):
        return Progression(first)
    if any(v.dtype != first.dtype or v.shape for v in values) or first.dtype.kind not in "iuf":
        raise _Different
    with np.errstate(all="ignore"):
        made = [Progression(first, values[1] - first)]
        power = np.log2(values[1] / first) if first.dtype.kind == "f" else np.nan
        if np.isfinite(power) and power == np.round(power):
            made.insert(0, Progression(first, None, int(power)))
        for p in made:
            if all(p.at(k) == v for k, v in enumerate(values)):
                return p
    raise _Different


def _equal(a: Any, b: Any) -> bool:
    both = type(a) is Literal and type(b) is Literal
    return both and a.aval is b.aval and a.value.tobytes() == b.value.tobytes()


def _same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    def same(x: Any, y: Any) -> bool:
        if isinstance(x, Jaxpr) and isinstance(y, Jaxpr):
            return x is y or (fingerprint(x) is not None and fingerprint(x) == fingerprint(y))
        if isinstance(x, tuple) and isinstance(y, tuple):
            return len(x) == len(y) and all(map(same, x, y))
        return x is y or bool(np.all(x == y))

    return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
