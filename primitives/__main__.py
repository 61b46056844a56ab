"""`python -m functorch_like.primitives [name ...]` prints the table of primitives, or some of its rows in full.

A column is marked x where it holds a rule and - where it says No; of named rows the reasons are printed too. The dtypes
are those of the operands that the row is tested with, by kind: f floating point, c complex, i and u integers signed and
unsigned, b bool. The platforms are those that it lowers for; * marks a lowering that is not the same on all of them.
"""

from __future__ import annotations

import sys

from functorch_like import core
from functorch_like.backends import xla
from functorch_like.core import COLUMNS, TABLE, No, Primitive, Sample, aval_of
from functorch_like.errors import FtError
from functorch_like.interpreters.lower import lower
from functorch_like.interpreters.stage import stage
from functorch_like.primitives import higher as higher
from functorch_like.primitives.rows import KIND

PLATFORMS = ("cpu", "gpu")


def dtypes_of(row: Primitive) -> list[str]:
    """The dtypes of the operands that the row is tested with."""
    found = {x.dtype for sample in row.samples() for x in sample.operands}
    return [d.name for d in KIND if d in found]


def kinds(row: Primitive) -> str:
    """The same by kind, a letter each."""
    names = set(dtypes_of(row))
    letters = {KIND[d] for d in KIND if d.name in names}
    return "".join(letter for letter in "fciub" if letter in letters) or "-"


def _module(row: Primitive, sample: Sample, platform: str) -> str:
    avals = [aval_of(x) if not hasattr(x, "weak_type") else x for x in sample.operands]
    apply = lambda *xs: (lambda out: list(out) if row.multiple else [out])(row(*xs, **sample.params))
    jaxpr, _ = stage(apply, avals, name=row.name, parent=core.EVALUATE)
    return xla.module_text(lower(jaxpr, name=row.name, platform=platform).module)


def platforms(row: Primitive) -> str:
    """Where it lowers, with a star if not alike; nothing where it lowers nowhere by itself."""
    texts: dict[str, list[str]] = {}
    for platform in PLATFORMS:
        try:
            texts[platform] = [_module(row, sample, platform) for sample in row.samples()]
        except FtError:
            continue
    if not any(texts.values()):
        return "-"
    alike = len({tuple(made) for made in texts.values()}) == 1
    return " ".join(texts) + ("" if alike else " *")


def table() -> str:
    """All rows: name, family, which columns are filled, dtypes and platforms."""
    lines: list[tuple[str, ...]] = [("primitive", "family", *COLUMNS, "samples", "dtypes", "platforms")]
    for row in sorted(TABLE.values(), key=lambda row: (row.family, row.name)):
        marks = ("-" if isinstance(getattr(row, column), No) else "x" for column in COLUMNS)
        lines.append((row.name, row.family, *marks, str(len(row.samples())), kinds(row), platforms(row)))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([*text, f"{len(TABLE)} rows"])


def describe(name: str) -> str:
    """One row: where it stands, and each column or why it is empty."""
    row = TABLE[name]
    lines = [f"{row.name} ({row.where})"]
    for column in COLUMNS:
        cell = getattr(row, column)
        lines.append(f"  {column}: {cell}" if isinstance(cell, No) else f"  {column}: a rule")
    lines.append(f"  dtypes: {', '.join(dtypes_of(row)) or 'none'}")
    lines.append(f"  platforms: {platforms(row)}")
    return "\n".join(lines)


def main(names: list[str]) -> int:
    """Print; names that are no rows are an error."""
    unknown = [name for name in names if name not in TABLE]
    if unknown:
        print(f"no such primitive: {', '.join(unknown)}", file=sys.stderr)
        return 2
    print("\n".join(map(describe, names)) if names else table())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
