"""Pictures in notebooks, still and moving, each with a text for those who cannot see it."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Dots per inch: a figure of 8 by 3 inches takes about 25 kB.
DPI = 80


def show(figure: Figure, alt: str) -> None:
    """Show a figure of matplotlib in the notebook, and close it.

    Args:
        figure: to be shown.
        alt: a description of it, for readers of the text alone.
    """
    file = io.BytesIO()
    figure.savefig(file, dpi=DPI)
    _display(figure, file.getvalue(), alt)


def animate(figure: Figure, draw: Callable[[Any], Any], steps: Iterable[Any], alt: str, seconds: float = 0.08) -> None:
    """Show a figure that moves, as an animated PNG, and close it. It needs no JavaScript.

    Args:
        figure: is drawn again for each step.
        draw: changes the figure to that of a step.
        steps: are given to `draw`, one after the other.
        alt: a description of it.
        seconds: for which each step is shown.
    """
    from PIL import Image

    frames = []
    for step in steps:
        draw(step)
        file = io.BytesIO()
        figure.savefig(file, dpi=DPI)
        frames.append(Image.open(file).convert("RGB"))
    # One palette for all frames: 8 bits for a dot, and unchanged dots are not stored again.
    palette = frames[len(frames) // 2].quantize(24)
    frames = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    file = io.BytesIO()
    frames[0].save(
        file, "PNG", save_all=True, append_images=frames[1:], duration=round(1000 * seconds), loop=0, optimize=True
    )
    _display(figure, file.getvalue(), alt)


def _display(figure: Figure, png: bytes, alt: str) -> None:
    import matplotlib.pyplot as plt
    from IPython.display import Image, display

    plt.close(figure)  # else the notebook shows it again at the end of the cell
    display(Image(png, format="png", alt=alt))
