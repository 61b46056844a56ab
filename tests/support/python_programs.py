"""Random Python programs as source text, with branches, loops, breaks, early returns and helpers."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

_FILES = itertools.count()
NAMES = ("x", "y", "z")
_COMPARISONS = ("<", ">", "<=", ">=", "==")


def expressions(depth: int = 2) -> st.SearchStrategy[str]:
    """Return a strategy of expressions that are exact in float32, so that no rounding depends on the compiler."""
    leaves = st.sampled_from((*NAMES, "1.0", "2.0", "0.5", "k", "n"))
    if depth == 0:
        return leaves
    inner = expressions(depth - 1)
    binary = st.builds("({} {} {})".format, inner, st.sampled_from("+-"), inner)
    return st.one_of(leaves, binary, st.builds("abs({})".format, inner), st.builds("clip({})".format, inner))


def conditions() -> st.SearchStrategy[str]:
    simple = st.builds("{} {} {}".format, expressions(1), st.sampled_from(_COMPARISONS), expressions(1))
    simple = st.one_of(
        simple,
        st.builds("truth({})".format, simple),
        st.builds("k {} {}".format, st.sampled_from("<>"), st.integers(0, 2)),
    )
    both = st.builds("{} {} {}".format, simple, st.sampled_from(("and", "or")), simple)
    return st.one_of(simple, simple, both, st.builds("not ({})".format, both))


@st.composite
def blocks(draw: Any, depth: int, loops: int, indent: str) -> list[str]:
    """Draw the lines of a block, with `break` and `continue` inside loops."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        lines += draw(statements(depth, loops, indent))
    return lines


@st.composite
def statements(draw: Any, depth: int, loops: int, indent: str) -> list[str]:
    kinds = ["assign", "assign", "count", "swap", "item", "choose", "call"]
    if depth:
        kinds += ["if", "if", "if", "for", "while", "return", "each"] + (["break", "continue"] if loops else [])
    kind = draw(st.sampled_from(kinds))
    inner = indent + "    "
    if kind == "assign":
        return [f"{indent}{draw(st.sampled_from(NAMES))} = clip({draw(expressions())})"]
    if kind == "count":
        return [
            indent
            + draw(
                st.sampled_from(
                    ("k += 1", "k = 0", "k = k + 2", "n = n * 0.5", "log.append(k)", "box.n = k", "k = len(log)")
                )
            )
        ]
    if kind == "swap":
        return [f"{indent}x, y = y, x"]
    if kind == "item":
        return [f"{indent}box.items[{draw(st.integers(0, 1))}] = {draw(st.sampled_from(NAMES))}"]
    if kind == "choose":
        name, (a, b) = draw(st.sampled_from(NAMES)), (draw(expressions(1)) for _ in range(2))
        return [
            f"{indent}{name} = ({a}) + (1.0 if {draw(conditions())} else ({b}))"
            if draw(st.booleans())
            else f"{indent}{name} = {a} if {draw(conditions())} else {b}"
        ]
    if kind == "call":
        name, function = draw(st.sampled_from(NAMES)), draw(st.sampled_from(("helper", "kept")))
        return [f"{indent}{name} = {function}({draw(expressions(1))}, box)"]
    if kind == "if":
        lines = [f"{indent}if {draw(conditions())}:", *draw(blocks(depth - 1, loops, inner))]
        if draw(st.booleans()):
            lines += [f"{indent}else:", *draw(blocks(depth - 1, loops, inner))]
        return lines
    if kind == "for":
        count = draw(st.sampled_from(("2", "3", "4", "k + 1", "bound")))
        return [f"{indent}for i{depth} in range({count}):", *draw(blocks(depth - 1, loops + 1, inner))]
    if kind == "each":
        return [f"{indent}for v in [x, y, 1.0]:", f"{inner}z = clip(z + v)", *draw(blocks(depth - 1, loops + 1, inner))]
    if kind == "while":
        # The test uses a name that the body does not assign, so that each loop ends.
        start, test, step = draw(
            st.sampled_from(
                (
                    ("w{} = abs(x)", "w{} > 0.5", "w{0} = w{0} * 0.5 - 0.125"),
                    ("w{} = clip(y) + 1.0", "w{} > -1.0", "w{0} = w{0} - 2.0"),
                    ("w{} = 0", "x > -2.0 and w{} < 3", "w{0} += 1"),
                )
            )
        )
        name = [text.format(depth) for text in (start, test, step)]
        body = draw(blocks(depth - 1, loops + 1, inner))
        return [indent + name[0], f"{indent}while {name[1]}:", inner + name[2], *body]
    if kind == "return":
        return [f"{indent}if {draw(conditions())}:", f"{inner}return {draw(expressions(1))} + 0.0 * x"]
    return [f"{indent}if {draw(conditions())}:", f"{inner}{kind}"]


@st.composite
def programs(draw: Any) -> str:
    """Draw the source of a function of two numbers."""
    body = draw(blocks(3, 0, "    "))
    helper = [line.replace("helper(", "kept(") for line in draw(blocks(1, 0, "    "))]
    start = ["    z, k, n, log, bound = x, 0, 1.0, [], 2", "    box = Box()"]
    return "\n".join(
        [
            "def helper(x, box):", "    y, z, k, n, log, bound = x, x, box.n, 1.0, [], 2", *helper, "    return x + z",
            "def kept(x, box):", "    if x > 1.0:", "        box.n = 1", "    else:", "        box.n += 2",
            "    if x > 2.0:", "        return x", "    return -x",
            "def program(x, y):", *start, *body,
            "    return clip(x + y + z + k + box.n + len(log) + box.items[0] + box.items[1])",
        ]
    )  # fmt: skip


class Box:
    """A mutable object."""

    def __init__(self) -> None:
        self.n, self.items = 0, [0.0, 0.0]


def made(source: str, names: dict[str, Any]) -> Callable[..., Any]:
    """Compile a source and return its `program`; errors can show the lines of the source."""
    file = f"<program {next(_FILES)}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    scope = {"Box": Box, **names}
    exec(compile(source, file, "exec"), scope)
    return scope["program"]
