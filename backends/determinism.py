"""Settings for the same bits in every run.

A compiled program for CPUs gives the same bits each time on one machine; but `compilation.tiers` compiles a program
twice, and the last digits may change when the optimised form takes over. On GPUs sums may be added up in another order
each time (scatter, max pooling backwards, products whose sums several units share), and XLA chooses kernels by timing
them. With `use_deterministic_algorithms` programs for CPUs are optimised at once; on GPUs XLA takes slower kernels with
a fixed order, and does not time. Other machines, versions of XLA and settings may give other bits all the same.
https://openxla.org/xla/determinism
"""

from __future__ import annotations

import warnings
from typing import Any

from functorch_like.backends import cudnn
from functorch_like.backends.flag_blocks import Module
from functorch_like.backends.settings import Setting
from functorch_like.backends.validators import Kind, one_of, parse_boolean
from functorch_like.errors import ArgumentError, UnsupportedError

_MODES = ("off", "warn", "on")
_mode = one_of(*_MODES).check


def _check(value: Any) -> str:
    if isinstance(value, bool):
        return ("off", "on")[value]
    return _mode(value)


def _parse(text: str) -> str:
    return "warn" if text.strip().lower() == "warn" else ("off", "on")[parse_boolean(text)]


class Determinism(Module):
    """The setting that is an attribute of `backends` itself."""

    deterministic_algorithms = Setting(
        "off",
        Kind("'off', 'warn' or 'on'", _check, _parse, _MODES),
        "Whether programs must give the same bits in each run.\n\n"
        "'on': kernels with a fixed order of sums, chosen without timing; operations that have none are refused before "
        "anything is compiled. 'warn': these are warned of. Programs are optimised at once, whatever "
        "`compilation.tiers` says, because the last digits may differ between tiers.",
        changes="compile option xla_gpu_deterministic_ops; how select_and_scatter is lowered; tiers",
        options=lambda mode, platform: (
            {} if mode == "off" or platform == "cpu" else {"xla_gpu_deterministic_ops": True}
        ),
    )


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Require the same bits in each run, in every thread; or lift that requirement.

    Args:
        mode: True to require it, False to lift it.
        warn_only: warn of operations that have no deterministic implementation, instead of refusing them.

    Raises:
        ArgumentError: for a mode that is not True or False.

    >>> from functorch_like import backends
    >>> backends.use_deterministic_algorithms(True); backends.are_deterministic_algorithms_enabled()
    True
    >>> backends.use_deterministic_algorithms(False)
    """
    if not isinstance(mode, bool):
        raise ArgumentError(f"use_deterministic_algorithms got mode={mode!r}", fix="give True or False")
    Determinism.deterministic_algorithms.set("off" if not mode else "warn" if warn_only else "on")


def are_deterministic_algorithms_enabled() -> bool:
    """Return True if programs must give the same bits in each run.

    >>> from functorch_like import backends
    >>> with backends.flags(deterministic_algorithms="on"):
    ...     backends.are_deterministic_algorithms_enabled()
    True
    """
    return Determinism.deterministic_algorithms.value != "off"


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return True if operations that are not deterministic give a warning, in place of an error.

    >>> from functorch_like import backends
    >>> with backends.flags(deterministic_algorithms="warn"):
    ...     backends.is_deterministic_algorithms_warn_only_enabled()
    True
    """
    return Determinism.deterministic_algorithms.value == "warn"


def wanted() -> bool:
    """Return True if primitives must lower to operations with a fixed order of sums."""
    return are_deterministic_algorithms_enabled() or cudnn.deterministic


def refuse(what: str, fix: str) -> None:
    """Refuse an operation, or warn, while lowering: no deterministic form of it exists on the platform.

    Args:
        what: the operation, and why it is not deterministic.
        fix: the remedy.

    Raises:
        UnsupportedError: unless the setting is 'warn'.
    """
    if is_deterministic_algorithms_warn_only_enabled():
        warnings.warn(f"{what}. {fix}", stacklevel=2)
        return
    raise UnsupportedError(what, fix=f"{fix}; or backends.use_deterministic_algorithms(True, warn_only=True)")
