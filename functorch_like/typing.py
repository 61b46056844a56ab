"""Types for annotations: what functions take as arrays, and as dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from functorch_like.core import Array

__all__ = ("ArrayLike", "DTypeLike")


@runtime_checkable
class SupportsDType(Protocol):
    """Has a dtype, such as the names of dtypes: `fnp.float32`."""

    @property
    def dtype(self) -> Any:
        """The dtype."""
        ...


if TYPE_CHECKING:
    ArrayLike: TypeAlias = Array | np.ndarray[Any, Any] | np.generic | bool | int | float | complex
    DTypeLike: TypeAlias = str | type[Any] | np.dtype[Any] | SupportsDType
else:
    #: Arrays, traced or not, NumPy's arrays and scalars, Python's numbers. Lists are none: convert with fnp.asarray.
    ArrayLike = Array | np.ndarray | np.generic | bool | int | float | complex
    #: Names, scalar types, dtypes, and what has one.
    DTypeLike = str | type | np.dtype | SupportsDType
