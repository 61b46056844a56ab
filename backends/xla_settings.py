"""Settings that belong to XLA as a whole, and are attributes of `backends.xla`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from functorch_like.backends import xla
from functorch_like.backends.flag_blocks import Flags, Module, adopt, flags
from functorch_like.backends.settings import Setting
from functorch_like.backends.validators import Kind, subset_of
from functorch_like.backends.xla import compile_options
from functorch_like.backends.xla.reporting import verbose

#: Liberties of `xla_cpu_enable_fast_math` that XLA:CPU has options to forbid, one for each.
_LIBERTIES = ("nans", "infs", "division", "functions")
_PARTS = ("reassociation", *_LIBERTIES, "min_max")


def _options(parts: tuple[str, ...], platform: str) -> dict[str, Any]:
    min_max = {f"xla_{platform}_enable_fast_min_max": True} if "min_max" in parts and platform in ("cpu", "gpu") else {}
    if platform != "cpu" or not set(parts) - {"min_max"}:
        return min_max
    honoured = {f"xla_cpu_fast_math_honor_{name}": name not in parts for name in _LIBERTIES}
    return {"xla_cpu_enable_fast_math": True, **honoured, **min_max}


def _check(value: Any) -> tuple[tuple[str, Any], ...]:
    if isinstance(value, str):
        return _parse(value)
    return compile_options.check(dict(value))


def _parse(text: str) -> tuple[tuple[str, Any], ...]:
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    return compile_options.check({name.strip(): _value(value.strip()) for name, _, value in pairs})


def _value(text: str) -> bool | int | str:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    return int(text) if text.lstrip("-").isdecimal() else text


class Xla(Module, name="xla"):
    """Settings that are attributes of `backends.xla`."""

    fast_math = Setting[Any](
        (),
        subset_of(*_PARTS),
        "Liberties the compiler may take with floating-point arithmetic: none, all (True), or some by name.\n\n"
        "'reassociation': sums and products in another order; any of the next four implies it. 'nans', 'infs': assume "
        "that there are none. 'division': multiply by the reciprocal. 'functions': less exact elementary functions. "
        "'min_max': minima and maxima need not pass on NaN; the only one with an effect on GPUs.",
        changes="compile options xla_cpu_enable_fast_math, xla_cpu_fast_math_honor_*, xla_*_enable_fast_min_max",
        options=_options,
    )

    compiler_options = Setting[Any](
        (),
        Kind("a dict of XLA's compile options by name, or text: name=value,name=value", _check, _parse),
        "Compile options of XLA, for all programs; those given to `jit(compiler_options=)` take precedence.",
        changes="compile options",
        options=lambda options, platform: dict(options),
    )

    def options(self, values: Mapping[str, Any] | None = None, /, **more: Any) -> Flags:
        """Return a block, or decorator, that adds options of XLA for the programs compiled in it.

        Args:
            values: values of options by name.
            more: the same.

        Returns:
            A context manager, and a decorator.

        Raises:
            ArgumentError: for a value that cannot be an option; for names unknown to XLA, when a program is compiled.

        >>> from functorch_like import backends
        >>> with backends.xla.options(xla_cpu_prefer_vector_width=512):
        ...     dict(backends.xla.compiler_options)
        {'xla_cpu_prefer_vector_width': 512}
        """
        return flags({"xla.compiler_options": {**dict(self.compiler_options), **(values or {}), **more}})

    verbose = staticmethod(verbose)


adopt(xla.__name__, Xla)
