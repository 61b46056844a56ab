"""Settings: each declared once, global, overridden in a `with` block, part of jit's key.

    class Matmul(Group, name="cuda.matmul"):
        fp32_precision = Setting("ieee", one_of("ieee", "tf32"), "...", changes="StableHLO: precision_config")

    matmul = Matmul()                       # backends.cuda.matmul.fp32_precision = "tf32"

A value has one of four origins: the default; an environment variable, read when the package is imported; code that
assigns it, for every thread; a `with` block (`flags`), for its thread alone.

A block gives its thread a view of all settings as they were when it began. Assignments by other threads are seen when
it ends, so that a computation does not change under way. Assignments by the thread itself are seen at once; those to a
setting of the block last as long as the block. Threads started inside a block start without it. A block belongs to the
thread, not to an asyncio task: do not `await` inside one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar, overload

from functorch_like.backends import thread_local_values, validators, xla
from functorch_like.backends.thread_local_values import NOTHING_SET as NOTHING_SET
from functorch_like.backends.thread_local_values import Values as Values
from functorch_like.backends.thread_local_values import in_force as in_force
from functorch_like.errors import ArgumentError, SettingError, nearest

T = TypeVar("T")

#: Every declared setting, by dotted name.
SETTINGS: dict[str, Setting[Any]] = {}


_staging: Callable[[], bool] = lambda: False


def on_staging(predicate: Callable[[], bool]) -> None:
    """Set the predicate that a function is being traced to be compiled; it belongs to the core."""
    global _staging
    _staging = predicate


class Setting(Generic[T]):
    """One setting: a descriptor in a class of settings.

    Args:
        default: its value until one is set.
        kind: the values it takes.
        doc: its effect, beginning with a line of its own.
        changes: the part of the program or its running that it changes, e.g. "StableHLO: precision_config".
        elsewhere: for each platform on which it has no effect, why.
        env: its environment variable; by default FT_ and its name, FT_CUDA_MATMUL_FP32_PRECISION. "" is none.
        in_key: whether compiled programs depend on it.
        program: whether it holds for whole programs, when they are compiled. Otherwise it is read as operations are
            traced, so that a block inside of a traced function holds for the operations in it.
        options: XLA's compile options that a value stands for, on a platform.
    """

    name: str

    def __init__(
        self,
        default: T,
        kind: validators.Kind,
        doc: str,
        *,
        changes: str,
        elsewhere: Mapping[str, str] | None = None,
        env: str | None = None,
        in_key: bool = True,
        program: bool = False,
        options: Callable[[T, str], dict[str, Any]] | None = None,
    ) -> None:
        self.default, self.kind, self.__doc__, self.changes = default, kind, doc, changes
        self.elsewhere = dict(elsewhere or {})
        self.env, self.in_key, self.program, self.options = env, in_key, program or options is not None, options

    def declare(self, name: str) -> None:
        """Set its name, and its value from the environment variable. Classes of settings call this."""
        thread_local_values.declare(name, self.default, self.in_key)
        self.name = name
        SETTINGS[name] = self
        if self.env is None:
            self.env = "FT_" + name.upper().replace(".", "_")
        if os.environ.get(self.env):
            self._put_global(self.from_environment(self.default), "environment")

    def from_environment(self, default: T) -> T:
        """Return the value of its environment variable; `default` where that is unset or empty.

        Raises:
            ArgumentError: for text it does not take.
        """
        text = os.environ.get(self.env) if self.env else None
        if not text:
            return default
        try:
            return self.kind.parse(text)
        except (ValueError, TypeError):
            raise self._wrong(f"the environment variable {self.env}={text!r}", text) from None

    @overload
    def __get__(self, owner: None, kind: Any = None) -> Setting[T]: ...
    @overload
    def __get__(self, owner: object, kind: Any = None) -> T: ...
    def __get__(self, owner: object, kind: Any = None) -> Setting[T] | T:
        return self if owner is None else self.value

    def __set__(self, owner: object, value: Any) -> None:
        self.set(value)

    @property
    def value(self) -> T:
        """Value in this thread now."""
        return thread_local_values.read(self.name)

    @property
    def source(self) -> str:
        """Origin of the value: "default", "environment", "code" or "with-block"."""
        return thread_local_values.source(self.name)

    def set(self, value: Any) -> None:
        """Set it in every thread; or, inside a block that sets it, in this thread until that block ends."""
        value = self.checked(value)
        self._check_place()
        if not thread_local_values.write_in_block(self.name, value):
            self._put_global(value, "code")

    def reset(self) -> None:
        """Drop values from code or the environment: back to the default."""
        thread_local_values.forget(self.name)

    def _put_global(self, value: Any, source: str) -> None:
        thread_local_values.write(self.name, value, source)

    def checked(self, value: Any) -> T:
        """Return the canonical form of a value.

        Raises:
            ArgumentError: for a value that the setting does not take, naming those that it takes.
        """
        try:
            return self.kind.check(value)
        except (ValueError, TypeError):
            raise self._wrong(f"{self.name} = {value!r:.80}", value) from None

    def _wrong(self, what: str, value: Any) -> ArgumentError:
        near = nearest(value, self.kind.names) if isinstance(value, str) else ""
        return ArgumentError(f"{what} is not a value of this setting{near}", fix=f"use {self.kind.allowed}")

    def _check_place(self) -> None:
        if self.program and _staging():
            raise ArgumentError(
                f"{self.name} is changed inside a function that is being traced, and it holds for whole programs",
                fix="set it around the call of the jitted function, not inside the function",
            )

    def effect(self, platform: str) -> str:
        """Return the reason why it has no effect on a platform; "" where it has one."""
        return self.elsewhere.get(platform, "")

    def changes_of(self, value: Any) -> dict[str, Any]:
        """Return the settings that an assignment to this one changes, by name, with their new values."""
        return {self.name: self.checked(value)}

    def __repr__(self) -> str:
        return f"{self.name} = {self.value!r}"


class AtStart(Setting[T]):
    """A setting of XLA's client, which is settled when the first device is used."""

    def __init__(self, default: T, kind: validators.Kind, doc: str, **about: Any) -> None:
        super().__init__(default, kind, doc + "\n\nIt is settled when the first device is used.", in_key=False, **about)

    def set(self, value: Any) -> None:
        if xla.started() and self.checked(value) != self.value:
            raise ArgumentError(
                f"{self.name} is settled: a device was used already",
                fix=f"set it, or {self.env}, before the first array",
            )
        super().set(value)

    def changes_of(self, value: Any) -> dict[str, Any]:
        raise ArgumentError(
            f"{self.name} holds for the process, not for a block", fix="assign it, before the first array"
        )


