"""A Python function dispatched by C++: calls of a known signature run compiled without entering Python."""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like.backends.xla import client, counters, nesting, pytree
from functorch_like.backends.xla.jaxlib_api import VERSION, _jax

PjitFunction = _jax.PjitFunction
Miss = Callable[..., tuple[Any, Any, bool]]

# Shared by all functions, so that memory is bounded for the process: the least recently used entry goes first, and
# only costs its function one more miss.
# A small program takes 0.3 MB.
_cache = _jax.PjitFunctionCache(capacity=4096)
#: Of one function. Beyond, C++ forgets all of them; those still in use come back at the price of a miss.
MOST_SIGNATURES = 1024
_serial = itertools.count()
_MOST_REPEATED = 8
_polish: Callable[[BaseException], BaseException | None] = lambda error: None


def on_error(polish: Callable[[BaseException], BaseException | None]) -> None:
    """What is done to an exception that leaves a compiled function, before it, or what this returns, is raised."""
    global _polish
    _polish = polish


def clear_functions() -> None:
    """Make C++ forget every program that it runs without Python: the next call of each function comes to its `miss`."""
    _cache.clear()


def _no_fallback(*args: Any) -> Any:
    raise RuntimeError("an argument with no way to the device reached a compiled function")  # many devices only


def function(
    name: str,
    fun: Callable[..., Any] | None,
    miss: Miss,
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
) -> Any:
    """A callable that C++ answers by itself for every signature it has seen, and `miss` for the others.

    Args:
        name: what C++ calls it in profiles.
        fun: what it stands for; held weakly.
        miss: gets the arguments of the call and returns `(out, fastpath, remove)`. `fastpath` (see
            `Executable.fastpath`) is what C++ will run from now on for this signature; with None it will always ask
            `miss` again, unless `remove` is True, which stores nothing at all.
        static_argnums: positions of arguments compared by hash and ==, not by signature.
        static_argnames: likewise by name.
    """

    handed = 0  # fast paths given to C++ since it last forgot those of this function

    def kept() -> int:
        made = itself()
        return 0 if made is None else made._cache_size()

    def forget() -> None:
        nonlocal handed
        handed = 0
        made = itself()
        if made is not None:
            made._clear_cache()

    def guarded(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
        nonlocal handed
        counters.misses += 1
        try:
            client.check_not_forked()
            result = miss(*args, **kwargs)
            # TRAP: anything but a tuple crashes 0.10 and becomes a wrong object on later versions.
            if type(result) is not tuple or len(result) != 3:
                raise TypeError(f"the miss of {name!r} must return (out, fastpath, remove), got {result!r:.100}")
            if result[1] is not None and _reads_late(args, kwargs):
                return result[0], None, result[2]
            # So does an interrupt ahead of this `try`. Then fast paths are handed over again and again, in vain.
            handed += result[1] is not None and not result[2]
            size = kept()
            if size >= MOST_SIGNATURES or handed > max(_MOST_REPEATED, 2 * size):
                forget()
            return result
        except BaseException as error:
            # TRAP: an exception leaves an entry behind that goes to Python for ever after, even once calls succeed.
            forget()
            # TRAP: for a tree that is too deep, C++ comes here with the error set, and the first call in C fails.
            deep = isinstance(error, (SystemError, RecursionError))
            refused = error
            if deep:
                one_level = pytree.flatten_one_level_with_keys
                refused = nesting.refused(error, one_level, (args, kwargs), names=("args", "kwargs"))
            told = _polish(refused) or refused
            if told is not error:
                raise told from None
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
        _no_fallback,
        _cache,
    )
    itself = weakref.ref(made)  # not `made` itself, which would be a cycle
    return made


# TRAP: an asynchronous client takes aligned NumPy memory as it is and returns before it was read; and 0.10 copies large
# unaligned arrays in the background whatever the client. What the caller writes after the call would be computed with.
# Below these sizes in bytes C++ may have NumPy arrays; above, Python copies them first, in every call.
_NUMPY_LIMIT: float = 0 if client.CPU_ASYNC else 2**15 if VERSION < (0, 11) else math.inf


def _reads_late(args: Any, kwargs: Any) -> bool:
    """Whether C++ might still read the caller's NumPy memory after the call."""
    if math.inf == _NUMPY_LIMIT:
        return False
    try:
        leaves = pytree.flatten((args, kwargs))[0]
    except ValueError:  # static arguments may be anything
        return True
    return any(isinstance(leaf, np.ndarray) and leaf.nbytes > _NUMPY_LIMIT for leaf in leaves)
