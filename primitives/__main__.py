"""`python -m functorch_like.primitives [name ...]` prints the table of primitives, or some of its primitives in full.

For each rule, x marks that it is defined and - that it is NotDefined; for named primitives the reasons are printed too.
The dtypes are those of the operands that the primitive is tested with, by kind: f floating point, c complex, i and u
integers signed and unsigned, b bool. The platforms are those for which it has a lowering; * marks a lowering that is
not the same on all of them, and + one that has alternatives on CPUs.

`--markdown FILE` writes the page of the documentation.
"""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path

from functorch_like import core, interrupts
from functorch_like.backends import xla
from functorch_like.compiler.lower import lower
from functorch_like.core import RULES, TABLE, NotDefined, Primitive, SampleInput, aval_of
from functorch_like.errors import FtError
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives import load
from functorch_like.primitives.base.elementwise_makers import KIND
from functorch_like.primitives.base.lowering import alternatives_of

PLATFORMS = ("cpu", "gpu")


def builtin_primitives() -> list[Primitive]:
    """All primitives of the package, by family and name."""
    load()
    return sorted(
        (primitive for primitive in TABLE.values() if primitive.builtin),
        key=lambda primitive: (primitive.family, primitive.name),
    )


def dtypes_of(primitive: Primitive) -> list[str]:
    """The dtypes of the operands that the primitive is tested with."""
    result = {x.dtype for sample in primitive.samples() for x in sample.operands}
    return [d.name for d in KIND if d in result]


def kinds(primitive: Primitive) -> str:
    """Return the kinds of these dtypes, a letter each."""
    names = set(dtypes_of(primitive))
    letters = {KIND[d] for d in KIND if d.name in names}
    return "".join(letter for letter in "fciub" if letter in letters) or "-"


def _module(primitive: Primitive, sample: SampleInput, platform: str) -> str:
    avals = [aval_of(x) if not hasattr(x, "weak_type") else x for x in sample.operands]
    apply = lambda *xs: (lambda out: list(out) if primitive.multiple_results else [out])(
        primitive(*xs, **sample.params)
    )
    jaxpr, _ = stage(apply, avals, name=primitive.name, parent=core.EVALUATE)
    return xla.module_text(lower(jaxpr, name=primitive.name, platform=platform).module)


def platforms(primitive: Primitive) -> str:
    """Return the platforms that it lowers for, with a star if its lowerings differ; "" if it has no lowering."""
    texts: dict[str, list[str]] = {}
    for platform in PLATFORMS:
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # a `probe` prints when one of its rules is called
                texts[platform] = [_module(primitive, sample, platform) for sample in primitive.samples()]
        except FtError:
            continue
    if not any(texts.values()):
        return "-"
    alike = len({tuple(made) for made in texts.values()}) == 1
    return " ".join(texts) + ("" if alike else " *") + (" +" if alternatives_of(primitive.lower) else "")


def table() -> str:
    """Return the table of all primitives: name, family, rules that are defined, dtypes and platforms."""
    lines: list[tuple[str, ...]] = [("primitive", "family", *RULES, "samples", "dtypes", "platforms")]
    for primitive in builtin_primitives():
        marks = ("-" if isinstance(getattr(primitive, rule), NotDefined) else "x" for rule in RULES)
        lines.append(
            (
                primitive.name,
                primitive.family,
                *marks,
                str(len(primitive.samples())),
                kinds(primitive),
                platforms(primitive),
            )
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([*text, f"{len(lines) - 1} primitives"])


def describe(name: str) -> str:
    """Return the facts of one primitive: its file, each rule or the reason why it has none, its alternatives."""
    primitive = TABLE[name]
    lines = [f"{primitive.name} ({primitive.where})"]
    for rule in RULES:
        value = getattr(primitive, rule)
        lines.append(f"  {rule}: {value}" if isinstance(value, NotDefined) else f"  {rule}: a rule")
    lines.append(f"  dtypes: {', '.join(dtypes_of(primitive)) or 'none'}")
    lines.append(f"  platforms: {platforms(primitive)}")
    lines += [f"  on CPUs, {a.limits}: {a.name}" for a in alternatives_of(primitive.lower)]
    return "\n".join(lines)


# ------------------------------------------------------------------------------------------------------- documentation
_HEAD = """# Primitives

<!-- Written by `python -m functorch_like.primitives --markdown docs/primitives.md`; a test compares. -->

Everything that functorch_like computes is made of these primitives. Each has its meaning in NumPy, the shapes it
gives, how it lowers, differentiates forwards (jvp), transposes and batches. Where a primitive has no
rule, the reason stands below the table. The dtypes are those that its tests use: f floating point, c complex, i and u
integers signed and unsigned, b bool. A star marks a lowering that is not the same on all platforms.
"""
_FORMS = """## Alternatives on CPUs

Lowerings that XLA:CPU runs faster than the standard ones. `backends.cpu.fast_lowerings` turns them off,
all or by primitive.
"""
_EMPTY = """## Rules that are not defined
"""


def markdown() -> str:
    """The page of the documentation."""
    lines = [_HEAD, "| primitive | family | rules | dtypes | platforms |", "|---|---|---|---|---|"]
    forms, reasons = ["", _FORMS, "| primitive | for | form |", "|---|---|---|"], ["", _EMPTY]
    for primitive in builtin_primitives():
        empty = [rule for rule in RULES if isinstance(getattr(primitive, rule), NotDefined)]
        filled = "all" if not empty else f"all but {', '.join(empty)}"
        where = platforms(primitive).removesuffix(" +").replace("*", "\\*")
        lines.append(f"| {primitive.name} | {primitive.family} | {filled} | {kinds(primitive)} | {where} |")
        forms += [f"| {primitive.name} | {a.limits} | {a.name} |" for a in alternatives_of(primitive.lower)]
        reasons_of: dict[str, list[str]] = {}
        for rule in empty:
            reasons_of.setdefault(getattr(primitive, rule), []).append(rule)
        reasons += [f"- **{primitive.name}**, {', '.join(rules)}: {reason}." for reason, rules in reasons_of.items()]
    return "\n".join([*lines, *forms, *reasons]) + "\n"


def main(arguments: list[str]) -> int:
    """Print, or write; names that are not primitives are an error."""
    if arguments[:1] == ["--markdown"]:
        if len(arguments) != 2:
            print("--markdown takes the name of one file", file=sys.stderr)
            return 2
        Path(arguments[1]).write_text(markdown(), encoding="utf-8")
        return 0
    builtin_primitives()
    unknown = [name for name in arguments if name not in TABLE]
    if unknown:
        print(f"no such primitive: {', '.join(unknown)}", file=sys.stderr)
        return 2
    print("\n".join(map(describe, arguments)) if arguments else table())
    return 0


if __name__ == "__main__":
    interrupts.end_with_the_reader()
    sys.exit(main(sys.argv[1:]))
