"""`jax.nn.initializers`."""

from __future__ import annotations

from typing import Any, Protocol


class Initializer(Protocol):
    """A function that draws an array of a shape."""

    def __call__(self, key: Any, shape: Any, dtype: Any = ..., out_sharding: Any = ...) -> Any:
        """Return the array."""
