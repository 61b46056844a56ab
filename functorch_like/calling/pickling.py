"""Functions that transformations make, and the pickling of these and other objects of the package.

A function is pickled as Python pickles functions: by module and name, where these lead to it. Otherwise a function
that a transformation made is pickled as the call that made it: `jit(grad(f))` as `f` and the options of both.
cloudpickle and dill save the functions of `__main__` by value, so names in `__main__` are not used with them.
"""

from __future__ import annotations

import functools
import pickle
import sys
import types
from collections.abc import Callable
from typing import Any, TypeVar

from functorch_like.backends import xla
from functorch_like.calling import api_boundary
from functorch_like.calling.edited_errors import ErrorsEdited
from functorch_like.errors import ArgumentError

F = TypeVar("F", bound=Callable[..., Any])


class ByName:
    """Base of function-like objects that are pickled by module and name where these lead to them, and never copied."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        return importable_name(self, sys._getframe(1)) or super().__reduce_ex__(protocol)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


class Transformed(ByName, ErrorsEdited):
    """A user's function as a transformation made it. Pickles by name, or as the call that made it."""

    def __init__(self, function: Callable[..., Any], maker: Callable[..., Any], args: Any, kwargs: Any) -> None:
        ErrorsEdited.__init__(self, function)
        self._made_by = (maker, args, kwargs)
        functools.update_wrapper(self, function, updated=())

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the user's function: a module that is called has its parameters there."""
        if name.startswith("__") or "_made_by" not in self.__dict__:
            raise AttributeError(name)
        fun: Any = self
        while isinstance(fun, Transformed):  # attributes of an inner one, such as jit's `lower`, are about that one
            fun = fun._made_by[1][0] if fun._made_by[1] else None
        return getattr(fun, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> Any:
        return call, self._made_by

    def __repr__(self) -> str:
        maker = self._made_by[0]
        return f"<{maker.__name__} of {getattr(self, '__qualname__', self._function)}>"


def transformation(maker: F) -> F:
    """Mark a public function that makes a function of the user's into another one, which can then be pickled.

    Both are wrapped by `api_boundary.public`. What is not a Python function, such as a decorator, stays as it is.
    """

    @functools.wraps(maker)
    def made_by(*args: Any, **kwargs: Any) -> Any:
        made = maker(*args, **kwargs)
        return Transformed(made, make, args, kwargs) if isinstance(made, types.FunctionType) else made

    make = api_boundary.public(made_by)
    return make  # type: ignore[return-value]


def call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Load what was pickled as a call."""
    return function(*args, **kwargs)


def importable_name(value: Any, pickler: types.FrameType | None = None) -> str | None:
    """Return the qualified name by which a value is found in its module; None where it leads elsewhere.

    Args:
        value: any object; one without `__module__` and `__qualname__` has no such name.
        pickler: the frame that pickles it. Some picklers save the functions of `__main__` by value, not by name.
    """
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    target: Any = sys.modules.get(module) if isinstance(module, str) else None
    if target is None or not isinstance(name, str):
        return None
    for part in name.split("."):
        target = getattr(target, part, None)
    if target is not value or (module == "__main__" and _carries_functions(pickler)):
        return None
    return name


def _carries_functions(frame: types.FrameType | None) -> bool:
    """Return True for the frame of a pickler that saves the functions of `__main__` by value."""
    pickler = None if frame is None else frame.f_locals.get("self")
    if isinstance(pickler, pickle._Pickler):  # dill's
        return pickler.dispatch.get(types.FunctionType) is not pickle._Pickler.dispatch.get(types.FunctionType)
    return isinstance(pickler, pickle.Pickler) and hasattr(pickler, "reducer_override")  # cloudpickle's


def _reduce_compiled(self: Any, protocol: Any) -> Any:
    """Pickle a function that C++ dispatches, one of the package's, by name."""
    name = importable_name(self, sys._getframe(1))
    if name is None:
        raise ArgumentError(f"{self!r} cannot be pickled: no name leads to it", fix="pickle a function that calls it")
    return name


xla.PjitFunction.__reduce_ex__ = _reduce_compiled
xla.PjitFunction.__copy__ = ByName.__copy__
xla.PjitFunction.__deepcopy__ = ByName.__deepcopy__
