"""Settings kept outside of the package, shown with its own: most are read from the environment."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from functorch_like.backends.settings import SETTINGS, Setting
from functorch_like.backends.validators import Kind, boolean, one_of
from functorch_like.backends.xla import client, configuration, events
from functorch_like.errors import ArgumentError

_ANYTHING = Kind("", lambda value: value)

#: Setting: True if jitted functions run as plain Python.
JIT_DISABLED = configuration.config("disable_jit", False, in_trace_key=False)


class External(Setting[Any]):
    """A setting whose value is kept elsewhere.

    Args:
        name: its name in displays.
        default: its value until one is set.
        doc: its effect.
        changes: the part of the program or its running that it changes.
        read: its value now.
        by: the way to set it.
        env: its environment variable, if it has one.
        kind: the values that variable may have; the code that holds the value may check it, too.

    Attributes:
        initial: value from the environment when the setting was made, else the default.
    """

    def __init__(
        self, name: str, default: Any, doc: str, *, changes: str, read: Callable[[], Any], by: str, env: str = "",
        kind: Kind = _ANYTHING,
    ) -> None:  # fmt: skip
        super().__init__(default, kind, doc, changes=changes, env=env)
        self.name, self._read, self._by = name, read, by
        self.initial = self.from_environment(default)
        SETTINGS[name] = self

    @property
    def value(self) -> Any:
        return self._read()

    @property
    def source(self) -> str:
        changed = "environment" if self.env and os.environ.get(self.env) else "code"
        return "default" if self.value == self.default else changed

    def set(self, value: Any) -> None:
        raise ArgumentError(f"{self.name} is not set here", fix=f"use {self._by}")

    def reset(self) -> None:
        self.set(self.default)

    def changes_of(self, value: Any) -> dict[str, Any]:
        raise ArgumentError(f"{self.name} has no values in blocks", fix=f"use {self._by}")


for _name, _default, _kind, _changes, _doc in (
    ("FT_PLATFORM", "", _ANYTHING, "client", "Use this platform alone: cpu or gpu."),
    ("FT_CPU_ASYNC", "0", boolean, "client", "1: compiled calls on the CPU return before they have finished."),
    ("FT_CPU_DEVICES", "", _ANYTHING, "client", "Number of CPU devices."),
    ("FT_PROGRESS", "", one_of("0", "1"), "output", "Lines of progress: 0 for none, 1 for any stderr; else terminals."),
    ("FT_TRACEBACK", "", one_of("full"), "errors", "full: show the frames inside the package."),
):
    External(
        _name,
        _default,
        _doc,
        read=lambda name=_name, default=_default: os.environ.get(name, default),
        changes=_changes,
        by=f"the environment variable {_name}, before the process starts",
        env=_name,
        kind=_kind,
    )

External(
    "log_compiles",
    False,
    "Whether programs are written to the log as they are traced, lowered, compiled and loaded.",
    changes="the log",
    read=lambda: events.LOGGED.value,
    by="ft.log_compiles, or FT_LOG_COMPILES=1 before the process starts",
    env="FT_LOG_COMPILES",
    kind=boolean,
)

External(
    "default_device",
    None,
    "Device of the arrays and computations for which no device is named; None is the first device there is.",
    changes="where programs run",
    read=lambda: client.chosen.value,
    by="ft.set_default_device, or a block of ft.default_device",
)

External(
    "disable_jit",
    False,
    "Whether jitted functions run as plain Python.",
    changes="whether anything is traced",
    read=lambda: JIT_DISABLED.value,
    by="ft.disable_jit",
)
