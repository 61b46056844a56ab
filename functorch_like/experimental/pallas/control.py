"""Control flow in kernels: `when` and `loop`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like.calling.traced_function import wraps
from functorch_like.calling.type_variables import Carry
from functorch_like.core import ArrayImpl, Tracer
from functorch_like.errors import ArgumentError
from functorch_like.experimental.pallas.environment import as_int32
from functorch_like.experimental.pallas.sizes import cdiv
from functorch_like.lax.branches import cond
from functorch_like.lax.counted import fori_loop

if TYPE_CHECKING:
    from functorch_like.typing import ArrayLike


def when(condition: ArrayLike) -> Callable[[Callable[[], object]], None]:
    """Run a function where a condition holds; it writes its results into Refs.

    Args:
        condition: a boolean scalar, or a number; known or traced.

    Returns:
        A decorator that runs a function without arguments.

    Raises:
        DtypeError: for a condition that is not a number.
        ShapeError: for one that is not a scalar.

    Example:
        >>> import functorch_like as ft, functorch_like.numpy as fnp
        >>> from functorch_like.experimental import pallas as pl
        >>> def kernel(x_ref, o_ref):
        ...     @pl.when(pl.program_id(0) == 0)
        ...     def _():
        ...         o_ref[...] = fnp.zeros_like(o_ref[...])
        ...     o_ref[...] += x_ref[...]
        >>> spec = pl.BlockSpec((2,), lambda i: i)
        >>> out, total = ft.ShapeDtypeStruct((2,), "float32"), pl.BlockSpec((2,), lambda i: 0)
        >>> f = pl.pallas_call(kernel, out, grid=3, in_specs=[spec], out_specs=total)
        >>> f(fnp.arange(6.0)).tolist()
        [6.0, 9.0]
    """

    def run(fun: Callable[[], object]) -> None:
        if not isinstance(condition, (Tracer, ArrayImpl)):
            if condition:
                fun()
            return

        @wraps(fun)
        def true_fun() -> None:
            fun()

        cond(condition, true_fun, lambda: None)

    return run


def loop(
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    init_carry: Carry | None = None,
    step: ArrayLike = 1,
    unroll: int | bool | None = None,
) -> Callable[[Callable[..., Carry | None]], Carry | None]:
    """Run a function for whole numbers from `lower` on, below `upper`.

    Args:
        lower: the first number; known or traced.
        upper: the end.
        init_carry: a pytree of arrays that the function takes and returns; None if it writes Refs alone.
        step: distance between two numbers, at least 1.
        unroll: number of steps in one round of the compiled loop; True for all of them.

    Returns:
        A decorator that runs a function of the number, and of the carry if there is one. It returns the last carry.

    Raises:
        ArgumentError: for a known step below 1.

    Example:
        >>> import functorch_like as ft
        >>> from functorch_like.experimental import pallas as pl
        >>> def kernel(o_ref):
        ...     @pl.loop(0, 6)
        ...     def _(i):
        ...         o_ref[i] = i * i
        >>> pl.pallas_call(kernel, ft.ShapeDtypeStruct((6,), "int32"))().tolist()
        [0, 1, 4, 9, 16, 25]
    """
    begin: Any = lower
    end: Any = upper
    pace: Any = step
    known = not any(isinstance(x, (Tracer, ArrayImpl)) for x in (begin, end, pace))
    if not isinstance(pace, (Tracer, ArrayImpl)) and pace < 1:
        raise ArgumentError(f"pl.loop got step={step!r}", fix="give a step of at least 1; reverse indices in the body")

    def run(body: Callable[..., Any]) -> Any:
        simple = known and begin == 0 and pace == 1
        count: Any = cdiv(end - begin, pace)
        if known:
            count, first, stride = (np.asarray(x, np.int32) for x in (max(count, 0), begin, pace))
        else:
            count, first, stride = map(as_int32, (count, begin, pace))

        @wraps(body)
        def each(k: Any, carry: Any) -> Any:
            i = k if simple else k * stride + first
            if init_carry is None:
                body(i)
                return None
            return body(i, carry)

        return fori_loop(np.zeros((), np.int32), count, each, init_carry, unroll=unroll)

    return run
