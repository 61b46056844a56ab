"""Callbacks whose exceptions come out of programs as JAX's do: a JaxRuntimeError with their text.

Without the alias the exception itself comes out. Libraries look for the error and the text instead: equinox turns it
into its own, by the name of the exception in the text.
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from typing import Any

from functorch_like import debug
from functorch_like.backends.xla import JaxRuntimeError
from functorch_like.calling import host_callbacks

__all__ = ["io_callback", "pure_callback"]


class _Reporting:
    """A callback that raises JaxRuntimeError in place of its own exceptions; equal ones have equal functions."""

    def __init__(self, function: Callable[..., object]) -> None:
        self.function = function
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> object:
        try:
            return self.function(*args, **kwargs)
        except JaxRuntimeError:
            raise
        except Exception as error:
            text = "".join(traceback.format_exception(error)).rstrip()
            raise JaxRuntimeError(f"INTERNAL: CpuCallback error calling callback: {text}") from error

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reporting) and self.function == other.function

    def __hash__(self) -> int:
        return hash(self.function)


def _reporting(function: Any) -> Any:
    return _Reporting(function) if callable(function) else function  # what cannot be called is refused later


@functools.wraps(host_callbacks.pure_callback)
def pure_callback(callback: Callable[..., object], *args: Any, **options: Any) -> Any:
    """As without the alias, but for exceptions."""
    return host_callbacks.pure_callback(_reporting(callback), *args, **options)


@functools.wraps(host_callbacks.io_callback)
def io_callback(callback: Callable[..., object], *args: Any, **options: Any) -> Any:
    """As without the alias, but for exceptions."""
    return host_callbacks.io_callback(_reporting(callback), *args, **options)


@functools.wraps(debug.callback)
def debug_callback(callback: Callable[..., object], *args: Any, **options: Any) -> None:
    """As without the alias, but for exceptions."""
    debug.callback(_reporting(callback), *args, **options)