class Alias(Setting[T]):
    """Another view of a setting, as with `allow_tf32` and `fp32_precision`.

    Args:
        of: the setting that holds the value.
        read: the view's value, from that of the setting.
        write: the setting's value, from that of the view.
    """

    def __init__(
        self, of: Setting[Any], kind: validators.Kind, doc: str, *, read: Callable[[Any], T], write: Callable[[T], Any]
    ) -> None:
        super().__init__(
            read(of.default), kind, doc, changes=of.changes, elsewhere=of.elsewhere, in_key=of.in_key,
            program=of.program,
        )  # fmt: skip
        self.of, self._read, self._write = of, read, write

    @property
    def value(self) -> T:
        return self._read(self.of.value)

    @property
    def source(self) -> str:
        return self.of.source

    def set(self, value: Any) -> None:
        self.of.set(self._write(self.checked(value)))

    def reset(self) -> None:
        self.of.reset()

    def _put_global(self, value: Any, source: str) -> None:
        self.of._put_global(self._write(value), source)

    def effect(self, platform: str) -> str:
        return self.of.effect(platform)

    def changes_of(self, value: Any) -> dict[str, Any]:
        return self.of.changes_of(self._write(self.checked(value)))


def find(name: str) -> Setting[Any]:
    """Return a setting by its name; dots may be written as underscores.

    Raises:
        SettingError: where there is none, naming the nearest.
    """
    setting = SETTINGS.get(name) or next((s for s in SETTINGS.values() if s.name.replace(".", "_") == name), None)
    if setting is None:
        raise SettingError(
            f"there is no setting {name!r}{nearest(name, SETTINGS)}", fix="backends.describe() shows all settings"
        )
    return setting


def compile_options(platform: str) -> Iterator[tuple[str, Any]]:
    """Yield the compile options that the values of settings stand for, as name and value."""
    for setting in SETTINGS.values():
        if setting.options is not None and platform not in setting.elsewhere:
            yield from setting.options(setting.value, platform).items()


xla.on_compile(compile_options)
