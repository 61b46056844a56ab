"""Registry of the caches that live between calls, for `clear_caches`.

Each dictionary of traces or programs is a `Cache`. Values derived from a jaxpr are kept on that jaxpr, and are freed
with it.
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

#: Objects that `clear_caches` clears, by identity: dictionaries have no hash.
_kept: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


#: Functions that clear memos, such as `cache_clear` of `functools.lru_cache`.
_memos: list[Callable[[], object]] = []


class Cache(dict[K, V]):
    """A dictionary that `clear_caches` empties. Where users determine the number of keys, `keep` bounds it."""

    __slots__ = ("__weakref__",)

    def __init__(self) -> None:
        super().__init__()
        known(self)

    def keep(self, key: K, value: V, most: int) -> None:
        """Store a value; for a new key, if there are `most` values already, drop the oldest quarter first."""
        if len(self) >= most and key not in self:
            for oldest in list(self)[: most // 4 + 1]:  # a list at once: other threads may store meanwhile
                self.pop(oldest, None)
        self[key] = value


def known(kept: Kept) -> Kept:
    """Register an object for `clear_caches`, which calls its `clear()`; return the object."""
    _kept[id(kept)] = kept
    return kept


def cleared(memo: Kept) -> Kept:
    """Register a function with `functools.lru_cache` for `clear_caches`; return the function."""
    _memos.append(memo.cache_clear)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    return memo


def drop() -> None:
    """Drop what `clear_caches` drops; collect no garbage, which takes a large process longer than all else."""
    for reference in _kept.valuerefs():
        cache = reference()
        if cache is not None:
            cache.clear()
    for clear in _memos:
        clear()
    xla.clear_functions()
    memory.clear()


def clear_caches() -> None:
    """Drop the traces, their derivatives, the compiled programs and the eager kernels of this process.

    The memory goes back to the system, as far as the C library can return it.

    Functions keep working, and are traced and compiled again when they are called. Objects that the caller holds stay
    as they are: the `Lowered` and `Compiled` that `jit(f).lower(...)` gave, jaxprs, maps of `linearize`. So does the
    cache on disk (`ft.backends.cache`), from which programs are loaded instead of compiled.

    `jit(f).clear_cache()` drops the traces and programs of one function.

    >>> import functorch_like as ft
    >>> f = ft.jit(lambda x: x + 1)
    >>> y = f(1.0)
    >>> ft.clear_caches()
    >>> ft.explain(f)(1.0).count("trace")
    1
    """
    drop()
    memory.give_back()
    ShapedArray.forget_unused()


mapped_regions.on_crowded(clear_caches)
