"""Adapters that let other libraries take arrays and tracers of this package. Each takes a module of the library.

- einops chooses a backend by the type of an array: `einops_backend` adds one for arrays and tracers.
- SciPy and scikit-learn update arrays by `at` of array-api-extra, of which each has a copy. It assigns in place
  except for libraries that it lists as immutable. `out_of_place_updates` makes it call `x.at`.

`array_methods` names the modules; this file is imported after the first of them.
"""

from __future__ import annotations

import enum
import types
from typing import Any

from functorch_like.core import ArrayImpl, Tracer


def _is_array(x: Any) -> bool:
    return isinstance(x, (ArrayImpl, Tracer))


def einops_backend(backends: types.ModuleType) -> None:
    """Add a backend for arrays and tracers to einops."""
    base = getattr(backends, "NumpyBackend", None)
    if base is None:
        return

    class FunctorchLikeBackend(base):  # type: ignore[misc, valid-type]
        """Backend of einops, which finds it among the subclasses of its base class."""

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

    vars(backends)[FunctorchLikeBackend.__name__] = FunctorchLikeBackend  # classes refer to subclasses weakly


def out_of_place_updates(module: types.ModuleType) -> None:
    """Let `at` of array-api-extra call `x.at` for arrays and tracers."""
    at = getattr(module, "at", None)
    general = getattr(at, "_op", None)
    if general is None:
        return

    def update(self: Any, operation: Any, *operands: Any, copy: bool | None = None, **options: Any) -> Any:
        x, index = self._x, self._idx
        if not _is_array(x) or copy is False or isinstance(index, enum.Enum):  # an enum: no index was given
            return general(self, operation, *operands, copy=copy, **options)
        return getattr(x.at[index], operation.value)(operands[-1]).astype(x.dtype)

    at._op = update  # type: ignore[union-attr]
