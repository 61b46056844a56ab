"""`jax.typing`: unions that `|` combines with names of types as well, as libraries do: `ArrayLike | "MyType"`."""

from __future__ import annotations

from typing import Union

import numpy as np

from functorch_like import typing
from functorch_like.jax_alias.modules.arrays import Array

__all__ = ["ArrayLike", "DTypeLike"]

# `Array` under JAX's names has tracers among its instances, too, as libraries expect of `isinstance(x, ArrayLike)`.
# NumPy's scalars are named by kind: libraries that check types derive one annotation from each member.
ArrayLike = Union[Array, np.ndarray, np.bool_, np.number, bool, int, float, complex]  # noqa: UP007
DTypeLike = Union[typing.DTypeLike.__args__]  # type: ignore[name-defined]  # noqa: UP007
