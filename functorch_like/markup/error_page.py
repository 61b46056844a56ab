"""An error's parts laid out and wrapped at words: in place of its text below a notebook's traceback, and as HTML."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from functorch_like.markup import elements, terminal

#: Name and text of each part; the first, which has no name, is the operation.
Parts = Sequence[tuple[str, str]]

_STYLES = {"what to do": "green", "at": "blue"}


def layout(title: str, parts: Parts, paint: terminal.Paint = terminal.plain, columns: int = terminal.WIDEST) -> str:
    """Return the parts of an error, each below the other, with their texts in one column.

    Args:
        title: the class of the error.
        parts: of the error. Empty ones are left out.
        paint: gives parts a style.
        columns: length of a line.

    >>> print(layout("ShapeError", [("", "add(f32[3], f32[2])"), ("reason", "3 and 2"), ("what to do", "reshape")]))
    ShapeError: add(f32[3], f32[2])
      reason      3 and 2
      what to do  reshape
    """
    named = [(name, text) for name, text in parts if text]
    widest = max((len(name) for name, _ in named), default=0)
    lines: list[str] = []
    for name, text in named:
        first = f"  {name:<{widest}}  " if name else f"{title}: "
        wrapped = terminal.wrapped(text, first, None if name else "    ", columns)
        # Texts keep the colour of the page: others are hard to read on the red that notebooks give errors.
        lines += [paint(first.rstrip(), "head" if name else "red") + wrapped[0][len(first.rstrip()) :], *wrapped[1:]]
    return "\n".join(lines)


def markup(title: str, parts: Parts) -> elements.Markup:
    """Return the parts of an error as HTML."""
    head = " ".join(text for name, text in parts if not name)
    rows = [
        (name, elements.element("span", text, cls=_STYLES.get(name), style="white-space:pre-wrap"))
        for name, text in parts
        if name and text
    ]
    title_line = elements.element("div", elements.span(title, "red head"), f": {head}" if head else "")
    return elements.join([title_line, elements.facts(rows)])


def traceback(error: BaseException, parts: Parts) -> list[str]:
    """Return the traceback as IPython shows it, with the error's text laid out.

    Args:
        error: with its traceback.
        parts: of the error.
    """
    title = type(error).__name__
    ipython = sys.modules.get("IPython")
    shell: Any = None if ipython is None else ipython.get_ipython()
    if shell is None:
        import traceback as standard

        lines = standard.format_exception(type(error), error, error.__traceback__)
        return [line.rstrip("\n") for line in lines[:-1]] + [layout(title, parts)]
    # The first frame is the shell's own, which runs the cell.
    shown = list(shell.InteractiveTB.structured_traceback(type(error), error, error.__traceback__, tb_offset=1))
    paint = terminal.plain if getattr(shell, "colors", "").lower() == "nocolor" else terminal.ansi
    columns = terminal.WIDEST if hasattr(shell, "kernel") else terminal.width()
    end = layout(title, parts, paint, columns)
    # The text of the error is the end of the list, one entry or several by the mode of `%xmode`.
    first_line = str(error).split("\n", 1)[0]
    places = [k for k, text in enumerate(shown) if first_line and first_line in text]
    return [*(shown[: places[-1]] if places else shown), end]
