"""Settings that are part of jaxlib's jit key: changing one recompiles, changing it back hits the cache again.

A setting has a global value and, inside a `with` block of `held`, a value of its own in one
thread. All must be made at import: one made later costs every function already compiled a miss, and none is ever
removed from the key.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from operator import attrgetter
from typing import Any, TypeVar

from functorch_like.backends.xla.jaxlib_api import _jax

V = TypeVar("V")
_config = _jax.config
_jax_jit = _jax.jax_jit


_traced: list[str] = []
_all: list[Setting] = []


def switched_on(variable: str) -> bool:
    """Return True if an environment variable means yes. `backends.external_settings` refuses other values."""
    return os.environ.get(variable, "").strip().lower() in ("1", "true", "on", "yes")


class ContextValues(frozenset[Any]):
    """Values of user contexts: traces depend on them, and programs only through their traces."""

    __slots__ = ()


class Setting:
    """One value, global and per thread. Values must be hashable and compare by ==."""

    __slots__ = ("_config", "name", "restore", "set_global", "set_local", "swap_local")

    def __init__(self, name: str, default: Any, in_jit_key: bool, in_trace_key: bool) -> None:
        config = _config.Config(
            f"functorch_like_{name}", default, include_in_jit_key=in_jit_key, include_in_trace_context=in_trace_key
        )
        self._config, self.name = config, name
        self.set_global = config.set_global
        self.set_local = config.set_local  # stays until `unset_local`
        self.swap_local = config.swap_local  # returns a token for `restore`
        self.restore = config.set_local  # the token may be jaxlib's "unset"

    #: This thread's value, else the global one.
    value: Any = property(attrgetter("_config.value"))  # no Python function: it is read at each operation

    @property
    def global_value(self) -> Any:
        """The value of threads that have none of their own."""
        return self._config.get_global()

    @contextmanager
    def held(self, value: V) -> Generator[V]:
        """A block in which this thread has a value."""
        token = self.swap_local(value)
        try:
            yield value
        finally:
            self.restore(token)

    def unset_local(self) -> None:
        """Drop this thread's own value."""
        self._config.set_local(_config.unset)

    def __repr__(self) -> str:
        return f"Setting({self.name}={self.value!r})"


def config(name: str, default: Any, *, in_jit_key: bool = True, in_trace_key: bool | None = None) -> Setting:
    """Make a setting; call this at import time only.

    `in_jit_key` makes C++ look again when it changes; `in_trace_key` (the same by default) makes it part of
    `settings`.
    """
    in_trace_key = in_jit_key if in_trace_key is None else in_trace_key
    if in_trace_key:
        _traced.append(name)
    made = Setting(name, default, in_jit_key, in_trace_key)
    _all.append(made)
    return made


def snapshot() -> list[Any]:
    """This thread's values of all settings, for `adopted`."""
    return [setting.value for setting in _all]


@contextmanager
def adopted(values: list[Any]) -> Generator[None]:
    """A block in which this thread has the values that `snapshot` took in another one."""
    with ExitStack() as stack:
        for setting, value in zip(_all, values, strict=False):
            stack.callback(setting.restore, setting.swap_local(value))
        yield


# C++ refuses to run a compiled function until these three are set.
_disable_jit = config("cpp_disable_jit", False)  # stays False: disable_jit is done above, where tracers are known
_enable_x64 = config("cpp_enable_x64", True)  # 64-bit types always work; anything else would squash data silently
_post_hook = config("cpp_post_hook", None, in_jit_key=False)
# Set in the child of a fork, whose C++ threads are gone: every compiled function then comes to Python, which refuses.
forked = config("forked", False)
# The mesh that partition specs without one refer to. Traces depend on it.
current_mesh = config("mesh", None)
# True to run programs whose operands may all be moved on the mesh of `set_mesh`. Set under JAX's names only.
programs_on_mesh = config("programs_on_mesh", False)
# True where the caller splits a result itself: doubts how Explicit axes split it are then resolved in any way.
explicit_resolved = config("explicit_resolved", False)
# The axes of a `shard_map` with `check_vma=True` whose function is being traced.
checked_axes = config("checked_axes", ())
# Values of user contexts that differ from their defaults (transforms/user_context.py).
user_contexts = config("user_contexts", ContextValues())
# Attributes of the operations that are recorded: pairs of a name and a text (experimental/xla_metadata.py).
xla_metadata = config("xla_metadata", ())

_jax_jit.set_disable_jit_state(_disable_jit._config)
_jax_jit.set_enable_x64_state(_enable_x64._config)
_jax_jit.set_post_hook_state(_post_hook._config)


def setting_names() -> list[str]:
    """The names of the values of `settings`, in its order."""
    return list(_traced)


def settings() -> tuple[Any, ...]:
    """This thread's values of all settings that change traces: part of the key of every cache of traces."""
    return _config.trace_context()
