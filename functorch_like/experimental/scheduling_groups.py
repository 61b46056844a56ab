"""`scheduling_group`: parts of a program that XLA's scheduler keeps together."""

from __future__ import annotations

from collections.abc import Callable

from functorch_like.calling.type_variables import F
from functorch_like.experimental.xla_metadata import text
from functorch_like.experimental.xla_metadata import xla_metadata_call as xla_metadata_call


def scheduling_group(name: str | int) -> Callable[[F], F]:
    """Return a decorator that puts the operations of a function into a group of XLA's scheduler.

    The function is one call in the program, with the attribute `scheduling_group`. Schedulers for CPUs ignore it.

    Args:
        name: name of the group, as text or number.

    Returns:
        A decorator of functions of arguments by position.

    >>> import functorch_like as ft
    >>> from functorch_like.experimental.scheduling_groups import scheduling_group
    >>> f = ft.jit(scheduling_group("first")(lambda x: x * x))
    >>> 'scheduling_group = "first"' in f.lower(3.0).as_text()
    True
    """
    return xla_metadata_call(scheduling_group=text("scheduling_group", name))
