"""`control_dep` and `schedule`: the order in which the compiler computes values that do not depend on each other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from functorch_like.calling import api_boundary
from functorch_like.core import Tracer, aval_of
from functorch_like.primitives.effects.control_dep import control_dep as primitive

if TYPE_CHECKING:
    from functorch_like.typing import ArrayLike


@api_boundary.public
def control_dep(src: ArrayLike, dst: ArrayLike) -> None:
    """Have the compiler compute one value before another; in eager mode values are computed in the order of calls.

    Args:
        src: an array, computed first.
        dst: an array, computed after it. It must not be an input of `src`.

    Raises:
        DtypeError: for something that is no array.
        UnsupportedError: in programs for GPUs.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> from functorch_like.experimental.control_deps import control_dep
    >>> @ft.jit
    ... def f(x):
    ...     a, b = x + 1, x * 2
    ...     control_dep(a, b)
    ...     return a + b
    >>> int(f(3))
    10
    """
    for x in (src, dst):
        aval_of(x)  # which refuses what is no array
    if isinstance(src, Tracer) or isinstance(dst, Tracer):
        primitive(src, dst)


@api_boundary.public
def schedule(ops: Sequence[ArrayLike]) -> None:
    """Have the compiler compute values one after another: `control_dep` of each and the next.

    Args:
        ops: arrays in the order of their computation.

    Raises:
        DtypeError: for something that is no array.
        UnsupportedError: in programs for GPUs.

    >>> import functorch_like as ft
    >>> from functorch_like.experimental.control_deps import schedule
    >>> f = ft.jit(lambda x: [schedule(ops := [x + 1, x + 2, x + 3]), sum(ops)][1])
    >>> int(f(1))
    9
    """
    for first, then in pairwise(ops):
        control_dep(first, then)
