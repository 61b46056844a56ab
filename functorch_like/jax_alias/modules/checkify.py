"""`jax.experimental.checkify`."""

from __future__ import annotations

from typing import Any

from functorch_like.checkify import check as debug_check
from functorch_like.errors import CheckError

__all__ = ["debug_check"]

JaxRuntimeError = CheckError
ErrorCategory = Any
