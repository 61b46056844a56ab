"""Kernel libraries that this jaxlib's XLA can use on CPUs, found by compiling a small program."""

from __future__ import annotations

from typing import Any

from functorch_like.backends.settings import Setting
from functorch_like.backends.xla import probe


class Library(Setting[Any]):
    """A setting of a library; it has no effect where this jaxlib came without it.

    Args:
        needs: the compile options that show whether it is there.
        about: as for `Setting`.
    """

    def __init__(self, *args: Any, needs: dict[str, Any], library: str, **about: Any) -> None:
        super().__init__(*args, elsewhere={"gpu": "it is about CPUs"}, **about)
        self._needs, self._library = needs, library

    def effect(self, platform: str) -> str:
        if platform == "cpu" and not probe.accepts(self._needs):
            return f"this jaxlib's XLA came without {self._library}"
        return super().effect(platform)
