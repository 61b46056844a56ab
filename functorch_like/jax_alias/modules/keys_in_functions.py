"""Wrappers by which functions that move elements, and functions that fill arrays, accept typed keys."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from functorch_like import numpy as fnp
from functorch_like import tree
from functorch_like.avals import ShapeDtypeStruct
from functorch_like.errors import DtypeError
from functorch_like.random import typed_keys
from functorch_like.random.typed_keys import KeyArray, KeyDtype, is_keys, over_words

#: Numbers that fill arrays, by the beginning of a function's name.
_VALUES = {"zeros": 0, "ones": 1, "empty": 0}


def moving_keys(fun: Callable[..., Any], module: str) -> Callable[..., Any]:
    """Make a function that moves elements accept typed keys; `module` is where pickle finds the result."""
    takes_dtype = fun.__name__ in ("array", "asarray")

    @functools.wraps(fun)
    def moved(*args: Any, **kwargs: Any) -> Any:
        if any(map(is_keys, args)) or any(is_keys(x) for a in args if isinstance(a, (list, tuple)) for x in a):
            if not takes_dtype:
                return over_words(fun, *args, **kwargs)
            keys, *rest = args
            dtype = kwargs.pop("dtype", rest[0] if rest else None)
            return _checked(over_words(fun, keys, **kwargs), dtype, fun.__name__)
        return fun(*args, **kwargs)

    moved.__module__ = module
    return moved


def filling_keys(fun: Callable[..., Any], module: str) -> Callable[..., Any]:
    """Make a function that fills an array with one value accept typed keys, and dtypes of keys.

    The value is a key, or a number that each word gets. `module` is where pickle finds the result.
    """
    signature = inspect.signature(fun)
    like = fun.__name__.endswith("_like")

    @functools.wraps(fun)
    def filled(*args: Any, **kwargs: Any) -> Any:
        if not _about_keys(args, like) and not (kwargs and _about_keys(kwargs.values(), like)):
            return fun(*args, **kwargs)
        shape: Any = None
        value: Any = None
        dtype: Any = None
        own: Any = None
        for name, given in signature.bind(*args, **kwargs).arguments.items():
            if name == "dtype":
                dtype = given
            elif name == "fill_value":
                value = given
            elif name == "shape":
                shape = given
            elif like and shape is None and own is None:
                own = given
        if own is not None:
            shape = own.shape if shape is None else shape
            dtype = getattr(own, "dtype", None) if dtype is None else dtype
        value = _VALUES[fun.__name__.removesuffix("_like")] if value is None else value
        return _full(shape, value, dtype, fun.__name__)

    filled.__module__ = module
    return filled


def described(results: Any) -> Any:
    """Return results of `eval_shape` with a `ShapeDtypeStruct` for each array of typed keys, as in JAX."""
    if not typed_keys.made:
        return results
    return tree.map(lambda x: ShapeDtypeStruct(x.shape, x.dtype) if is_keys(x) else x, results, is_leaf=is_keys)


def _about_keys(values: Any, like: bool) -> bool:
    """Return True if a value is an array of keys or a dtype of keys; with `like`, also for a description of keys."""
    for x in values:
        if isinstance(x, (KeyArray, KeyDtype)) or (like and isinstance(getattr(x, "dtype", None), KeyDtype)):
            return True
    return False


def _full(sizes: Any, value: Any, dtype: Any, what: str) -> KeyArray:
    shape = (sizes,) if isinstance(sizes, int) else tuple(sizes)
    if is_keys(value):
        return _checked(over_words(fnp.broadcast_to, value, shape), dtype, what)
    if not isinstance(dtype, KeyDtype):
        raise DtypeError(f"{what} got keys and dtype={dtype!r}", fix="jax.random.key_data gives the words of keys")
    return KeyArray(fnp.full((*shape, dtype.itemsize // 4), value, np.uint32), dtype.impl)


def _checked(keys: KeyArray, dtype: Any, what: str) -> KeyArray:
    """Return keys if they have the dtype that a call asks for, which may be None."""
    if dtype is not None and keys.dtype != dtype:
        raise DtypeError(
            f"{what} got {keys.dtype!r} and dtype={dtype!r}", fix="jax.random.key_data gives the words of keys"
        )
    return keys
