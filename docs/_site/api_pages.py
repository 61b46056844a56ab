"""Pages of the API reference, as Markdown, from the signatures and docstrings of public names.

Some functions are made by other functions, and names are imported at their first use, so the source does not show them.
Modules are imported instead; the names that `dir` lists are public.
"""

from __future__ import annotations

import importlib
import inspect
import re
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

#: Modules in the order of the reference. A submodule that is public is found through its parent.
ROOTS = ("functorch_like",)
#: Public submodules that other pages document: settings and tables.
ELSEWHERE = re.compile(r"functorch_like\.(primitives|backends\..*)$")
SHORT = {"functorch_like": "ft", "functorch_like.numpy": "fnp"}


class Name(NamedTuple):
    """A public name: its form in code, its anchor, the first line of its docstring, and the object."""

    shown: str
    anchor: str
    summary: str
    value: Any


class Page(NamedTuple):
    """A public module with its names."""

    module: types.ModuleType
    path: str
    names: list[Name]


def pages() -> list[Page]:
    """Return the public modules, parents first."""
    return [Page(module, f"api/{module.__name__}.md", list(_names(module))) for module in _modules()]


def _modules() -> Iterator[types.ModuleType]:
    waiting = [importlib.import_module(root) for root in ROOTS]
    seen = set()
    while waiting:
        module = waiting.pop(0)
        if module.__name__ in seen or ELSEWHERE.match(module.__name__):
            continue
        seen.add(module.__name__)
        yield module
        values = (getattr(module, name) for name in dir(module) if not name.startswith("_"))
        waiting += [v for v in values if isinstance(v, types.ModuleType) and v.__name__.startswith(module.__name__)]


def shown(module: str) -> str:
    """Return the name of a module as used in code: `ft.random`, `fnp.linalg`."""
    for long, short in sorted(SHORT.items(), key=lambda item: -len(item[0])):
        if module == long or module.startswith(long + "."):
            return short + module[len(long) :]
    return module


def _names(module: types.ModuleType) -> Iterator[Name]:
    for name in dir(module):
        if name.startswith("_"):
            continue
        value = getattr(module, name)
        if isinstance(value, types.ModuleType):
            continue
        yield Name(f"{shown(module.__name__)}.{name}", _anchor(name), _summary(value), value)


def _anchor(name: str) -> str:
    return name if name == name.lower() else name + "_"  # `Array` and `array` differ


def documentation(value: Any) -> str:
    """Return the docstring of the value itself, not that of its class."""
    doc = inspect.getdoc(value) or ""
    if not isinstance(value, type) and not callable(value) and doc == inspect.getdoc(type(value)):
        return f"A constant: `{value!r:.60}`." if type(value).__module__ == "builtins" else doc
    return doc


def _summary(value: Any) -> str:
    return documentation(value).split("\n\n")[0].replace("\n", " ").strip() or f"`{value!r:.60}`"


# ------------------------------------------------------------------------------------------------------------- Markdown


