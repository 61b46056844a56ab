"""HTML that is escaped by construction: a value that is not `Markup` becomes text.

Colours are inherited from the page, and lines and backgrounds are mixed from them, so one style sheet serves light and
dark themes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

#: Within words: no break stands before a blank, at an end, or beside another one.
_BREAKS = re.compile(r"(?<=[._/,])(?=[^\s._/,])")


class Markup(str):
    """HTML, to be put into a page as it stands."""

    __slots__ = ()


#: Hues that have enough contrast on white and on black.
HUES = {
    "blue": "hsl(212 75% 52%)",
    "green": "hsl(152 60% 36%)",
    "orange": "hsl(24 85% 47%)",
    "purple": "hsl(282 50% 58%)",
    "red": "hsl(358 70% 55%)",
    "grey": "color-mix(in srgb,currentColor 62%,transparent)",
}

_LINE = "color-mix(in srgb,currentColor 18%,transparent)"
_SHADE = "color-mix(in srgb,currentColor 6%,transparent)"
_RULES = (
    ".ft{font:13px/1.45 system-ui,sans-serif;color:inherit;max-width:100%;overflow-x:auto;text-align:left}"
    ".ft table{border-collapse:collapse;margin:4px 0;color:inherit;font-size:12px}"
    f".ft th,.ft td{{padding:2px 10px 2px 0;text-align:left;vertical-align:baseline;border:0;"
    f"border-bottom:1px solid {_LINE};background:none;color:inherit;white-space:normal;overflow-wrap:break-word}}"
    ".ft tbody tr:nth-child(n){background:none}"  # notebooks shade every other row
    ".ft td.n,.ft th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
    ".ft td.k{white-space:nowrap;font-weight:600}"
    f".ft code,.ft pre{{font:12px/1.5 ui-monospace,Menlo,Consolas,monospace;color:inherit;background:none}}"
    ".ft pre,.ft table{max-width:66em}.ft code{padding:0;white-space:pre-wrap}"
    f".ft pre{{margin:4px 0;padding:6px 8px;background:{_SHADE};border-radius:4px;white-space:pre;overflow:auto;"
    "max-height:32em}"
    ".ft details{margin:1px 0 1px 2px}.ft details>*:not(summary){margin-left:1.1em}.ft summary{cursor:pointer}"
    f".ft .bar{{display:inline-block;height:.75em;min-width:1px;border-radius:2px;opacity:.75;"
    f"background:{HUES['blue']}}}"
    ".ft .head{font-weight:600}"
    + "".join(f".ft .{name}{{color:{hue}}}" for name, hue in HUES.items())
    + f".ft ins{{text-decoration:none;background:color-mix(in srgb,{HUES['green']} 22%,transparent)}}"
    f".ft del{{text-decoration:none;background:color-mix(in srgb,{HUES['red']} 22%,transparent)}}"
)
#: Notebooks style tables and code by several classes; the class repeated three times overrides them.
_STYLE = _RULES.replace(".ft", ".ft.ft.ft")


def element(tag: str, *children: object, **attributes: object) -> Markup:
    """Return an element; children and attributes that are not `Markup` are escaped.

    Args:
        tag: its name.
        children: texts and elements. None is left out.
        attributes: by name. `cls` is `class`; True gives an attribute without a value, None and False leave it out.

    >>> element("b", "x < y", cls="head")
    '<b class="head">x &lt; y</b>'
    """
    opening = "".join(
        _attribute(name, value) for name, value in attributes.items() if not (value is None or value is False)
    )
    return Markup(f"<{tag}{opening}>{join(children)}</{tag}>")


def join(children: Iterable[object], separator: str = "") -> Markup:
    """Return texts and elements one after the other."""
    return Markup(separator.join(_escaped(child) for child in children if child is not None))


def table(head: Sequence[object], rows: Iterable[Sequence[object]], *, numbers: Sequence[int] = ()) -> Markup:
    """Return a table.

    Args:
        head: titles of the columns; none for a table without.
        rows: cells of each row.
        numbers: columns that are aligned to the right.
    """
    cells = lambda tag, row: join(
        element(tag, cell, cls="n" if k in numbers else None) for k, cell in enumerate(row) if cell is not None
    )
    top = element("thead", element("tr", cells("th", head))) if head else None
    return element("table", top, element("tbody", *(element("tr", cells("td", row)) for row in rows)))


def facts(pairs: Iterable[tuple[str, object]]) -> Markup:
    """Return a table of names and values; pairs without a value are left out."""
    rows = (element("tr", element("td", name, cls="k"), element("td", value)) for name, value in pairs if value != "")
    return element("table", element("tbody", *rows))


def details(summary: object, *body: object, opened: bool = False) -> Markup:
    """Return a part that folds under its summary."""
    return element("details", element("summary", summary), *body, open=opened)


def bar(share: float, most: int = 160) -> Markup:
    """Return a bar as long as a share (0 to 1) of `most` pixels."""
    return element("span", cls="bar", style=f"width:{max(0.0, min(share, 1.0)) * most:.1f}px", role="presentation")


def span(text: object, style: str) -> Markup:
    """Return text in one of the styles: a name of `HUES`, or "head"."""
    return element("span", text, cls=style)


def breakable(text: str) -> Markup:
    """Return text that may go on in the next line after each of `._/,`: long names and paths in narrow columns.

    >>> breakable("a.b_c<d")
    'a.<wbr>b_<wbr>c&lt;d'
    """
    return Markup(_BREAKS.sub("<wbr>", _text(text)))


def document(*children: object) -> Markup:
    """Return a display as it goes into a cell's output, with its style sheet."""
    return element("div", element("style", Markup(_STYLE)), *children, cls="ft")


def _attribute(name: str, value: object) -> str:
    name = {"cls": "class"}.get(name, name.replace("_", "-"))
    return f" {name}" if value is True else f' {name}="{_text(str(value))}"'


def _escaped(child: object) -> str:
    return child if isinstance(child, Markup) else _text(str(child))


def _text(text: str) -> str:
    """Escaped, and without characters that no HTML may contain: control characters, halves of surrogate pairs."""
    return text.encode("utf-8", "replace").decode("utf-8").translate(_ESCAPES)


_ESCAPES: dict[int, str] = {
    **{code: "\ufffd" for code in range(32) if chr(code) not in "\n\t"},
    **{ord(c): entity for c, entity in {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"}.items()},
}
