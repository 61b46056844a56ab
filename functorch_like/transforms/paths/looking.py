"""`PathsReport`, the result of `f.paths()`."""

from __future__ import annotations

from typing import Any

from functorch_like.transforms.paths import report

_WHOLE = "one program of all paths"


class PathsReport:
    """The paths of a function; prints as a tree for each signature.

    Attributes:
        trees: the text of each.
        breaks: for each line with control flow that depends on values: the line, the conversion, how many values it
            has had, and how many paths pass it.
        total: whether every path is known.
    """

    def __init__(self, name: str, paths: Any) -> None:
        branches: list[Any] = [] if paths is None else list(paths.branches.values())
        forms: list[Any] = [paths.merged(b) for b in branches] if paths is not None else []
        wholes = [f for k, f in paths.wholes.items() if k not in paths.branches] if paths is not None else []
        forms += wholes
        self.name = name
        self.trees = [report.tree_text(b.tree, _kind(paths, b)) for b in branches]
        self.trees += [report.tree_text(f.tree, _WHOLE) for f in wholes]
        self.breaks = report.breaks([*(b.tree for b in branches), *(f.tree for f in wholes)])
        self.total = bool(forms) and all(form is not None and not form.guarded for form in forms)

    def __str__(self) -> str:
        return "\n".join(self.trees) or f"{self.name}: no control flow that depends on values, so far"

    __repr__ = __str__


def _kind(paths: Any, branches: Any) -> str:
    form = paths.choose(branches, [])
    if form is None:
        return "segments"
    if form.kind == "straight":
        return "the path taken last, checked"
    return "one program, checked" if form.guarded else _WHOLE
