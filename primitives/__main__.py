"""`python -m functorch_like.primitives [name ...]` prints the table of primitives, or some of its rows in full.

A column is marked x where it holds a rule and - where it says No; of named rows the reasons are printed too. The dtypes
are those of the operands that the row is tested with, by kind: f floating point, c complex, i and u integers signed and
unsigned, b bool. The platforms are those that it lowers for; * marks a lowering that is not the same on all of them,
and + one that has alternatives on CPUs.

`--markdown FILE` writes the page of the documentation.
"""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path

from functorch_like import core
from functorch_like.backends import xla
from functorch_like.compiler.lower import lower
from functorch_like.core import COLUMNS, TABLE, NotDefined, Primitive, SampleInput, aval_of
from functorch_like.errors import FtError
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives import load
from functorch_like.primitives.base.elementwise_makers import KIND
from functorch_like.primitives.base.lowering import alternatives_of

PLATFORMS = ("cpu", "gpu")


def rows() -> list[Primitive]:
    """All rows of the package, by family and name."""
    load()
    return sorted((row for row in TABLE.values() if row.builtin), key=lambda row: (row.family, row.name))


def dtypes_of(row: Primitive) -> list[str]:
    """The dtypes of the operands that the row is tested with."""
    found = {x.dtype for sample in row.samples() for x in sample.operands}
    return [d.name for d in KIND if d in found]


def kinds(row: Primitive) -> str:
    """The same by kind, a letter each."""
    names = set(dtypes_of(row))
    letters = {KIND[d] for d in KIND if d.name in names}
    return "".join(letter for letter in "fciub" if letter in letters) or "-"


def _module(row: Primitive, sample: SampleInput, platform: str) -> str:
    avals = [aval_of(x) if not hasattr(x, "weak_type") else x for x in sample.operands]
    apply = lambda *xs: (lambda out: list(out) if row.multiple_results else [out])(row(*xs, **sample.params))
    jaxpr, _ = stage(apply, avals, name=row.name, parent=core.EVALUATE)
    return xla.module_text(lower(jaxpr, name=row.name, platform=platform).module)


def platforms(row: Primitive) -> str:
    """Platforms that it lowers on, with a star if not alike; empty if it lowers nowhere by itself."""
    texts: dict[str, list[str]] = {}
    for platform in PLATFORMS:
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # a probe announces each of its rules
                texts[platform] = [_module(row, sample, platform) for sample in row.samples()]
        except FtError:
            continue
    if not any(texts.values()):
        return "-"
    alike = len({tuple(made) for made in texts.values()}) == 1
    return " ".join(texts) + ("" if alike else " *") + (" +" if alternatives_of(row.lower) else "")


def table() -> str:
    """All rows: name, family, which columns are filled, dtypes and platforms."""
    lines: list[tuple[str, ...]] = [("primitive", "family", *COLUMNS, "samples", "dtypes", "platforms")]
    for row in rows():
        marks = ("-" if isinstance(getattr(row, column), NotDefined) else "x" for column in COLUMNS)
        lines.append((row.name, row.family, *marks, str(len(row.samples())), kinds(row), platforms(row)))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([*text, f"{len(lines) - 1} rows"])


def describe(name: str) -> str:
    """One row: where it stands, each column or why it is empty, and its alternatives."""
    row = TABLE[name]
    lines = [f"{row.name} ({row.where})"]
    for column in COLUMNS:
        cell = getattr(row, column)
        lines.append(f"  {column}: {cell}" if isinstance(cell, NotDefined) else f"  {column}: a rule")
    lines.append(f"  dtypes: {', '.join(dtypes_of(row)) or 'none'}")
    lines.append(f"  platforms: {platforms(row)}")
    lines += [f"  on CPUs, {a.limits}: {a.name}" for a in alternatives_of(row.lower)]
    return "\n".join(lines)


# ------------------------------------------------------------------------------------------------------- documentation
_HEAD = """# Primitives

<!-- Written by `python -m functorch_like.primitives --markdown docs/primitives.md`; a test compares. -->

Everything that functorch_like computes is made of these rows. Each says what it means in NumPy, what shapes it gives,
how it lowers, differentiates forwards (jvp), transposes and batches. A row that has no rule in a column says why: the
reasons stand below the table. The dtypes are those that its tests use: f floating point, c complex, i and u integers
signed and unsigned, b bool. A star marks a lowering that is not the same on all platforms.
"""
_FORMS = """## Alternatives on CPUs

Forms that XLA:CPU runs faster than the standard one. `backends.cpu.fast_lowerings` turns them off, all or by row.
"""
_EMPTY = """## Columns without a rule
"""


def markdown() -> str:
    """The page of the documentation."""
    lines = [_HEAD, "| primitive | family | rules | dtypes | platforms |", "|---|---|---|---|---|"]
    forms, reasons = ["", _FORMS, "| primitive | for | form |", "|---|---|---|"], ["", _EMPTY]
    for row in rows():
        empty = [column for column in COLUMNS if isinstance(getattr(row, column), NotDefined)]
        filled = "all" if not empty else f"all but {', '.join(empty)}"
        where = platforms(row).removesuffix(" +").replace("*", "\\*")
        lines.append(f"| {row.name} | {row.family} | {filled} | {kinds(row)} | {where} |")
        forms += [f"| {row.name} | {a.limits} | {a.name} |" for a in alternatives_of(row.lower)]
        said: dict[str, list[str]] = {}
        for column in empty:
            said.setdefault(getattr(row, column), []).append(column)
        reasons += [f"- **{row.name}**, {', '.join(columns)}: {reason}." for reason, columns in said.items()]
    return "\n".join([*lines, *forms, *reasons]) + "\n"


def main(arguments: list[str]) -> int:
    """Print, or write; names that are no rows are an error."""
    if arguments[:1] == ["--markdown"]:
        if len(arguments) != 2:
            print("--markdown wants the name of one file", file=sys.stderr)
            return 2
        Path(arguments[1]).write_text(markdown(), encoding="utf-8")
        return 0
    rows()
    unknown = [name for name in arguments if name not in TABLE]
    if unknown:
        print(f"no such primitive: {', '.join(unknown)}", file=sys.stderr)
        return 2
    print("\n".join(map(describe, arguments)) if arguments else table())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
