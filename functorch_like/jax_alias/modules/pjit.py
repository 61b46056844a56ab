"""`jax.experimental.pjit`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functorch_like.jax_alias.modules.root import jit
from functorch_like.lax import with_sharding_constraint as with_sharding_constraint


def pjit(
    fun: Callable[..., Any],
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    **options: Any,
) -> Any:
    """`jit`, with the function by its name and shardings by their position, too."""
    return jit(
        fun,
        in_shardings=in_shardings,
        out_shardings=out_shardings,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        donate_argnums=donate_argnums,
        donate_argnames=donate_argnames,
        **options,
    )
