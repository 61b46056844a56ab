"""Names of JAX that this package lacks: inert while modules are imported, an error when they are used."""

from __future__ import annotations

from typing import Any, NoReturn

from functorch_like.errors import FtError
from functorch_like.jax_alias.callers import Caller, caller


class MissingNameError(FtError, AttributeError, NotImplementedError):
    """A name of JAX was used that functorch_like does not have."""


#: Each missing name that was read, and the places that read it.
ASKED: dict[str, set[str]] = {}


def absent(name: str) -> Any:
    """Return a stand-in for a missing name, or raise if the caller tests for the name or runs outside of an import.

    Raises:
        ImportError: for `from jax.module import name`.
        MissingNameError: for any other read.
    """
    asking = caller()
    ASKED.setdefault(name, set()).add(asking.where)
    if asking.importing and asking.tolerant:
        return stand_in(name)
    error = _error(name, asking)
    if asking.importer:
        raise ImportError(str(error), name=name)
    raise error


def is_stand_in(value: Any) -> bool:
    """Return True for a stand-in of a missing class, function or primitive."""
    return isinstance(value, Missing) or getattr(type(value), "stands_in", False)


def stand_in(name: str) -> Any:
    """Return a class that has no instances and raises when it is used."""
    return Missing(name.rpartition(".")[2].rstrip("()") or "missing", (), {"_missing_name": name})


def _error(name: str, asking: Caller) -> MissingNameError:
    return MissingNameError(
        f"functorch_like has no {name}, which {asking.where or 'a program'} reads under JAX's name",
        fix="`python -m functorch_like.as_jax --missing script.py` lists all names that a program lacks",
    )


class Missing(type):
    """Class of stand-ins, which can be annotations, base classes, registries and decorators, and be subscripted."""

    _missing_name: str

    def __instancecheck__(cls, instance: Any) -> bool:
        # A library may subclass a stand-in, as long as no instance is ever made.
        return False

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return absent(f"{cls._missing_name}.{name}")

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        asking = caller()
        if asking.importing:
            return stand_in(f"{cls._missing_name}()")
        cls._use()

    def __getitem__(cls, item: Any) -> Any:
        return cls

    def __setitem__(cls, item: Any, value: Any) -> None:
        """Ignore a registration."""

    def __or__(cls, other: Any) -> Any:  # type: ignore[override]
        return cls

    __ror__ = __or__  # type: ignore[assignment]

    def __contains__(cls, item: Any) -> bool:
        return False

    def __iter__(cls) -> Any:
        cls._use()

    def __enter__(cls) -> Any:
        cls._use()

    def __exit__(cls, *exception: Any) -> None:
        """Never reached."""

    def __repr__(cls) -> str:
        return f"<missing {cls._missing_name}>"

    def _use(cls) -> NoReturn:
        raise _error(cls._missing_name, caller())
