"""`jax.errors`: JAX's names of errors."""

from __future__ import annotations

from functorch_like import errors
from functorch_like.backends.xla import JaxRuntimeError
from functorch_like.errors import BoundsError, ConcretizationError, DtypeError, FtError, LeakError, UnsupportedError

__all__ = ["JaxRuntimeError"]

ConcretizationTypeError = ConcretizationError
UnexpectedTracerError = LeakError
JAXIndexError = BoundsError
JAXTypeError = FtError
JaxprTypeError = DtypeError
KeyReuseError = errors.KeyReuseError


class InconclusiveDimensionOperation(UnsupportedError):
    """Never raised: there are no symbolic sizes."""