def escaped(text: str) -> str:
    """Escape text for Markdown, except between backticks."""
    parts = re.split(r"(``.+?``|`[^`]+`)", text)
    parts[::2] = [re.sub(r"([\\*_\[\]<>|#])", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def signature(name: Name) -> str:
    """Return `name(arguments) -> result`, with one argument on each line if it is long."""
    value = name.value
    label = name.shown.rsplit(".", 1)[-1]
    try:
        given = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    given = given.replace(
        parameters=[p.replace(annotation=_plain(p.annotation)) for p in given.parameters.values()],
        return_annotation=_plain(given.return_annotation),
    )
    text = str(given)
    if len(label) + len(text) <= 100:
        return label + text
    rows = [str(parameter) for parameter in given.parameters.values()]
    result = given.return_annotation
    end = ")" if result is inspect.Signature.empty else f") -> {result!r}"
    return "\n".join([f"{label}(", *(f"    {row}," for row in rows), end])


class _Annotation:
    """An annotation whose `repr` is its text, without the quotes of postponed evaluation."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _plain(annotation: Any) -> Any:
    return _Annotation(annotation) if isinstance(annotation, str) else annotation


SECTION = re.compile(r"^(Args|Returns|Raises|Yields|Attributes|Example|Examples|Note|Notes):\s*$")


def body(doc: str) -> str:
    """Convert a docstring to Markdown: sections become lists, examples and literal blocks become code."""
    out: list[str] = []
    lines = doc.split("\n")
    k, kind = 0, ""
    while k < len(lines):
        line = lines[k]
        heading = SECTION.match(line)
        if heading:
            kind = heading[1]
            out += ["", f"**{kind}**", ""]
            k += 1
        elif line.lstrip().startswith(">>> "):
            block, k = _until_blank(lines, k)
            out += ["", "```pycon", *inspect.cleandoc("\n".join(block)).split("\n"), "```", ""]
        elif line.rstrip().endswith("::"):
            text = line.rstrip()[:-1] if line.strip() != "::" else ""
            block, k = _indented(lines, k + 1, len(line) - len(line.lstrip()))
            out += [escaped(text.strip()), "", "```text", *block, "```", ""]
        elif kind and line.startswith("    "):
            k = _entry(lines, k, kind, out)
        else:
            kind = "" if line.strip() and not line.startswith(" ") else kind
            out.append(
                escaped(line.strip())
                if not line.lstrip().startswith(("- ", "* "))
                else "- " + escaped(line.strip()[2:])
            )
            k += 1
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip()


def _until_blank(lines: list[str], k: int) -> tuple[list[str], int]:
    end = k
    while end < len(lines) and lines[end].strip():
        end += 1
    return lines[k:end], end


def _indented(lines: list[str], k: int, indent: int) -> tuple[list[str], int]:
    end = k
    while end < len(lines) and (not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) > indent):
        end += 1
    return inspect.cleandoc("\n".join(lines[k:end])).split("\n"), end


def _entry(lines: list[str], k: int, kind: str, out: list[str]) -> int:
    """Return one argument or exception, with its continuation lines, as a list item."""
    text = [lines[k].strip()]
    k += 1
    while k < len(lines) and lines[k].startswith("     " if kind not in ("Returns", "Yields") else "    "):
        text.append(lines[k].strip())
        k += 1
    joined = " ".join(text)
    term = re.match(r"(\*{0,2}[\w., *]+): (.*)$", joined) if kind not in ("Returns", "Yields") else None
    out.append(f"- `{term[1]}`: {escaped(term[2])}" if term else f"- {escaped(joined)}")
    return k


def module_page(page: Page) -> str:
    """Return the Markdown of one module's page."""
    short = shown(page.module.__name__)
    first = escaped(inspect.getdoc(page.module) or "").split("\n\n")[0]
    parts = [
        f"# {short}",
        first,
        f"`import {page.module.__name__}`" + (f", here as `{short}`." if "." in short else ""),
    ]
    for name in page.names:
        text = signature(name)
        parts.append(f"## {name.shown.replace('_', chr(92) + '_')} {{ #{name.anchor} }}")
        if text:
            parts.append(f"```python\n{text}\n```")
        parts.append(body(documentation(name.value)) or escaped(name.summary))
    return "\n\n".join(parts) + "\n"


def index_page(found: list[Page]) -> str:
    """Return the page of all public names, one line each."""
    total = sum(len(page.names) for page in found)
    abbreviations = "`ft` is `functorch_like`, and `fnp` is `functorch_like.numpy`."
    parts = ["# All names", f"{total:,} public names of {len(found)} modules, one line each. {abbreviations}"]
    for page in found:
        if page.names:
            short = shown(page.module.__name__)
            rows = [f"| [`{n.shown}`]({page.path[4:]}#{n.anchor}) | {escaped(n.summary)} |" for n in page.names]
            parts.append("\n".join([f"## {short}", "", "| name | |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def modules_page(found: list[Page]) -> str:
    """Return the page of the public modules, one line each."""
    rows = [
        f"| [`{shown(p.module.__name__)}`]({p.path[4:]}) | {len(p.names)} | {escaped(_summary(p.module))} |"
        for p in found
    ]
    return "\n".join(["# Modules", "", "| module | names | |", "|---|---|---|", *rows]) + "\n"
