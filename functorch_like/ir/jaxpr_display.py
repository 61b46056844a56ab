"""Displays of jaxprs: highlighted, with the user's lines; in notebooks, each inner jaxpr folds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from functorch_like.markup import elements, terminal
from functorch_like.markup.display import Display

if TYPE_CHECKING:
    from functorch_like.ir.jaxpr import Definition, Row

#: Largest numbers of inner jaxprs of a jaxpr, and of operands of an equation, that are shown.
MOST_PARTS, MOST_OPERANDS = 40, 30
#: Parameters longer than this are cut in the middle: constants, and lists of dimension numbers.
_LONGEST_PARAM = 60

_AVAL = re.compile(r"(: )([\w]+\[[\d,]*\])")
_LINE = 100 - 4


class JaxprDisplay(Display):
    """A jaxpr in colours.

    Args:
        parts: definitions of the jaxprs that it calls, and last its own.
        total: number of equations in all of them.
    """

    def __init__(self, parts: Sequence[Definition], total: int) -> None:
        self._parts, self._total = parts, total

    def layout(self, paint: terminal.Paint = terminal.plain) -> str:
        """Return the jaxpr as text in lines of at most 100 columns; long parameters are shortened."""
        shown = self._parts[-MOST_PARTS:]
        left_out = len(self._parts) - len(shown)
        head = [f"... {left_out} more jaxprs"] if left_out else []
        return "\n\n".join([*head, *("\n".join(_lines(part, paint)) for part in shown)])

    def markup(self) -> elements.Markup:
        """Return the jaxpr as HTML; inner jaxprs are folded."""
        inner, whole = self._parts[:-1], self._parts[-1]
        shown = inner[-MOST_PARTS:]
        more = elements.element("div", f"... {len(inner) - len(shown)} more jaxprs") if len(inner) > len(shown) else ""
        own = len(whole.jaxpr.equations)
        about = f"jaxpr {whole.title}: {_count(own, 'equation')}"
        if self._total > own:
            about += f", {self._total} with those of the jaxprs it calls"
        return elements.join(
            [
                elements.element("div", about, cls="head"),
                more,
                *(elements.details(_summary(part), _code(part)) for part in shown),
                _code(whole),
            ]
        )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _summary(part: Definition) -> elements.Markup:
    origin = elements.span(f"  {part.origin}", "grey") if part.origin else None
    count = f": {_count(len(part.jaxpr.equations), 'equation')}"
    return elements.join([elements.element("code", part.title), count, origin])


def _code(part: Definition) -> elements.Markup:
    """Return one jaxpr as a `pre` element, in colours."""
    span = elements.span
    first, *rest = _wrapped(f"({part.inputs}):", " " * len(f"def {part.title}"), "        ")
    top = [span("def ", "purple"), span(part.title, "head"), avals(first.strip())]
    if part.origin and not rest:
        top.append(span(f"  # {part.origin}", "grey"))
    lines = [elements.join(top), *map(avals, rest)]
    if part.origin and rest:
        lines.append(span(f"    # {part.origin}", "grey"))
    width = min(max((len(short(row)) for row in part.rows), default=0), 88)
    for row in part.rows:
        blanks = " " * max(width - len(short(row)), 0)
        place = span(f"{blanks}  # {row.place}", "grey") if row.place else None
        lines.append(elements.join(["    ", row_markup(row), place]))
    if len(part.jaxpr.equations) > len(part.rows):
        lines.append(span(f"    ... {len(part.jaxpr.equations) - len(part.rows)} more equations", "grey"))
    lines.append(elements.join(["    ", span("return ", "purple"), part.outputs]))
    return elements.element("pre", elements.join(lines, "\n"))


def row_markup(row: Row) -> elements.Markup:
    """Return one equation in colours, without the user's line."""
    params = [elements.span(trimmed_param(text), "orange") for text in row.params]
    inside = elements.join([*trimmed_operands(row), *params], ", ")
    return elements.join([avals(row.results), " = ", elements.span(row.primitive, "blue"), "(", inside, ")"])


def avals(text: str) -> elements.Markup:
    """Return text of names and avals, with the avals in green."""
    parts = _AVAL.split(text)  # text, ": ", aval, text, ...
    return elements.join(elements.span(part, "green") if k % 3 == 2 else part for k, part in enumerate(parts))


def trimmed_param(text: str) -> str:
    """Return "name=value" with a long value cut in the middle."""
    return terminal.trimmed(text, _LONGEST_PARAM)


def short(row: Row) -> str:
    """Return one equation as text, long parameters and many operands cut."""
    return str(row._replace(operands=trimmed_operands(row), params=tuple(map(trimmed_param, row.params))))


def trimmed_operands(row: Row) -> tuple[str, ...]:
    """Return names and literals of the first operands; long literals are cut in the middle."""
    named = tuple(terminal.trimmed(text, _LONGEST_PARAM) for text in row.operands[:MOST_OPERANDS])
    more = len(row.operands) - MOST_OPERANDS
    return (*named, f"... {more} more") if more > 0 else named


def _lines(part: Definition, paint: terminal.Paint) -> list[str]:
    """Return one jaxpr as lines of at most 100 columns."""
    origin = f"  # {part.origin}" if part.origin else ""
    lines = [
        _painted_def(line) if paint is terminal.ansi else line
        for line in _wrapped(f"def {part.title}({part.inputs}):", "", "        ")
    ]
    lines += [paint(line, "grey") for line in terminal.wrapped(origin.strip(), "    ")] if origin else []
    width = min(max((len(short(row)) for row in part.rows), default=0), 64)
    for row in part.rows:
        lines += row_lines(row, width, paint)
    if len(part.jaxpr.equations) > len(part.rows):
        lines.append(paint(f"    ... {len(part.jaxpr.equations) - len(part.rows)} more equations", "grey"))
    outputs = _wrapped(f"return {part.outputs}", "    ", "        ")
    return [*lines, *(line.replace("return", paint("return", "purple"), 1) for line in outputs)]


def row_lines(row: Row, width: int, paint: terminal.Paint, margin: str = "    ") -> list[str]:
    """Return an equation as lines of at most 100 columns, with the user's line at its end.

    Args:
        row: the equation.
        width: column at which the user's line begins.
        paint: function that styles a part of the text.
        margin: text before the equation.
    """
    lines = _wrapped(short(row), margin, margin + "    ")
    place = f"  # {row.place}" if row.place else ""
    blanks = max(width + len(margin) - len(lines[-1]), 0)
    fits = len(lines[-1]) + blanks + len(place) <= terminal.WIDEST
    name = f" = {row.primitive}("
    painted = [_AVAL.sub(lambda m: m[1] + paint(m[2], "green"), line) for line in lines]
    painted = [line.replace(name, f" = {paint(row.primitive, 'blue')}(", 1) for line in painted]
    if place and fits:
        painted[-1] += " " * blanks + paint(place, "grey")
    elif place:
        painted.append(margin + "    " + paint(terminal.trimmed(place.strip(), _LINE - len(margin)), "grey"))
    return painted


def _wrapped(text: str, first: str, rest: str) -> list[str]:
    """Wrap text into lines of at most 100 columns, without a break between a name and its aval."""
    whole = text.replace(": ", ":\u00a0").replace(" = ", "\u00a0=\u00a0")
    return [line.replace("\u00a0", " ") for line in terminal.wrapped(whole, first, rest)]


def _painted_def(line: str) -> str:
    coloured = _AVAL.sub(lambda m: m[1] + terminal.ansi(m[2], "green"), line)
    return coloured.replace("def ", terminal.ansi("def ", "purple"), 1) if line.startswith("def ") else coloured
