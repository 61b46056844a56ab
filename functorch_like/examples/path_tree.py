"""A drawing of the paths of a function that `jit(control_flow="paths")` follows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GUARD = re.compile(r"(?P<what>\w+)\(.*?\) is (?P<value>.*) at (?P<line>.*)")


class Stop(NamedTuple):
    """A guard, or the end of a path.

    Attributes:
        label: the line of the guard, or the result.
        roads: the values that the guard has had, and where each leads.
    """

    label: str
    roads: list[tuple[str, Stop]]


def read(tree: str) -> Stop:
    """Return the tree that one text of `f.paths().trees` prints: lines with deeper ones below them are branches.

    Args:
        tree: the text.
    """
    return _read([((len(line) - len(line.lstrip())) // 2, line.strip()) for line in tree.splitlines()[1:]])


def _read(lines: list[tuple[int, str]]) -> Stop:
    depth, text = lines[0]
    guard = _GUARD.match(text)
    if guard is None and len(lines) == 1:
        return Stop(text.removeprefix("-> "), [])
    if len(lines) > 1 and lines[1][0] == depth:  # one value of this guard is known, and the rest is behind it
        road = guard["value"] if guard else ""
        return Stop(guard["line"] if guard else text, [(road, _read(lines[1:]))])
    starts = [i for i, (other, _) in enumerate(lines) if other == depth]
    ends = [*starts[1:], len(lines)]
    roads = [(_value(lines[i][1]), _read(lines[i + 1 : end])) for i, end in zip(starts, ends, strict=True)]
    return Stop(guard["line"] if guard else text, roads)


def _value(text: str) -> str:
    guard = _GUARD.match(text)
    return guard["value"] if guard else text


def draw(axes: Axes, tree: str) -> None:
    """Draw the tree that one text of `f.paths().trees` prints, its root on top.

    Args:
        axes: to draw on.
        tree: the text.
    """
    _draw(axes, read(tree), 0, 0.0)
    axes.margins(0.15)
    axes.axis("off")


def _draw(axes: Axes, stop: Stop, depth: int, left: float) -> tuple[float, float]:
    """Draw a stop and the subtree below it, from `left` on; return its position and the next free one."""
    box = {"boxstyle": "round", "fc": "#dceefb" if stop.roads else "#e3f4df", "ec": "#888888"}
    if not stop.roads:
        axes.text(left, -depth, stop.label, ha="center", va="center", fontsize=8, bbox=box)
        axes.plot(left, -depth)
        return left, left + 1
    middles, following = [], left
    for _, below in stop.roads:
        middle, following = _draw(axes, below, depth + 1, following)
        middles.append(middle)
    here = sum(middles) / len(middles)
    for (value, _), middle in zip(stop.roads, middles, strict=True):
        axes.plot([here, middle], [-depth, -depth - 1], color="#888888", linewidth=1, zorder=0)
        axes.text(
            (here + middle) / 2, -depth - 0.5, value, ha="center", va="center", fontsize=8, backgroundcolor="white"
        )
    axes.text(here, -depth, stop.label, ha="center", va="center", fontsize=8, bbox=box)
    return here, following
