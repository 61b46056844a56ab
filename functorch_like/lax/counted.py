"""fori_loop: a loop over whole numbers; a scan if the bounds are known while tracing, else a while loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from functorch_like import dtypes
from functorch_like.calling.traced_function import check_callable
from functorch_like.calling.type_variables import Carry
from functorch_like.core import Tracer, aval_of
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.lax.loops import loop
from functorch_like.lax.operands import error
from functorch_like.lax.unbounded import run_while
from functorch_like.primitives import elementwise, structural

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, PyTree


@overload
def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[[Array, Carry], Carry],
    init_val: Carry,
    *,
    unroll: int | bool | None = None,
) -> Carry: ...
@overload
def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[[Array, Carry], Carry],
    init_val: PyTree,
    *,
    unroll: int | bool | None = None,
) -> Carry: ...
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Array, Carry], Carry],
    init_val: PyTree,
    *,
    unroll: int | bool | None = None,
) -> Carry:
    """Apply a function for each whole number from `lower` to `upper - 1`.

    It computes what this loop does, as one compiled program::

        val = init_val
        for i in range(lower, upper):
            val = body_fun(i, val)
        return val

    With bounds that are known while tracing it is a `scan`, which has reverse mode. With traced bounds it is a
    `while_loop`, which has only forward mode.

    Args:
        lower: Python int, or integer scalar. If both bounds are floats, the index is a float too: lower, lower + 1, and
            so on below `upper`.
        upper: Python int, or integer scalar; or a float, if `lower` is one.
        body_fun: `(i, val) -> val`; its result has the structure, shapes and dtypes of `val`.
        init_val: the first value, a pytree of arrays and numbers.
        unroll: number of steps in one round of the compiled loop; True for all of them. Only with known bounds.

    Returns:
        The last value; `init_val` where upper is not above lower.

    Raises:
        DtypeError: where a bound is not an integer and not both are floats, or dtypes of the value change.
        ShapeError: where a bound is not a scalar, or shapes of the value change.
        TreeError: where the structure of the value changes.
        ArgumentError: where unroll is not a count, or given with traced bounds; for float bounds too far apart.

    >>> lax.fori_loop(0, 5, lambda i, x: x + i, 100).item()
    110
    """
    check_callable(body_fun, "lax.fori_loop", "lax.fori_loop(lower, upper, lambda i, val: val, init_val)")
    dtype, weak = _bounds_dtype(lower, upper)
    if isinstance(lower, Tracer) or isinstance(upper, Tracer):
        if unroll not in (None, False):
            raise error(
                ArgumentError,
                f"lax.fori_loop got unroll={unroll!r} and traced bounds",
                "make the bounds Python ints, or leave unroll out",
            )
        first, last = (structural.convert_element_type(x, new_dtype=dtype, weak_type=weak) for x in (lower, upper))
        return run_while(_below, body_fun, (first, last, init_val), "fori_loop", _bounded)[2]
    if dtypes.is_float(dtype):
        first, steps = _counted_floats(lower, upper, dtype)
        first = float(first) if weak else first
    else:
        first = int(lower) if weak else np.asarray(int(lower), dtype)
        steps = max(int(upper) - int(lower), 0)
    init = (first, init_val)
    return loop(body_fun, init, None, steps, False, unroll or 1, "fori_loop", _numbered)[0][1]


def _bounds_dtype(lower: Any, upper: Any) -> tuple[np.dtype[Any], bool]:
    avals = []
    for name, x in (("lower", lower), ("upper", upper)):
        aval = aval_of(x)
        if aval.shape:
            raise error(ShapeError, f"{name} of lax.fori_loop is not a scalar: {aval!r}", "give one number")
        avals.append(aval)
    floats = all(dtypes.is_float(aval.dtype) for aval in avals)
    for name, aval in zip(("lower", "upper"), avals, strict=True):
        if not (floats or dtypes.is_integer(aval.dtype)):
            raise error(DtypeError, f"{name} of lax.fori_loop is not a whole number: {aval!r}", "convert it to an int")
    dtype, _ = dtypes.promote(*avals)
    # The index of a loop from a Python number is weakly typed: it takes the dtype of the arrays that it meets.
    return dtype, avals[0].weak_type and dtype in (dtypes.default_int(), dtypes.default_float())


#: Largest float bound: beyond it, adding one to a float32 does nothing.
_MOST_FLOATS = 2**24


def _counted_floats(lower: Any, upper: Any, dtype: np.dtype[Any]) -> tuple[Any, int]:
    """Return the first index and the number of steps below `upper`, counted with the loop's rounding."""
    first, last = np.asarray(lower, dtype), np.asarray(upper, dtype)
    if not (first < last):
        return first, 0
    distance, furthest = float(last) - float(first), min(2 ** (dtypes.finfo(dtype).nmant + 1), _MOST_FLOATS)
    if max(distance, float(last)) > furthest:
        bounds = f"the bounds {float(first)} and {float(last)} of lax.fori_loop in {dtype}"
        raise error(ArgumentError, f"{bounds} are too far to count by ones", "give integers as bounds")
    steps = math.ceil(distance)
    if float(first).is_integer():
        return first, steps
    reached = np.add.accumulate(np.append(first, np.ones(steps + 1, dtype)), dtype=dtype)
    return first, int(np.sum(reached < last))


def _numbered(body: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def step(carry: Any, _: Any) -> Any:
        i, val = carry
        return (_next(i), body(i, val)), None

    return step


def _bounded(body: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def step(carry: Any) -> Any:
        i, last, val = carry
        return _next(i), last, body(i, val)

    return step


def _next(i: Any) -> Any:
    aval = aval_of(i)
    one = next((one for one in (1, 1.0) if aval is aval_of(one)), None)
    return elementwise.add(i, np.ones((), aval.dtype) if one is None else one)


def _below(carry: Any) -> Any:
    return elementwise.lt(carry[0], carry[1])
