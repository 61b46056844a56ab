"""Trees of paths as text."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from functorch_like.errors import ArgumentError
from functorch_like.transforms.paths.following import Guard
from functorch_like.transforms.paths.programs import PathProgram
from functorch_like.transforms.paths.tree import Node, Tree
from functorch_like.transforms.paths.words import Words, value_of

#: Remedy for loops that count in Python.
LOOP = "loop with lax.while_loop or lax.fori_loop; or count in an array (n = fnp.int32(0); n += 1)"

_WIDEST = 12  # children of a guard that are shown
_LONG = 64  # guards at one line
_RUN = 8  # guards in a row of which all are shown; of more, the first and the last


def tree_text(tree: Tree, runs_as: str = "") -> str:
    """Return the paths of a signature, a line for each guard and its value."""
    title = f"{tree.name}({', '.join(map(repr, tree.call.avals))}): {count(len(tree.leaves), 'path')}"
    title += f", {count(tree.traces, 'trace')}, {count(tree.wrong, 'wrong guess', 'es')}"
    return "\n".join([title + (f", runs as {runs_as}" if runs_as else ""), *_lines(tree.root, "  ")])


def count(n: int, noun: str, plural: str = "s") -> str:
    """Return a number with its noun, in the plural where needed."""
    return f"{n} {noun}{'' if n == 1 else plural}"


def _lines(node: Node | None, indent: str) -> Iterable[str]:
    run: list[str] = []  # guards of which one value each is known
    while node is not None:
        children = list(node.children.items())
        if len(children) == 1:
            words, node = children[0]
            run.append(indent + _decision(node, words))
            continue
        yield from _shortened(run, indent)
        if node.guard is None:
            total = sum(len(n.equations) for n in node.path())
            results = ", ".join(repr(a.aval) for a in node.outputs or ()) or "()"
            yield f"{indent}-> {results} ({count(total, 'equation')})"
            return
        if not children:
            yield f"{indent}-> on, as from the same state before"
        for words, child in children[:_WIDEST]:
            yield indent + _decision(child, words)
            yield from _lines(child, indent + "  ")
        if len(children) > _WIDEST:
            yield f"{indent}... and {len(children) - _WIDEST} values more"
        return


def _shortened(run: list[str], indent: str) -> list[str]:
    if len(run) <= _RUN:
        return run
    return [*run[: _RUN - 3], f"{indent}... {len(run) - _RUN + 1} more", *run[-2:]]


def _decision(child: Node, words: Words) -> str:
    guard = child.parent.guard if child.parent is not None else None
    return "" if guard is None else f"{guard.what}({guard.var.aval!r}) is {_shown(guard, words)} at {_line(guard)}"


def _shown(guard: Guard, words: Words) -> Any:
    return value_of(words, guard.var.aval).tolist()


def _line(guard: Guard) -> str:
    return guard.line.short if guard.line is not None else "?"


def line_of(leaf: Node, form: PathProgram) -> str:
    """Return the line of the loop of a rolled program."""
    guard = leaf.path()[form.loop.first].guard if form.loop is not None else None
    return "" if guard is None else _line(guard)


def decisions(leaf: Node) -> str:
    """Return the guards of one path in a line."""
    guards = [n.parent.guard for n in leaf.path() if n.parent is not None]
    texts = [f"{_line(g)} {_shown(g, w)}" for g, w in zip(guards, leaf.decisions(), strict=True) if g is not None]
    return ", ".join(texts if len(texts) < 6 else [*texts[:4], f"... {len(texts) - 5} more", texts[-1]])


def too_many(tree: Tree, limit: int) -> ArgumentError:
    """Return the error for a function with more paths than it may have."""
    return ArgumentError(
        f"{tree.name} has taken more than {limit} paths, and each is a program of its own:\n{tree_text(tree)}",
        fix=f"{_remedy(tree)}; or allow more: jit(control_flow='paths', max_paths={4 * limit})",
    )


def _remedy(tree: Tree) -> str:
    """Return the function of lax for the widest guard, or for the longest repetition."""
    guards = [n for leaf in tree.leaves for n in leaf.path() if n.guard is not None]
    widest = max(guards, key=lambda n: len(n.children))
    guard = widest.guard
    assert guard is not None
    if guard.what != "bool":
        where = f"{guard.what}() at {_line(guard)} has had {count(len(widest.children), 'value')}"
        return f"{where}: keep computing with the array, pad to a fixed size, or choose with lax.switch"
    lines = [_line(n.guard) for n in tree.leaves[-1].path() if n.guard is not None]
    most = max(lines, key=lines.count)
    if lines.count(most) > 2:
        return f"the loop at {most} is lax.while_loop or lax.fori_loop"
    return f"the branch at {most} is lax.cond or fnp.where"


def widest(tree: Tree) -> str:
    """Return the line at which most conditions are."""
    lines = [_line(n.guard) for leaf in tree.leaves for n in leaf.path() if n.guard is not None]
    return max(lines, key=lines.count, default="?")


def warn_of_length(leaf: Node, tree: Tree) -> None:
    """Warn of a loop that is unrolled into one long program."""
    lines = [_line(n.guard) for n in leaf.path() if n.guard is not None]
    most = max(lines, key=lines.count, default="")
    if lines.count(most) > _LONG:
        warnings.warn(
            f"{tree.name}: a loop with {lines.count(most)} guards at {most} is one unrolled program, and compiles for "
            "long; count its steps in an array (n = fnp.int32(0); n += 1), which lets jit find the loop, or write it "
            "as lax.while_loop or lax.fori_loop",
            stacklevel=2,
        )


def breaks(trees: Iterable[Tree]) -> list[tuple[str, str, int, int]]:
    """Return for each line with guards the conversion, and the numbers of its values and of paths through it."""
    result: dict[tuple[str, str], tuple[set[Words], int]] = {}
    for tree in trees:
        for leaf in tree.leaves:
            for node in leaf.path()[1:]:
                guard = node.parent.guard if node.parent is not None else None
                if guard is not None:
                    values, count = result.setdefault((_line(guard), guard.what), (set(), 0))
                    values.add(node.words)
                    result[_line(guard), guard.what] = values, count + 1
    return [(line, what, len(values), count) for (line, what), (values, count) in result.items()]
