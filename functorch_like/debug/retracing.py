"""`debug.stale_programs`: jitted functions are traced again at each call, and must give the program that runs.

Environment variable, read at import:
    FT_DEBUG_STALE_PROGRAMS  "1": as `debug.set_stale_programs(True)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from functorch_like.backends.external_settings import External
from functorch_like.backends.validators import boolean
from functorch_like.calling import api_boundary
from functorch_like.transforms.stale_programs import CHECKED

if TYPE_CHECKING:
    from functorch_like.typing import Block


@api_boundary.public
def stale_programs(enable: bool = True) -> Block:
    """Raise, in a block or decorated function, where a jitted function has come to mean another program.

    A function is traced once for a signature. What it reads besides its arguments is part of the program: a global, an
    attribute, random numbers of NumPy, the time. If that changes later, calls go on with the earlier program. In the
    block each call traces the function again, and compares the two programs, so this is slow, and effects of Python
    such as `print` happen at each call.

    A function of `jit(control_flow="paths")` whose control flow depends on values is traced anew at each call, and so
    cannot be stale in the block. Programs that were lowered and compiled by `.lower(...).compile()` are not checked.

    Args:
        enable: False ends an outer block's effect.

    Returns:
        A context manager, and a decorator.

    Raises:
        StaleProgramError: (a RuntimeError) inside the block, with the equations that differ.

    >>> import functorch_like as ft
    >>> rate = {"now": 0.1}
    >>> step = ft.jit(lambda w, g: w - rate["now"] * g)
    >>> print(step(1.0, 1.0))
    0.9
    >>> rate["now"] = 0.01
    >>> print(step(1.0, 1.0))
    0.9
    >>> with ft.debug.stale_programs():
    ...     step(1.0, 1.0)
    Traceback (most recent call last):
    ...
    functorch_like.errors.StaleProgramError: the program of <lambda> is stale: its Python code gives another one now:
      before: c: f32[] = mul(0.1..., b)  # ...:1
      now: c: f32[] = mul(0.00..., b)  # ...:1
      at: ...
    """
    return CHECKED.held(bool(enable))


@api_boundary.public
def set_stale_programs(enable: bool) -> None:
    """Check all calls of jitted functions, in all threads, from now on; see `stale_programs`.

    Args:
        enable: True starts the checks, False ends them.

    >>> import functorch_like as ft
    >>> ft.debug.set_stale_programs(True)
    >>> ft.debug.set_stale_programs(False)
    """
    CHECKED.set_global(bool(enable))


set_stale_programs(
    External(
        "debug.stale_programs",
        False,
        "Whether jitted functions are traced again at each call, to find programs that are out of date.",
        changes="whether calls are checked",
        read=lambda: CHECKED.value,
        by="ft.debug.set_stale_programs, or a block of ft.debug.stale_programs",
        env="FT_DEBUG_STALE_PROGRAMS",
        kind=boolean,
    ).initial
)
