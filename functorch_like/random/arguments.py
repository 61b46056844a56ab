"""Argument checks shared by all functions that take a key."""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import ArrayImpl, Tracer, aval_of
from functorch_like.errors import DtypeError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.random import generators, key_reuse
from functorch_like.random.typed_keys import KeyArray


# -------------------------------------------------------------------------------------------------------- arguments
def check_key(key: Any, what: str) -> Any:
    """Return a checked key; for a typed key, its words.

    Raises:
        DtypeError: for anything but an array of uint32.
        ShapeError: for a shape other than (2,) and (4,).
        KeyReuseError: for a used key, in a block of `check_key_reuse`.
    """
    words = (2, 4)
    if type(key) is KeyArray:
        words, key = (generators.WORDS[key._impl],), key._words
    aval = aval_of(key) if isinstance(key, (ArrayImpl, Tracer, np.ndarray)) else None
    if aval is None or aval.dtype != dtypes.uint32:
        text = f"{key!r:.60}" if aval is None else repr(aval)
        raise promotion.error(DtypeError, f"{what} needs a key, got {text}", "make one with random.key(seed)")
    if aval.ndim != 1 or aval.shape[0] not in words:
        many = aval.ndim > 1 and aval.shape[-1] in generators.BY_WORDS
        remedy = "map over an array of keys with vmap" if many else "make one with random.key(seed)"
        if not aval.ndim:
            remedy = "this is one word of a key: give vmap an array of keys, random.split(key, n)"
        raise promotion.error(
            ShapeError,
            f"{what} needs one key, which is a u32[2], got {aval!r}",
            remedy,
        )
    key_reuse.use(key, what)
    return key


def impl_of(key: Any) -> str:
    """Return the name of a key's generator; for an untyped key, the number of words decides."""
    if type(key) is KeyArray:
        return key._impl
    return generators.BY_WORDS.get(aval_of(key).shape[-1], "threefry2x32")


def like(key: Any, words: Any) -> Any:
    """Return words as a typed key if `key` is one, else as they are."""
    return KeyArray(words, key._impl) if type(key) is KeyArray else words
