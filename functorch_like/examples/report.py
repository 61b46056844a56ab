"""Plain text for people: headings, tables, bars, and digits drawn with letters. Colour only where it is enabled."""

from __future__ import annotations

import math
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

import numpy as np

from functorch_like.examples.progress import encodes, is_terminal, rich_console

#: From no ink to full ink.
INK = " .:-=+*#%@"


class Report:
    """Report that is written to a stream.

    Colour is left out where the stream is not a terminal, or the environment has `NO_COLOR` (https://no-color.org).
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stdout
        self.color = is_terminal(self.stream) and not os.environ.get("NO_COLOR")
        self.bar, self.rule = ("█", "─") if encodes(self.stream, "█─") else ("#", "-")
        self.width = min(shutil.get_terminal_size((80, 24)).columns, 80)

    def _styled(self, text: str, code: str) -> str:
        return f"\033[{code}m{text}\033[0m" if self.color else text

    def strong(self, text: str) -> str:
        """Bold, where there is colour."""
        return self._styled(text, "1")

    def faint(self, text: str) -> str:
        """Dim, where there is colour."""
        return self._styled(text, "2")

    def line(self, text: str = "") -> None:
        """One line as it is."""
        print(text, file=self.stream, flush=True)

    def say(self, text: str) -> None:
        """A paragraph, filled to the width."""
        for line in textwrap.wrap(text, self.width) or [""]:
            self.line(line)

    def title(self, text: str, about: str = "") -> None:
        """A heading after an empty line: a step of the tour, and the expression for it."""
        rule = self.rule * max(0, self.width - len(text) - len(about) - 2 - bool(about))
        self.line()
        self.line(f"{self.strong(text)} {self.faint(rule)}" + (f" {self._styled(about, '36')}" if about else ""))

    def table(self, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Columns wide enough for their cells; the first to the left, the others to the right."""
        console = rich_console(self.stream)
        if console is not None:
            self._rich_table(console, header, rows)
            return
        cells = [list(header), *(list(row) for row in rows)]
        widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
        for i, row in enumerate(cells):
            padded = [
                cell.rjust(w) if j else cell.ljust(w) for j, (cell, w) in enumerate(zip(row, widths, strict=True))
            ]
            text = "  ".join(padded).rstrip()
            self.line(self.faint(text) if i == 0 else text)

    def _rich_table(self, console: Any, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for i, title in enumerate(header):
            table.add_column(title, justify="right" if i else "left")
        for row in rows:
            table.add_row(*row)
        console.print(table)

    def histogram(self, values: np.ndarray, bins: int = 8) -> None:
        """Count positive values in each decade or part of one."""
        low, high = (math.floor(math.log10(v)) for v in (max(values.min(), 1e-12), values.max()))
        low = max(low, high + 1 - bins)
        edges = 10.0 ** np.arange(low, high + 2)
        counts, _ = np.histogram(np.clip(values, edges[0], None), edges)
        room = self.width - 25
        for edge, upper, count in zip(edges[:-1], edges[1:], counts, strict=True):
            length = math.ceil(room * count / max(counts.max(), 1))
            below = "      0" if edge == edges[0] else f"{edge:7g}"
            self.line(f"{below} to {upper:<7g} {count:5d} {self._styled(self.bar * length, '36')}".rstrip())

    def images(self, images: np.ndarray, captions: Sequence[Sequence[str]]) -> None:
        """Pictures side by side, each with its lines of caption below; as many as fit the width."""
        count = max(1, self.width // 20)
        images, captions = images[:count], captions[:count]
        drawn = [drawing(image) for image in images]
        for rows in zip(*drawn, strict=True):
            self.line("    ".join(rows).rstrip())
        for texts in zip(*captions, strict=True):
            self.line("    ".join(f"{text:16.16s}" for text in texts).rstrip())


def drawing(image: np.ndarray) -> list[str]:
    """An image of values between 0 and 1 as lines of text, two letters a pixel, which makes it about square.

    >>> drawing(np.eye(2))
    ['@@  ', '  @@']
    """
    pixels = np.clip(np.asarray(image).reshape(np.shape(image)[0], -1), 0, 1)
    return ["".join(INK[round(float(v) * (len(INK) - 1))] * 2 for v in row) for row in pixels]


def duration(seconds: float) -> str:
    """Seconds in a unit that leaves one to three digits before the point.

    >>> [duration(s) for s in (4.2e-05, 0.0123, 3.21, 75.0, float("nan"))]
    ['42 us', '12 ms', '3.2 s', '75 s', '-']
    """
    if math.isnan(seconds):
        return "-"
    unit, scale = next(((u, s) for u, s in (("us", 1e-6), ("ms", 1e-3)) if seconds < 999.5 * s), ("s", 1.0))
    value = seconds / scale
    return f"{value:.1f} {unit}" if value < 9.95 else f"{value:.0f} {unit}"
