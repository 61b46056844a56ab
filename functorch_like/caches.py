"""Registry of all caches between calls, for `clear_caches`.

Each dictionary of traces or programs is a `Cache`. Values derived from a jaxpr are kept on that jaxpr, and go with it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.backends.xla import mapped_regions, memory

K = TypeVar("K")
V = TypeVar("V")
Kept = TypeVar("Kept")

#: Everything that `clear_caches` clears, by identity: dictionaries have no hash.
_kept: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


#: Functions that clear memos.
_memos: list[Callable[[], object]] = []


class Cache(dict[K, V]):
    """A dictionary that `clear_caches` empties. Where users decide how many keys there are, `keep` bounds it."""

    __slots__ = ("__weakref__",)

    def __init__(self) -> None:
        super().__init__()
        known(self)

    def keep(self, key: K, value: V, most: int) -> None:
        """Store a value; where there are `most` already, without the quarter of them that was stored first."""
        if len(self) >= most:
            for oldest in list(self)[: most // 4 + 1]:  # a list at once: other threads may store meanwhile
                self.pop(oldest, None)
        self[key] = value


def known(kept: Kept) -> Kept:
    """Let `clear_caches` call `kept.clear()`; returns `kept`."""
    _kept[id(kept)] = kept
    return kept


def cleared(memo: Kept) -> Kept:
    """Let `clear_caches` clear a function with `functools.lru_cache` whose arguments users choose; returns it."""
    _memos.append(memo.cache_clear)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    return memo


def clear_caches() -> None:
    """Forget everything traced and compiled in this process: traces, derivatives of them, programs, eager kernels.

    The memory goes back to the system, as far as the C library can return it.

    Functions keep working, and are traced and compiled anew when they are called. Objects that you hold stay as they
    are: the `Lowered` and `Compiled` that `jit(f).lower(...)` gave, jaxprs, maps of `linearize`. So does the cache on
    disk (`ft.backends.cache`), from which programs are loaded again instead of compiled.

    To forget the traces of one function there is `jit(f).clear_cache()`.

    >>> import functorch_like as ft
    >>> f = ft.jit(lambda x: x + 1)
    >>> y = f(1.0)
    >>> ft.clear_caches()
    >>> ft.explain(f)(1.0).count("trace")
    1
    """
    for reference in _kept.valuerefs():
        cache = reference()
        if cache is not None:
            cache.clear()
    for clear in _memos:
        clear()
    xla.clear_functions()
    memory.clear()
    memory.give_back()
    ShapedArray.forget_unused()


mapped_regions.on_crowded(clear_caches)
