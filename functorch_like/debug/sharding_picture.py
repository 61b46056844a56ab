"""Picture of a sharding: text for terminals, an HTML table for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like.errors import ShapeError
from functorch_like.markup import elements

_WIDTH = 78
_PIXELS = 360
_CELL = "border:0;padding:4px;text-align:center;vertical-align:middle;font:12px monospace;color:#111"


def check_dimensions(shape: tuple[int, ...]) -> None:
    """Refuse shapes that no picture shows.

    Raises:
        ShapeError: for other numbers of dimensions than one or two.
    """
    if len(shape) not in (1, 2):
        raise ShapeError(
            f"an array of shape {shape} has {len(shape)} dimensions",
            fix="draw arrays of one or two dimensions; see x.sharding.devices_indices_map(x.shape) for others",
        )


class Picture:
    """A grid of the parts of an array, each with the devices that have it.

    Args:
        shape: of the array, of one or two dimensions.
        where: its sharding.

    Raises:
        ShapeError: for other numbers of dimensions, or where a dimension does not divide.
    """

    def __init__(self, shape: tuple[int, ...], where: Any) -> None:
        check_dimensions(shape)
        self._shape, self._where = shape, where
        self._cells = _holders(shape, where)

    def __repr__(self) -> str:
        return _boxes(np.vectorize(_label, otypes=[object])(self._cells))

    def _repr_html_(self) -> str:
        return str(elements.document(self.markup()))

    def markup(self) -> elements.Markup:
        """Return a table for notebooks: parts on other devices have other colours."""
        every = sorted(self._where.device_set, key=lambda device: device.id)
        hue = {device: round(360 * k / len(every)) for k, device in enumerate(every)}
        rows, columns = self._cells.shape
        height = _PIXELS if len(self._shape) == 1 else _PIXELS * self._shape[0] / max(self._shape[1], 1)
        tall = 34 if len(self._shape) == 1 else max(24, min(_PIXELS, round(height)) // rows)
        wide = max(60, _PIXELS // columns)
        cell = f"{_CELL};width:{wide}px;height:{tall}px;background:"
        body = (
            elements.element(
                "tr",
                *(
                    elements.element(
                        "td", elements.breakable(_label(devices)), style=f"{cell}hsl({hue[devices[0]]},65%,78%)"
                    )
                    for devices in row
                ),
            )
            for row in self._cells
        )
        caption = f"{self._shape} {getattr(self._where, 'spec', '')!r}".replace("''", "").strip()
        return elements.element(
            "table",
            elements.element("caption", caption, style="font:12px monospace;text-align:left;color:inherit;padding:0"),
            elements.element("tbody", *body),
            style="border-collapse:separate;border-spacing:1px;max-width:none",
        )


def _holders(shape: tuple[int, ...], where: Any) -> np.ndarray[Any, Any]:
    """The devices of each part, by its place in the grid."""
    holders: dict[tuple[int, int], list[Any]] = {}
    part = where.shard_shape(shape)
    for device, index in where.devices_indices_map(shape).items():
        starts = [s.start or 0 for s in index]
        row, column = (0, *starts) if len(shape) == 1 else starts
        holders.setdefault((row, column), []).append(device)
    height = 1 if len(shape) == 1 else part[0]
    cells = np.empty((_count(shape[:-1], part[:-1]), _count(shape[-1:], part[-1:])), object)
    for (row, column), devices in holders.items():
        cells[row // max(height, 1), column // max(part[-1], 1)] = devices
    return cells


def _count(shape: Sequence[int], part: Sequence[int]) -> int:
    return int(np.prod([n // k if k else 1 for n, k in zip(shape, part, strict=True)], dtype=int))


def _label(devices: Sequence[Any]) -> str:
    return f"{devices[0].platform.upper()} {','.join(str(d.id) for d in sorted(devices, key=lambda d: d.id))}"


def _boxes(labels: np.ndarray[Any, Any]) -> str:
    inner = max(len(text) for text in labels.flat)
    inner = min(inner, max(_WIDTH // labels.shape[1] - 3, 5))
    rule = "+" + ("-" * (inner + 2) + "+") * labels.shape[1]
    lines = [rule]
    for row in labels:
        cells = [_wrapped(text, inner) for text in row]
        for k in range(max(map(len, cells))):
            lines.append("|" + "|".join(f" {(c[k] if k < len(c) else ''):^{inner}} " for c in cells) + "|")
        lines.append(rule)
    return "\n".join(lines)


def _wrapped(text: str, width: int) -> list[str]:
    import textwrap  # seldom needed

    return textwrap.wrap(text.replace(",", ", "), width) if len(text) > width else [text]
