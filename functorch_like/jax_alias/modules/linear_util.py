"""`jax.extend.linear_util`: functions with transformations wrapped around them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from functorch_like.errors import ArgumentError


class StoreException(ArgumentError):
    """A store was read while empty, or written while full."""


class Store:
    """A place for a value that a transformation stores while the function runs."""

    _EMPTY: Any = object()

    def __init__(self) -> None:
        self._value = self._EMPTY

    def store(self, value: Any) -> None:
        """Store the value.

        Raises:
            StoreException: where there is a value already.
        """
        if self._value is not self._EMPTY:
            raise StoreException(f"the store has a value already: {self._value!r:.60}", fix="call reset() first")
        self._value = value

    def reset(self) -> None:
        """Remove the value."""
        self._value = self._EMPTY

    @property
    def val(self) -> Any:
        """The value."""
        if self._value is self._EMPTY:
            raise StoreException("the store is empty", fix="call the transformed function first")
        return self._value


class WrappedFun:
    """A function, called by `call_wrapped`, with its fixed parameters and debug info."""

    def __init__(self, f: Callable[..., Any], params: Any = None, debug_info: Any = None) -> None:
        self.f, self.params, self.debug_info = f, dict(params or {}), debug_info
        self.__name__ = getattr(f, "__name__", "<unnamed function>")

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.f(*args, **{**self.params, **kwargs})


def wrap_init(f: Callable[..., Any], params: Any = None, *, debug_info: Any = None) -> WrappedFun:
    """Return a function that transformations can be wrapped around."""
    return WrappedFun(f, params, debug_info)


def transformation2(gen: Callable[..., Any]) -> Callable[..., WrappedFun]:
    """Return a wrapper from `gen(f, *its_own, *args, **kwargs)`, which calls `f` and returns the result."""

    @functools.wraps(gen)
    def wrap(fun: WrappedFun, *own: Any) -> WrappedFun:
        return WrappedFun(functools.partial(gen, fun.call_wrapped, *own), debug_info=fun.debug_info)

    return wrap


def transformation_with_aux2(gen: Callable[..., Any]) -> Callable[..., tuple[WrappedFun, Callable[[], Any]]]:
    """Return a wrapper from `gen(f, store, *its_own, *args, **kwargs)`, which also returns a reader of the store."""

    @functools.wraps(gen)
    def wrap(fun: WrappedFun, *own: Any) -> tuple[WrappedFun, Callable[[], Any]]:
        store = Store()
        run = functools.partial(gen, fun.call_wrapped, store, *own)
        return WrappedFun(run, debug_info=fun.debug_info), lambda: store.val

    return wrap


def transformation(gen: Callable[..., Any]) -> Callable[..., WrappedFun]:
    """Return a wrapper from a generator that yields arguments, receives results, and yields its own results."""

    @functools.wraps(gen)
    def wrap(fun: WrappedFun, *own: Any) -> WrappedFun:
        return WrappedFun(lambda *args, **kwargs: _run(gen(*own, *args, **kwargs), fun), debug_info=fun.debug_info)

    return wrap


def transformation_with_aux(gen: Callable[..., Any]) -> Callable[..., tuple[WrappedFun, Callable[[], Any]]]:
    """Return a wrapper from a generator whose last yield is a pair of results and a value to keep."""

    @functools.wraps(gen)
    def wrap(fun: WrappedFun, *own: Any) -> tuple[WrappedFun, Callable[[], Any]]:
        store = Store()

        def run(*args: Any, **kwargs: Any) -> Any:
            out, aux = _run(gen(*own, *args, **kwargs), fun)
            store.store(aux)
            return out

        return WrappedFun(run, debug_info=fun.debug_info), lambda: store.val

    return wrap


def _run(steps: Any, fun: WrappedFun) -> Any:
    args, kwargs = next(steps)
    return steps.send(fun.call_wrapped(*args, **kwargs))


def merge_linear_aux(first: Callable[[], Any], second: Callable[[], Any]) -> tuple[bool, Any]:
    """Return which of two stores was filled, and its value."""
    try:
        return True, first()
    except StoreException:
        return False, second()


def cache(call: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Return the function unchanged: nothing is cached."""
    return call
