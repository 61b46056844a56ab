"""Names of scopes around a call, of `jax.extend.source_info_util`: `encoder/attention`."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Any

import functorch_like as ft


@dataclasses.dataclass(frozen=True)
class Scope:
    """A name that the user gave."""

    name: str


@dataclasses.dataclass(frozen=True)
class Transform:
    """The name of a transformation, whose scopes follow."""

    name: str


@dataclasses.dataclass(frozen=True)
class NameStack:
    """Names of scopes and transformations, the outermost first."""

    stack: tuple[Scope | Transform, ...] = ()

    def extend(self, name: str) -> NameStack:
        """Return the names with one more inside."""
        return NameStack((*self.stack, Scope(name)))

    def transform(self, name: str) -> NameStack:
        """Return the names with a transformation inside."""
        return NameStack((*self.stack, Transform(name)))

    def __add__(self, other: NameStack) -> NameStack:
        return NameStack(self.stack + other.stack)

    def __radd__(self, other: NameStack) -> NameStack:
        return NameStack(other.stack + self.stack)

    def __len__(self) -> int:
        return len(self.stack)

    def __getitem__(self, index: slice) -> NameStack:
        return NameStack(self.stack[index])

    def __str__(self) -> str:
        texts: list[str] = []
        around: list[str] = []  # transformations that wait for the name that they enclose
        for part in self.stack:
            if isinstance(part, Transform):
                around.append(part.name)
            else:
                texts.append(_enclosed(around, part.name))
                around = []
        return "/".join([*texts, _enclosed(around, "")] if around else texts)


def _enclosed(around: list[str], name: str) -> str:
    return "".join(f"{outer}(" for outer in around) + name + ")" * len(around)


class _Names(threading.local):
    stack = NameStack()


_names = _Names()


def new_name_stack(name: str = "") -> NameStack:
    """Return a stack of one name, or of none."""
    return NameStack().extend(name) if name else NameStack()


def current_name_stack() -> NameStack:
    """Return the names of the scopes around this call: of `jax.named_scope`, and of the functions below."""
    return _names.stack


@contextmanager
def set_name_stack(name_stack: NameStack) -> Generator[None]:
    """Use other names within the block. Equations keep the names of the scopes that they are recorded in, too."""
    before = _names.stack
    shared = name_stack.stack[: len(before)] == before.stack
    _names.stack = name_stack
    try:
        with ExitStack() as scopes:
            for part in name_stack.stack[len(before) if shared else 0 :]:
                scopes.enter_context(ft.named_scope(part.name))
            yield
    finally:
        _names.stack = before


@contextmanager
def extend_name_stack(name: str) -> Generator[NameStack]:
    """Name the equations recorded within the block; yield the names."""
    with set_name_stack(_names.stack.extend(name)):
        yield _names.stack


@contextmanager
def transform_name_stack(name: str) -> Generator[NameStack]:
    """Add the name of a transformation within the block; yield the names."""
    with set_name_stack(_names.stack.transform(name)):
        yield _names.stack


@contextmanager
def reset_name_stack() -> Generator[None]:
    """Use no names within the block; see `set_name_stack`."""
    with set_name_stack(NameStack()):
        yield


def named_scope(name: str) -> Any:
    """Return `ft.named_scope`, whose name is also in `current_name_stack` within the block."""
    ft.named_scope(name)  # checks the name
    return extend_name_stack(name)
