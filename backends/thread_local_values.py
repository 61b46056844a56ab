"""Values of settings: global, in blocks of a thread, and in the key of jit.

Values that matter to compiled programs are held in ONE object of jaxlib's jit key, the same object for the same
values. So changing a setting looks programs up anew, changing it back finds the old ones, and a call costs the same
however many settings there are.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

from functorch_like.backends import xla


class Values:
    """Settings that differ from their defaults. Equal values are the same object, so comparing costs nothing."""

    __slots__ = ("__weakref__", "_derived", "set")

    def __init__(self, values: dict[str, Any]) -> None:
        self.set = values
        self._derived: dict[Any, Any] = {}

    def derive(self, make: Callable[[], Any]) -> Any:
        """Return `make()` for these values, computed once. `make` reads settings; it is the key, too."""
        try:
            return self._derived[make]
        except KeyError:
            made = self._derived[make] = make()
            return made


class _Thread(threading.local):
    layers: tuple[tuple[Any, dict[str, Any]], ...] = ()  # one for each open block: the block, and its values
    outside: tuple[Any, ...] = ()  # what the thread had of its own outside of all blocks, such as adopted values


_lock = threading.RLock()
_thread = _Thread()
_declared: dict[str, tuple[Any, bool]] = {}  # default, and whether programs depend on it
_global: dict[str, tuple[Any, str]] = {}  # value, and where it came from
_known: weakref.WeakValueDictionary[Any, Values] = weakref.WeakValueDictionary()
NOTHING_SET = _known[frozenset()] = Values({})
_KEYED = xla.config("settings", NOTHING_SET)
_OTHERS = xla.config("settings_outside_keys", NOTHING_SET, in_jit_key=False)
_BOTH = (_KEYED, _OTHERS)


def in_force() -> Values:
    """Return this thread's settings that matter to compiled programs; `NOTHING_SET` if all are the defaults."""
    return _KEYED.value


def declare(name: str, default: Any, in_key: bool) -> None:
    """Register a setting."""
    if name in _declared:
        raise ValueError(f"setting {name!r} is declared twice")
    _declared[name] = default, in_key


def read(name: str) -> Any:
    """A setting's value in this thread."""
    default, in_key = _declared[name]
    return (_KEYED if in_key else _OTHERS).value.set.get(name, default)


def source(name: str) -> str:
    """Return the origin of a value: "default", "environment", "code" or "with-block"."""
    if any(name in changes for _, changes in _thread.layers):
        return "with-block"
    return _global[name][1] if name in _global else "default"


def write(name: str, value: Any, came_from: str) -> None:
    """Set a setting in every thread."""
    with _lock:
        _global[name] = value, came_from
        _refresh(everywhere=True)


def write_in_block(name: str, value: Any) -> bool:
    """Set a setting in the innermost block of this thread that sets it; return False if there is none."""
    for _, changes in reversed(_thread.layers):
        if name in changes:
            changes[name] = value
            _refresh(everywhere=False)
            return True
    return False


def forget(name: str) -> None:
    """Restore the default, outside of blocks."""
    with _lock:
        _global.pop(name, None)
        _refresh(everywhere=True)


def enter(block: Any, changes: dict[str, Any]) -> None:
    """Begin a block of this thread."""
    if not _thread.layers:
        _thread.outside = tuple(config.swap_local(config.value) for config in _BOTH)
    _thread.layers = (*_thread.layers, (block, dict(changes)))
    _refresh(everywhere=False)


def leave(block: Any) -> None:
    """End a block of this thread; its latest use, if it was entered several times."""
    layers = _thread.layers
    last = max(i for i, (each, _) in enumerate(layers) if each is block)
    _thread.layers = layers[:last] + layers[last + 1 :]
    _refresh(everywhere=False)
    if not _thread.layers:
        for config, before in zip(_BOTH, _thread.outside, strict=True):
            config.restore(before)


def _refresh(everywhere: bool) -> None:
    """Pass the present values to jaxlib, in every thread or in this one."""
    for i, (config, keyed) in enumerate(zip(_BOTH, (True, False), strict=True)):
        values = {name: value for name, (value, _) in _global.items() if _declared[name][1] is keyed}
        if everywhere:
            config.set_global(_interned(values))
        if not _thread.layers:
            continue
        if isinstance(_thread.outside[i], Values):
            values = dict(_thread.outside[i].set)
        for _, changes in _thread.layers:
            values |= {name: value for name, value in changes.items() if _declared[name][1] is keyed}
        config.set_local(_interned(values))


def _interned(values: dict[str, Any]) -> Values:
    changed = {name: value for name, value in values.items() if value != _declared[name][0]}
    key = frozenset((name, type(value), value) for name, value in changed.items())
    with _lock:
        return _known.setdefault(key, Values(changed))
