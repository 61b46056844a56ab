"""`jax.stages`."""

from __future__ import annotations

from typing import Any, Protocol


class Wrapped(Protocol):
    """A jitted function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it."""

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """Lower it for arguments."""


CompilerOptions = dict[str, Any]
