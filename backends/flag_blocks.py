"""Blocks that set several settings at once, and the objects on which settings are attributes."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from functorch_like import public_names
from functorch_like.backends import settings, thread_local_values
from functorch_like.backends.settings import SETTINGS, Setting
from functorch_like.errors import ArgumentError, SettingError, nearest

F = TypeVar("F", bound=Callable[..., Any])


class Flags:
    """A block, or decorator, that gives settings other values, in its thread. It can be used many times."""

    __slots__ = ("_changes",)

    def __init__(self, changes: dict[str, Any]) -> None:
        self._changes = changes

    def __enter__(self) -> None:
        for name in self._changes:
            SETTINGS[name]._check_place()
        thread_local_values.enter(self, self._changes)

    def __exit__(self, *error: Any) -> None:
        thread_local_values.leave(self)

    def __call__(self, fun: F) -> F:
        if inspect.iscoroutinefunction(fun) or inspect.isgeneratorfunction(fun) or inspect.isasyncgenfunction(fun):
            raise ArgumentError(
                f"{fun.__name__} is a generator or coroutine, whose body runs after the call has returned",
                fix="write a `with` block in its body, around parts without `yield` and `await`",
            )

        @functools.wraps(fun)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self:
                return fun(*args, **kwargs)

        return inside  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"flags({self._changes})"


def flags(given: Mapping[str, Any] | None = None, /, **more: Any) -> Flags:
    """Return a block, or decorator, that gives several settings other values, in this thread alone.

    Args:
        given: values by the names of settings, e.g. {"cuda.matmul.allow_tf32": True}.
        more: the same, with underscores for dots.

    Returns:
        A context manager; applied to a function, that function run inside such a block.

    Raises:
        SettingError: for names that no setting has, naming the nearest.
        ArgumentError: for wrong values, naming the allowed ones.

    >>> from functorch_like import backends
    >>> with backends.flags({"cuda.matmul.allow_tf32": True}):
    ...     backends.cuda.matmul.allow_tf32
    True
    >>> backends.cuda.matmul.allow_tf32
    False
    """
    changes: dict[str, Any] = {}
    for name, value in {**(given or {}), **more}.items():
        changes |= settings.find(name).changes_of(value)
    return Flags(changes)


#: Type of the `flags` of a module with settings: settings by their short names, to a block or decorator.
Block = Callable[..., Flags]


class _Holder:
    """Attributes that are settings; other names cannot be assigned."""

    __slots__ = ()
    _prefix = ""

    def __init_subclass__(cls, name: str = "") -> None:
        cls._prefix = name
        for attribute, setting in vars(cls).items():
            if isinstance(setting, Setting):
                setting.declare(f"{name}.{attribute}" if name else attribute)

    def _unknown(self, name: str) -> SettingError:
        names = [n for n, value in inspect.getmembers_static(type(self)) if isinstance(value, Setting)]
        where = ".".join(filter(None, ("backends", self._prefix)))
        return SettingError(f"{where} has no setting {name!r}{nearest(name, names)}", fix=f"it has {', '.join(names)}")


class Group(_Holder):
    """An object with settings for attributes. A subclass declares them, and their common prefix."""

    __slots__ = ()

    def flags(self, **values: Any) -> Flags:
        """Return a block, or decorator, that gives settings of this group other values, in this thread.

        Args:
            values: values of its settings by their short names.

        Returns:
            A context manager, and a decorator.

        Raises:
            SettingError: for a name that none of its settings has.
            ArgumentError: for a wrong value.

        >>> from functorch_like import backends
        >>> with backends.cuda.matmul.flags(allow_tf32=True):
        ...     backends.cuda.matmul.fp32_precision
        'tf32'
        """
        return _flags_of(self, values)

    def __getattr__(self, name: str) -> Any:
        raise self._unknown(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if not hasattr(type(self), name):
            raise self._unknown(name)
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return _listing(self)


class Module(types.ModuleType, _Holder):
    """A module with settings for attributes: `adopt` makes a module one."""

    def flags(self, **values: Any) -> Flags:
        """Return a block, or decorator, that gives settings of this module other values, in this thread.

        Args:
            values: values of its settings by their short names.

        Returns:
            A context manager, and a decorator.

        Raises:
            SettingError: for a name that none of its settings has.
            ArgumentError: for a wrong value.

        >>> from functorch_like import backends
        >>> with backends.cpu.flags(fast_lowerings=False):
        ...     backends.cpu.fast_lowerings
        False
        """
        return _flags_of(self, values)

    def __setattr__(self, name: str, value: Any) -> None:
        known = name.startswith("_") or name in vars(self) or hasattr(type(self), name)
        if not known and not isinstance(value, types.ModuleType):
            raise self._unknown(name)
        super().__setattr__(name, value)

    def __reduce__(self) -> Any:
        return importlib.import_module, (self.__name__,)

    def __dir__(self) -> list[str]:
        """Return the names for users: settings, public functions and submodules with settings."""
        settings = (n for n in dir(type(self)) if not n.startswith("_"))
        names = (n for n in super().__dir__() if not n.startswith("_") and not _is_tool(vars(self).get(n), self))
        return sorted({*settings, *names})


def _is_tool(value: Any, module: types.ModuleType) -> bool:
    """Return True for names that a module imports to build its settings, and for submodules that users do not need."""
    if isinstance(value, types.ModuleType):
        parent, _, name = value.__name__.rpartition(".")
        return parent != module.__name__ or name in _TOOLS or name in _WITHOUT_SETTINGS
    home = str(getattr(value, "__module__", module.__name__))
    return not home.startswith("functorch_like.backends") or home.rpartition(".")[2] in _TOOLS


#: Modules that others are made of.
_TOOLS = (
    "capability", "external_settings", "flag_blocks", "libraries", "precision_names", "probe", "settings",
    "thread_local_values", "validators",
)  # fmt: skip
_WITHOUT_SETTINGS = ("determinism", "precision", "report", "settings_page", "xla_settings")


def adopt(module: str, kind: type[Module]) -> None:
    """Give a module the settings of a class, so that they can be read and assigned as its attributes."""
    sys.modules[module].__class__ = kind
    public_names.attach(sys.modules[module])


def _flags_of(holder: Any, values: dict[str, Any]) -> Flags:
    changes: dict[str, Any] = {}
    for name, value in values.items():
        setting = inspect.getattr_static(type(holder), name, None)
        if not isinstance(setting, Setting):
            raise holder._unknown(name)
        changes |= setting.changes_of(value)
    return Flags(changes)


def _listing(holder: Any) -> str:
    settings = [value for _, value in inspect.getmembers_static(type(holder)) if isinstance(value, Setting)]
    return "\n".join([f"backends.{holder._prefix}:", *(f"  {s!r}" for s in settings)])
