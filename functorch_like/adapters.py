"""Adapters by which other libraries take arrays and tracers of this package, installed when they are imported.

- einops asks backends whether a type is theirs: one is added for arrays and tracers.
- SciPy and scikit-learn update arrays by `at` of array-api-extra, of which each has a copy. It assigns in place unless
  it knows that a library's arrays never change; here it calls `x.at`.
"""

from __future__ import annotations

import types
from typing import Any

from functorch_like.core import ArrayImpl, Tracer
from functorch_like.on_import import on_import

#: The modules that hold `at`: of the library, and of the copies.
_AT = (
    "array_api_extra._at", "array_api_extra._lib._at", "scipy._lib.array_api_extra._at",
    "scipy._lib.array_api_extra._lib._at", "sklearn.externals.array_api_extra._at",
    "sklearn.externals.array_api_extra._lib._at",
)  # fmt: skip


def install() -> None:
    """Wait for the libraries. Doing it again changes nothing."""
    on_import("einops._backends", _einops)
    for name in _AT:
        on_import(name, _updates)


def _is_array(x: Any) -> bool:
    return isinstance(x, (ArrayImpl, Tracer))


def _einops(backends: types.ModuleType) -> None:
    base = getattr(backends, "NumpyBackend", None)
    if base is None:
        return

    class FunctorchLikeBackend(base):  # type: ignore[misc, valid-type]
        """The backend that einops finds among the subclasses of its own."""

        framework_name = "functorch_like"

        def __init__(self) -> None:
            import functorch_like.numpy as fnp

            self.np = fnp

        def is_appropriate_type(self, tensor: Any) -> bool:
            return _is_array(tensor)

        def from_numpy(self, x: Any) -> Any:
            return self.np.asarray(x)

        def to_numpy(self, x: Any) -> Any:
            import numpy

            return numpy.asarray(x)

    vars(backends)[FunctorchLikeBackend.__name__] = FunctorchLikeBackend  # classes know their subclasses weakly


def _updates(module: types.ModuleType) -> None:
    at = getattr(module, "at", None)
    general = getattr(at, "_op", None)
    if general is None:
        return

    def update(
        self: Any, at_op: Any, in_place_op: Any, out_of_place_op: Any, y: Any, copy: bool | None = None, xp: Any = None
    ) -> Any:
        x, index = self._x, self._idx
        if not _is_array(x) or copy is False or "Undef" in type(index).__name__:
            return general(self, at_op, in_place_op, out_of_place_op, y, copy=copy, xp=xp)
        return getattr(x.at[index], at_op.value)(y).astype(x.dtype)

    at._op = update  # type: ignore[union-attr]
