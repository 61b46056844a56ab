"""Base of displays: text when printed, HTML in notebooks, colours in terminals that show them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from functorch_like.markup import terminal

if TYPE_CHECKING:
    from functorch_like.markup import elements  # made where a notebook requests HTML


class Display:
    """Something to look at. A subclass gives `layout`, and `markup` where HTML shows more."""

    def layout(self, paint: terminal.Paint = terminal.plain) -> str:
        """Return the display as text of at most 100 columns.

        Args:
            paint: gives parts of it a style.
        """
        raise NotImplementedError

    def markup(self) -> elements.Markup:
        """Return the display as HTML, without its style sheet."""
        from functorch_like.markup import elements

        return elements.element("pre", self.layout())

    def show(self) -> None:
        """Print the display, with colours where the terminal has them; in a notebook, display it."""
        show(self)

    def __str__(self) -> str:
        return self.layout()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from functorch_like.markup import elements

        return str(elements.document(self.markup()))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self.layout(terminal.paint_for(sys.stdout)))


def show(value: Any) -> None:
    """Print a display, with colours where the terminal has them; in a notebook, display it."""
    if in_notebook():
        from IPython.display import display  # a notebook has loaded it

        display(value)
    elif isinstance(value, Display):
        print(value.layout(terminal.paint_for(sys.stdout)))
    else:
        print(value)


def in_notebook() -> bool:
    """Return True in a notebook's kernel."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")
