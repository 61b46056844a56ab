"""A Python function dispatched by C++: calls of a known signature run compiled without entering Python."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from functorch_like.backends.xla import client, counters, host_arguments, mapped_regions, pytree
from functorch_like.backends.xla.jaxlib_api import _jax
from functorch_like.errors import FtError

PjitFunction = _jax.PjitFunction
Miss = Callable[..., tuple[Any, Any, bool]]

# Shared by all functions, so that memory is bounded for the process: the least recently used entry goes first, and
# only costs its function one more miss.
# A small program takes 0.3 MB.
_cache = _jax.PjitFunctionCache(capacity=4096)
#: Largest number of signatures of one function. Beyond it, C++ drops all; each one still in use costs another miss.
MOST_SIGNATURES = 1024
_serial = itertools.count()
_MOST_REPEATED = 8
_finalize_error: Callable[[BaseException], BaseException | None] = lambda error: None


def on_error(finalize_error: Callable[[BaseException], BaseException | None]) -> None:
    """Set the function that edits an exception before it leaves a compiled function; its result is raised."""
    global _finalize_error
    _finalize_error = finalize_error


_clearings = 0


def clear_functions() -> None:
    """Make C++ drop every program that it runs without Python: the next call of each function comes to its `miss`."""
    global _clearings
    _clearings += 1
    _cache.clear()


def _bring(x: Any, where: Any, layout: Any) -> Any:
    """Return an argument as an array on its device; see `host_arguments.bring`."""
    try:
        return host_arguments.bring(x, where, layout)
    except FtError as error:
        raise _finalize_error(error) or error from None


def function(
    name: str,
    fun: Callable[..., Any] | None,
    miss: Miss,
    again: Callable[[tuple[Any, ...], dict[str, Any]], tuple[Any, Any, bool] | None] | None = None,
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    checks_order: Callable[[], bool] | None = None,
    compiles: bool = True,
) -> Any:
    """Return a callable: C++ runs the program of each signature it has seen, and calls `miss` for the others.

    Args:
        name: its name in profiles.
        fun: the function it stands for; held weakly.
        miss: gets the arguments of the call and returns `(out, fastpath, remove)`. From
            then on, C++ runs `fastpath` (see `Executable.fastpath`) for this signature; with None it calls `miss` each
            time. If `remove` is True, nothing is stored.
        again: called before `miss`, with the arguments as a tuple and a dictionary; returns None if it has no result.
        static_argnums: positions of arguments compared by hash and ==, not by signature.
        static_argnames: likewise by name.
        checks_order: see `host_arguments.marked`.
        compiles: whether `miss` may compile programs, so that there must be room for them.
    """

    handed = 0  # fast paths given to C++ since those of this function were last dropped,
    clearings = _clearings  # or those of all functions

    def cache_size() -> int:
        made = itself()
        return 0 if made is None else made._cache_size()

    def forget() -> None:
        nonlocal handed
        handed = 0
        made = itself()
        if made is not None:
            made._clear_cache()

    def guarded(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
        nonlocal handed, clearings
        counters.misses += 1
        try:
            client.check_not_forked()
            if compiles:
                mapped_regions.make_room()
            if again is not None:
                result = again(args, kwargs)
                if result is not None:
                    return result
            result = miss(*args, **kwargs)
            # TRAP: anything but a tuple crashes 0.10 and becomes a wrong object on later versions.
            if type(result) is not tuple or len(result) != 3:
                raise TypeError(f"the miss of {name!r} must return (out, fastpath, remove), got {result!r:.100}")
            if result[1] is not None:
                dynamic = [a for i, a in enumerate(args) if i not in static_argnums]
                named = {k: v for k, v in kwargs.items() if k not in static_argnames}
                leaves = pytree.flatten((dynamic, named))[0]
                result = (result[0], host_arguments.marked(result[1], leaves, checks_order), result[2])
            if clearings != _clearings:
                handed, clearings = 0, _clearings
            # An interrupt before this `try` also leaves an entry behind (see below). C++ then takes no fast path,
            # although one is returned again and again.
            handed += result[1] is not None and not result[2]
            size = cache_size()
            if size >= MOST_SIGNATURES or handed > max(_MOST_REPEATED, 2 * size):
                forget()
            return result
        except BaseException as error:
            # TRAP: an exception leaves an entry behind that goes to Python for ever after, even once calls succeed.
            forget()
            # TRAP: for a tree that is too deep, C++ calls `guarded` with the error set, and its first call in C fails.
            deep = isinstance(error, (SystemError, RecursionError))
            refused = pytree.refused(error, name, args, kwargs) if deep else error
            raised = _finalize_error(refused) or refused
            if raised is not error:
                raise raised from None
            raise

    # TRAP: entries are shared by functions with the same `fun` and key, whatever their name and miss; so number them.
    made = _jax.pjit(
        name,
        fun,
        guarded,
        list(static_argnums),
        list(static_argnames),
        ("functorch_like", next(_serial)),
        pytree.registry,
        _bring,
        _cache,
    )
    itself = weakref.ref(made)  # not `made` itself, which would be a cycle
    return made
