"""Pages of mistakes: code that raises an error, the message, and code that works instead.

    ## A heading

    ```python title="refused"
    fnp.ones(3) + fnp.ones(4)
    ```

    ```text
    ShapeError: add(f32[3], f32[4]): ...
      what to do: ...
    ```

    ```python title="instead"
    fnp.ones(4) + fnp.ones(4)
    ```

`python tests/support/error_pages.py` rewrites the messages that have changed. `...` in a message matches any text.
"""

from __future__ import annotations

import re
import textwrap
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from functorch_like import extend

ROOT = Path(__file__).parents[2]
PAGES = ("errors/catalogue.md", "errors/mistakes.md")
#: Prefixes of lines that pages leave out: they name files and line numbers.
LEFT_OUT = ("  at: ", "  rule: ")
FENCE = r'```python title="{}"\n(.*?)```\n'
CASE = re.compile(
    r"^#{2,3} ([^\n]*)\n((?:(?!^#).)*?)" + FENCE.format("refused") + r"\s*```text\n(.*?)```\n"
    r"(?:\s*" + FENCE.format("instead") + r")?",
    re.DOTALL | re.MULTILINE,
)


class Case(NamedTuple):
    """One mistake of a page."""

    title: str
    refused: str
    message: str
    instead: str


def cases(page: str) -> list[Case]:
    """Return the mistakes of a page in `docs/`."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [Case(m[1], m[3], m[4], m[5] or "") for m in CASE.finditer(text)]


def namespace() -> dict[str, Any]:
    """Return the names that each snippet can use without importing them; the top of each page lists them."""
    names: dict[str, Any] = {}
    exec("import numpy as np\nimport functorch_like as ft\nimport functorch_like.numpy as fnp", names)
    exec("from functorch_like import lax, nn, random", names)
    return names


def _file(case: Case) -> str:
    return re.sub(r"\W+", "_", case.title) + ".snippet"


def run(case: Case, code: str) -> None:
    """Run code of a page, with warnings as errors; primitives that it defines are removed afterwards."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            exec(compile(code, _file(case), "exec"), namespace())
        finally:
            for primitive in extend.primitives().values():
                if not primitive.builtin:
                    extend.forget(primitive)


def raised(case: Case) -> Exception:
    """Return the error that the refused code raises, or the warning that it gives."""
    try:
        run(case, case.refused)
    except Exception as error:
        return error
    raise AssertionError(f"nothing was refused: {case.title}")


def told(error: Exception) -> str:
    """Return the text of an error as a page shows it."""
    told = re.sub(r"\w+\.snippet:", "script.py:", f"{type(error).__name__}: {error}")
    told = re.sub(r" at 0x[0-9a-f]+", " at ...", told)
    lines = [line for line in told.split("\n") if not line.startswith(LEFT_OUT)]
    return (
        "\n".join(textwrap.fill(line, 110, subsequent_indent="    ", break_on_hyphens=False) for line in lines) + "\n"
    )


def same(shown: str, found: str) -> bool:
    """Return True if two messages agree apart from line breaks; `...` in the first one matches any text."""
    pattern = ".*".join(re.escape(" ".join(part.split())) for part in shown.split("..."))
    return re.fullmatch(pattern.replace(r"\ ", " *"), " ".join(found.split())) is not None


def write(page: str) -> None:
    """Rewrite the messages of a page that have changed."""
    path = ROOT / "docs" / page
    text = path.read_text(encoding="utf-8")
    for case in cases(page):
        found = told(raised(case))
        if not same(case.message, found):
            start = text.index(case.refused)
            text = text[:start] + text[start:].replace(f"```text\n{case.message}```", f"```text\n{found}```", 1)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for each in PAGES:
        write(each)
