"""Choosing a function by the platform that a program is compiled for: platform_dependent."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from functorch_like.calling import traced_function
from functorch_like.compiler.placement import device_for
from functorch_like.core import state
from functorch_like.errors import ArgumentError, UnsupportedError
from functorch_like.lax.branches import check_functions, choose
from functorch_like.lax.operands import error
from functorch_like.primitives.effects.platform_index import index_of, platform_index

if TYPE_CHECKING:
    from functorch_like.calling.type_variables import R
    from functorch_like.typing import PyTree


PLATFORMS = ("cpu", "gpu", "cuda")
#: Platforms of JAX that are not supported: their functions are ignored.
_OTHERS = ("tpu", "rocm")


def platform_dependent(*args: PyTree, default: Callable[..., R] | None = None, **per_platform: Callable[..., R]) -> R:
    """Return the result of one of several functions, chosen by the platform that the program is compiled for.

    Args:
        args: pytrees of arrays, passed to the function.
        default: the function for all other platforms.
        per_platform: functions by the name of the platform: `cpu=`, `gpu=` or `cuda=`. All functions return pytrees of
            one structure, with the same shapes and dtypes. Functions for `tpu=` and `rocm=` are ignored.

    Returns:
        The result of the function that is chosen.

    Raises:
        ArgumentError: for an unknown platform, or no function at all.
        UnsupportedError: where there is neither a function for the platform nor a default.
        ShapeError, DtypeError, TreeError: where the functions return results of different types.

    >>> float(lax.platform_dependent(2.0, cpu=lambda x: x + 1, default=lambda x: 1 + x))
    3.0
    """
    by_platform = {**per_platform, **({} if default is None else {"default": default})}
    by_platform = {name: fun for name, fun in by_platform.items() if name not in _OTHERS}
    unknown = [name for name in by_platform if name not in (*PLATFORMS, "default")]
    if unknown or not (by_platform or per_platform):
        raise error(
            ArgumentError,
            f"lax.platform_dependent takes functions for {PLATFORMS} and default=, got {list(by_platform)}",
            "give at least one function, under these names only",
        )
    if not by_platform:
        raise error(
            UnsupportedError,
            f"lax.platform_dependent got functions for {', '.join(per_platform)} only, and no default=",
            f"give a function for one of {', '.join(PLATFORMS)}, or default=",
        )
    functions = tuple(by_platform.values())
    check_functions(functions, "platform_dependent")
    if state.trace.staging:
        which = platform_index(platforms=tuple(by_platform))
        return choose(which, functions, args, "platform_dependent", range(len(functions)))
    return functions[index_of(device_for(traced_function.arguments(args).leaves).platform, tuple(by_platform))](*args)
