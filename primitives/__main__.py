"""`python -m functorch_like.primitives [name ...]` prints the table of primitives, or some of its rows in full.

A column is marked x where it holds a rule and - where it says No; of named rows the reasons are printed too.
"""

from __future__ import annotations

import sys

from functorch_like.core import COLUMNS, TABLE, No
from functorch_like.primitives import higher as higher


def table() -> str:
    """All rows: name, family, and which columns are filled."""
    lines: list[tuple[str, ...]] = [("primitive", "family", *COLUMNS, "samples")]
    for row in sorted(TABLE.values(), key=lambda row: (row.family, row.name)):
        marks = ("-" if isinstance(getattr(row, column), No) else "x" for column in COLUMNS)
        lines.append((row.name, row.family, *marks, str(len(row.samples()))))
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
