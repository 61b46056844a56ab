"""Differences between two jaxprs: equations that only one of them has. Names of variables do not count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from functorch_like.ir.jaxpr import Definition, Jaxpr, Literal, Row, definitions, literal_text
from functorch_like.ir.jaxpr_display import row_lines, row_markup
from functorch_like.markup import elements, terminal
from functorch_like.markup.display import Display

#: Number of equal equations that are shown before and after a difference.
CONTEXT = 2
#: Largest number of equations of a jaxpr that are compared: the time grows with the square.
MOST = 5000
#: Largest number of changes of a jaxpr that are shown.
MOST_SHOWN = 300


class Change(NamedTuple):
    """One equation of a comparison.

    Attributes:
        sign: " " if both jaxprs have the equation, "-" if only the first has it, "+" if only the second has it.
        row: text of the equation.
    """

    sign: str
    row: Row


class Section(NamedTuple):
    """Comparison of one jaxpr of the first with one of the second.

    Attributes:
        title: names of the jaxprs; one name if they are equal, or if only one jaxpr exists.
        header: inputs of the first and of the second, or None if they are equal.
        changes: all equations.
        results: results of the first and of the second, or None if they are equal.
        cut: True if a jaxpr has more equations than are compared.
    """

    title: str
    header: tuple[str, str] | None
    changes: list[Change]
    results: tuple[str, str] | None
    cut: bool

    @property
    def is_equal(self) -> bool:
        return self.header is None and self.results is None and all(change.sign == " " for change in self.changes)


class JaxprDiff(Display):
    """Differences between two jaxprs, and between those that they call, paired by their names.

    Two equations are equal if they apply one primitive with equal parameters to corresponding values. So another name
    of a variable is no difference.

    Attributes:
        sections: one for each pair of jaxprs.
        added: number of equations that only the second has.
        removed: number of equations that only the first has.
    """

    def __init__(self, first: Jaxpr, second: Jaxpr) -> None:
        left = {part.title: part for part in definitions(first, MOST)}
        right = {part.title: part for part in definitions(second, MOST)}
        mine, other = list(left)[-1], list(right)[-1]
        pairs = [(left.get(title), right.get(title)) for title in {**left, **right} if title not in (mine, other)]
        self.sections = [*(_compare(a, b) for a, b in pairs), _compare(left[mine], right[other])]
        signs = [change.sign for section in self.sections for change in section.changes]
        self.added, self.removed = signs.count("+"), signs.count("-")

    @property
    def is_equal(self) -> bool:
        """True if nothing differs."""
        return all(section.is_equal for section in self.sections)

    def layout(self, paint: terminal.Paint = terminal.plain) -> str:
        """Return the differences, with two equal equations around each."""
        lines = [paint(self._summary(), "head")]
        for section in self.sections:
            if section.is_equal:
                continue
            lines += ["", paint(f"def {section.title}:", "head")]
            lines += _pair_lines(section.header, paint)
            for change in _near(section.changes):
                lines += _change_lines(change, paint)
            lines += _pair_lines(section.results, paint)
            if section.cut:
                lines.append(f"only the first {MOST} equations are compared")
        return "\n".join(lines)

    def markup(self) -> elements.Markup:
        """Return the differences, a part for each jaxpr; equal ones are left out."""
        parts: list[object] = [elements.element("div", self._summary(), cls="head")]
        for section in self.sections:
            if section.is_equal:
                continue
            lines: list[object] = [*_pair_markup(section.header)]
            lines += map(_change_markup, _near(section.changes))
            lines += _pair_markup(section.results)
            if section.cut:
                lines.append(f"only the first {MOST} equations are compared")
            code = elements.element("pre", elements.join(lines, "\n"))
            parts.append(elements.details(elements.element("code", section.title), code, opened=True))
        return elements.join(parts)

    def _summary(self) -> str:
        if self.is_equal:
            return "the jaxprs are equal"
        return f"{self.removed} equations only in the first (-), {self.added} only in the second (+)"


def _compare(first: Definition | None, second: Definition | None) -> Section:
    if first is None or second is None:
        only: Any = first or second
        sign = "-" if second is None else "+"
        return Section(only.title, None, [Change(sign, row) for row in only.rows], None, _is_cut(only))
    same = _Correspondence(first.jaxpr, second.jaxpr)
    changes = list(_changes(first, second, same))
    header = None if _types(first) == _types(second) else (f"({first.inputs})", f"({second.inputs})")
    equal = same.holds(first.jaxpr.outputs, second.jaxpr.outputs)
    results = None if equal else (f"return {first.outputs}", f"return {second.outputs}")
    title = first.title if first.title == second.title else f"{first.title} and {second.title}"
    return Section(title, header, changes, results, _is_cut(first) or _is_cut(second))


def _is_cut(part: Definition) -> bool:
    return len(part.jaxpr.equations) > len(part.rows)


def _types(part: Definition) -> list[str]:
    return list(map(repr, part.jaxpr.in_avals))


def _changes(first: Definition, second: Definition, same: _Correspondence) -> Iterator[Change]:
    """Pair equations of equal primitives and types; a pair is equal if its operands correspond."""
    matcher = SequenceMatcher(None, [_key(row) for row in first.rows], [_key(row) for row in second.rows], False)
    for kind, i, k, j, m in matcher.get_opcodes():
        if kind == "equal":
            for one, other in zip(first.rows[i:k], second.rows[j:m], strict=True):
                if same.holds(one.equation.inputs, other.equation.inputs):
                    yield Change(" ", other)
                else:
                    yield Change("-", one)
                    yield Change("+", other)
                same.add(one, other)
        else:
            yield from (Change("-", row) for row in first.rows[i:k])
            yield from (Change("+", row) for row in second.rows[j:m])


def _key(row: Row) -> tuple[Any, ...]:
    types = tuple(repr(a.aval) for a in (*row.equation.inputs, *row.equation.outputs))
    return row.primitive, row.params, types


class _Correspondence:
    """Map from values of the first jaxpr to the corresponding values of the second."""

    def __init__(self, first: Jaxpr, second: Jaxpr) -> None:
        self._there: dict[Any, Any] = dict(zip(first.inputs, second.inputs, strict=False))
        self._taken = set(self._there.values())

    def add(self, one: Row, other: Row) -> None:
        """Record that the results of two equations correspond."""
        for a, b in zip(one.equation.outputs, other.equation.outputs, strict=True):
            self._there[a] = b
            self._taken.add(b)

    def holds(self, one: Sequence[Any], other: Sequence[Any]) -> bool:
        """Return True if values correspond. Values that depend on earlier differences count as corresponding."""
        return len(one) == len(other) and all(map(self._same, one, other))

    def _same(self, a: Any, b: Any) -> bool:
        if isinstance(a, Literal) or isinstance(b, Literal):
            return isinstance(a, Literal) and isinstance(b, Literal) and literal_text(a.value) == literal_text(b.value)
        return self._there[a] is b if a in self._there else b not in self._taken


def _near(changes: list[Change]) -> Iterator[Change | None]:
    """Yield changes with `CONTEXT` equal equations around them, and None for equations that are left out."""
    positions = {k + d for k, c in enumerate(changes) if c.sign != " " for d in range(-CONTEXT, CONTEXT + 1)}
    before = -1
    for k in sorted(k for k in positions if 0 <= k < len(changes))[:MOST_SHOWN]:
        if k != before + 1:
            yield None
        yield changes[k]
        before = k
    if before < len(changes) - 1:
        yield None


def _pair_lines(pair: tuple[str, str] | None, paint: terminal.Paint) -> list[str]:
    lines: list[str] = []
    for (sign, style), text in zip((("-", "red"), ("+", "green")), pair or (), strict=False):
        lines += [paint(line, style) for line in terminal.wrapped(text, f"{sign} ", "      ")]
    return lines


def _pair_markup(pair: tuple[str, str] | None) -> list[elements.Markup]:
    signs = (("-", "del"), ("+", "ins"))
    return [elements.element(tag, f"{sign} {text}") for (sign, tag), text in zip(signs, pair or (), strict=False)]


def _change_lines(change: Change | None, paint: terminal.Paint) -> list[str]:
    if change is None:
        return [paint("  ...", "grey")]
    if change.sign == " ":
        return row_lines(change.row, 0, paint, "  ")
    style = "red" if change.sign == "-" else "green"
    first, *rest = row_lines(change.row, 0, terminal.plain, "  ")
    return [paint(change.sign + first[1:], style), *(paint(line, style) for line in rest)]


def _change_markup(change: Change | None) -> elements.Markup:
    if change is None:
        return elements.span("  ...", "grey")
    place = elements.span(f"  # {change.row.place}", "grey") if change.row.place else None
    line = elements.join([f"{change.sign} ", row_markup(change.row), place])
    return line if change.sign == " " else elements.element("del" if change.sign == "-" else "ins", line)
