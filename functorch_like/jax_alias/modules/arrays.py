"""`jax.Array`: the class that all arrays, traced values and arrays of typed keys are instances of."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

import functorch_like as ft
from functorch_like.core import ArrayImpl, Tracer
from functorch_like.random.typed_keys import KeyArray


class LiteralArray(np.ndarray[Any, Any]):
    """A constant of a program, as `Literal.val` gives it: an array of NumPy that is an instance of `jax.Array`."""


class _ArrayType(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, ft.Array) or type(instance) in (KeyArray, LiteralArray)

    def __subclasscheck__(cls, subclass: type) -> bool:
        # Unions of types look at the class of an instance alone.
        return subclass in (cls, KeyArray, LiteralArray) or issubclass(subclass, (ft.Array, Tracer))

    def __getattr__(cls, name: str) -> Any:
        value = getattr(ArrayImpl, name, None) if name.startswith("_") else getattr(ArrayImpl, name)
        if name.startswith("_") and not (name.startswith("__") and inspect.isfunction(value)):
            raise AttributeError(name)
        return value


class Array(metaclass=_ArrayType):
    """An array, a traced value, or an array of typed keys. Its methods are those of arrays."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Refuse: functions of `jax.numpy` make arrays."""
        raise TypeError("jax.Array cannot be instantiated; use jax.numpy.array")


Array.__module__ = "jax"


def name_classes() -> None:
    """Name modules of JAX as those of arrays and tracers: autoray, and PennyLane by it, find their functions so."""
    for kind in (ft.Array, ArrayImpl):
        kind.__module__ = "jaxlib._jax"

    def name(cls: Any) -> None:
        if cls.__module__.startswith(f"{ft.__name__}."):
            cls.__module__ = "jax._src.core"

    def name_all(cls: Any) -> None:
        name(cls)
        for kind in cls.__subclasses__():
            name_all(kind)

    name_all(Tracer)
    tracer: Any = Tracer
    tracer.__init_subclass__ = classmethod(lambda cls, **keywords: name(cls))
