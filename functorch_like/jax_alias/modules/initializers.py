"""`jax.nn.initializers`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

from functorch_like.jax_alias.modules.sharding import with_out_sharding
from functorch_like.nn import initializers


class Initializer(Protocol):
    """A function that draws an array of a shape."""

    def __call__(self, key: Any, shape: Any, dtype: Any = ..., out_sharding: Any = ...) -> Any:
        """Return the array."""


_MAKERS = (
    "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "kaiming_normal",
    "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal", "orthogonal", "truncated_normal", "uniform",
    "variance_scaling", "xavier_normal", "xavier_uniform",
)  # fmt: skip


def _placing(maker: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that makes initializers return those that take `out_sharding`."""

    @functools.wraps(maker)
    def made(*args: Any, **kwargs: Any) -> Any:
        return with_out_sharding(maker(*args, **kwargs))

    made.__module__ = "jax.nn.initializers"
    return made


for _name in _MAKERS:
    globals()[_name] = _placing(getattr(initializers, _name))
del _name
