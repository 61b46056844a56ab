"""`jax.typing`: unions that `|` combines with names of types as well, as libraries do: `ArrayLike | "MyType"`."""

from __future__ import annotations

from typing import Union

from functorch_like import typing

__all__ = ["ArrayLike", "DTypeLike"]

ArrayLike = Union[typing.ArrayLike.__args__]  # type: ignore[name-defined]  # noqa: UP007
DTypeLike = Union[typing.DTypeLike.__args__]  # type: ignore[name-defined]  # noqa: UP007
