"""`jax.typing`: unions that `|` combines with names of types as well, as libraries do: `ArrayLike | "MyType"`."""

from __future__ import annotations

from typing import Union

import functorch_like as ft
from functorch_like import typing
from functorch_like.jax_alias.modules.arrays import Array

__all__ = ["ArrayLike", "DTypeLike"]

# `Array` under JAX's names has tracers among its instances, too, as libraries expect of `isinstance(x, ArrayLike)`.
_kinds = (Array, *(kind for kind in typing.ArrayLike.__args__ if kind is not ft.Array))
ArrayLike = Union[_kinds]  # type: ignore[valid-type]  # noqa: UP007
DTypeLike = Union[typing.DTypeLike.__args__]  # type: ignore[name-defined]  # noqa: UP007
