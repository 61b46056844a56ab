"""Ordinary differential equations: `odeint`, in compiled loops, with derivatives by the adjoint equation.

J. R. Dormand, P. J. Prince, "A family of embedded Runge-Kutta formulae", 1980; step sizes and values in between from
E. Hairer, S. P. Nørsett, G. Wanner, "Solving Ordinary Differential Equations I", Springer 1993, II.4 and II.6.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from functorch_like import dtypes, flatten_util, lax, tree
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.transforms.closure_convert import closure_convert
from functorch_like.transforms.custom.custom_vjp import custom_vjp
from functorch_like.transforms.jvp_vjp import vjp
from functorch_like.transforms.vmap import vmap

if TYPE_CHECKING:
    from functorch_like.calling.type_variables import T
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, PyTree

__all__ = ("odeint",)

Field = Callable[..., Any]

# The tableau: times, and weights of each slope; the last row is the result, whose slope begins the next step.
_NODES = np.array([1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1])
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
# The result less that of the method of fourth order; and weights that give values in between of fourth order.
_ERROR = np.array([71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40])
_BETWEEN = np.array([
    -12715105075 / 11282082432, 0, 87487479700 / 32700410799, -10690763975 / 1880347072, 701980252875 / 199316789632,
    -1453857185 / 822651844, 69997945 / 29380423,
])  # fmt: skip


class _Limits(NamedTuple):
    """Relative and absolute error of a step, number of steps between two times, and length of a step."""

    rtol: float
    atol: float
    most: float
    longest: float


@overload
def odeint(
    func: Field,
    y0: ArrayLike,
    t: ArrayLike,
    *args: PyTree,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = math.inf,
    hmax: float = math.inf,
) -> Array: ...
@overload
def odeint(
    func: Field,
    y0: T,
    t: ArrayLike,
    *args: PyTree,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = math.inf,
    hmax: float = math.inf,
) -> T: ...
def odeint(
    func: Field,
    y0: Any,
    t: ArrayLike,
    *args: PyTree,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = math.inf,
    hmax: float = math.inf,
) -> Any:
    """The solution of dy/dt = func(y, t, *args) at some times, by steps whose length follows from their error.

    In reverse mode the adjoint equation is solved backwards in time, in little memory: R. T. Q. Chen et al., "Neural
    ordinary differential equations", arXiv:1806.07366. There is no forward mode.

    Args:
        func: of y, the time and args; gives the derivative, a pytree like y. It may close over arrays, whose
            derivatives pass, too.
        y0: y at the first time: an array of floats, or a pytree of them of one dtype.
        t: (n,): ascending times, in the unit that func takes; the first is that of y0.
        args: pytrees of arrays.
        rtol: relative error of a step.
        atol: absolute error of a step. Both are bounded by the dtype: in float32 not below about 1e-6.
        mxstep: the greatest number of steps between two times; beyond it the result is NaN.
        hmax: the greatest length of a step.

    Returns:
        y at all times: like y0, with a first dimension of n.

    Raises:
        ShapeError: for a t that is not a vector, or a derivative that is not like y.
        DtypeError: for a y0 or t that is not of floats.
        ArgumentError: for tolerances that are not positive.

    >>> decay = ft.experimental.ode.odeint(lambda y, t: -y, fnp.float64(1.0), fnp.asarray([0.0, 1.0]))
    >>> bool(fnp.allclose(decay[1], np.exp(-1.0)))
    True
    """
    what = "experimental.ode.odeint"
    if not (rtol >= 0 and atol >= 0 and rtol + atol > 0 and hmax > 0):
        raise promotion.error(
            ArgumentError, f"{what} with rtol={rtol}, atol={atol}, hmax={hmax}", "give positive tolerances and hmax"
        )
    times = fnp.asarray(t) if not promotion.is_array(t) else t
    if aval_of(times).ndim != 1 or not aval_of(times).size:
        raise promotion.error(
            ShapeError, f"the times of {what}, {aval_of(times)!r}, are not a vector", "give one time at least"
        )
    vector, unravel = flatten_util.ravel_pytree(y0)
    dtype = aval_of(vector).dtype
    if dtype.kind not in "fc":
        raise promotion.error(DtypeError, f"y0 of {what} is of {dtype.name}", "give floats")
    leaves, structure = tree.flatten(args)
    moving = [i for i, x in enumerate(leaves) if dtypes.is_inexact(aval_of(x).dtype)]

    def field(y: Any, time: Any, *some: Any) -> Any:
        whole = list(leaves)
        for i, x in zip(moving, some, strict=True):
            whole[i] = x
        slope, _ = flatten_util.ravel_pytree(func(unravel(y), time, *structure.unflatten(whole)))
        if aval_of(slope).shape != aval_of(y).shape:
            raise promotion.error(
                ShapeError, f"the function of {what} gives {aval_of(slope).size} elements of {aval_of(y).size}",
                "return the derivative of each element of y",
            )  # fmt: skip
        return slope.astype(dtype)

    times = promotion.convert(times, dtypes.real_part(dtype))
    inputs = [fnp.asarray(leaves[i]) for i in moving]
    convertible, consts = closure_convert(field, vector, times[0], *inputs)
    out = _solved(convertible, _Limits(rtol, atol, mxstep, hmax), vector, times, *inputs, *consts)
    return vmap(unravel)(out)


# ------------------------------------------------------------------------------------------------------------- forward
@functools.partial(custom_vjp, nondiff_argnums=(0, 1))
def _solved(field: Field, limits: _Limits, y: Any, times: Any, *args: Any) -> Any:
    of = lambda y, t: field(y, t, *args)

    def target(carry: Any, time: Any) -> tuple[Any, Any]:
        def more(state: Any) -> Any:
            tried, (t, step, *_) = state
            return (t < time) & (tried < limits.most) & (t + step > t)  # NaN makes steps vanish

        tried, (t, step, y, slope, last) = lax.while_loop(more, lambda s: (s[0] + 1, _step(of, limits, *s[1])), carry)
        start, length, values = last
        at = (time - start) / fnp.where(length > 0, length, 1)
        value = fnp.where(t < time, fnp.nan, _between(values, at))
        return (0 * tried, (t, step, y, slope, last)), value.astype(aval_of(y).dtype)

    start, slope = times[0], of(y, times[0])
    last = (start, fnp.zeros_like(start), (y, *[fnp.zeros_like(y)] * 4))
    state = (start, _first(of, limits, start, y, slope), y, slope, last)
    _, rows = lax.scan(target, (fnp.zeros((), times.dtype), state), times[1:])
    return fnp.concatenate([y[None], rows])


def _step(field: Field, limits: _Limits, t: Any, length: Any, y: Any, slope: Any, last: Any) -> tuple[Any, ...]:
    """Try a step: return the state after it if its error is small enough, else the same state; and the next length."""
    slopes = [slope]
    for node, row in zip(_NODES, _STAGES, strict=True):
        slopes.append(field(y + length * _sum(row, slopes), (t + node * length).astype(t.dtype)))
    new = y + length * _sum(_STAGES[-1], slopes)
    error = _size(length * _sum(_ERROR, slopes), y, new, limits)
    good = error <= 1  # NaN is not
    factor = fnp.clip(0.9 * fnp.where(error > 0, error, 1e-10) ** -0.2, 0.2, fnp.where(good, 10, 1))
    following = fnp.minimum(length * fnp.where(fnp.isnan(factor), 0.2, factor), limits.longest).astype(t.dtype)
    # The polynomial of Hairer, Nørsett, Wanner, II.6.
    rise, first = new - y, length * slope - (new - y)
    values = (y, rise, first, rise - length * slopes[-1] - first, length * _sum(_BETWEEN, slopes))
    moved = ((t + length).astype(t.dtype), new, slopes[-1], (t, length, values))
    before = (t, y, slope, last)
    t, y, slope, last = tree.map(lambda a, b: fnp.where(good, a, b), moved, before)
    return t, following, y, slope, last


def _sum(row: Any, slopes: Any) -> Any:
    parts = [float(c) * k for c, k in zip(row, slopes, strict=False) if c]
    return functools.reduce(lambda a, b: a + b, parts)


def _between(values: Any, at: Any) -> Any:
    y, rise, first, second, third = values
    return y + at * (rise + (1 - at) * (first + at * (second + (1 - at) * third)))


def _size(x: Any, y: Any, new: Any, limits: _Limits) -> Any:
    """Return the root of the mean square of x, relative to the tolerance."""
    if not aval_of(x).size:
        return fnp.zeros((), dtypes.real_part(aval_of(x).dtype))
    scaled = fnp.abs(x) / (limits.atol + limits.rtol * fnp.maximum(fnp.abs(y), fnp.abs(new)))
    return fnp.sqrt(fnp.mean(scaled**2))


def _first(field: Field, limits: _Limits, t: Any, y: Any, slope: Any) -> Any:
    """Return a length for the first step: Hairer, Nørsett, Wanner, II.4."""
    y_size, slope_size = _size(y, y, y, limits), _size(slope, y, y, limits)
    guess = fnp.where((y_size < 1e-5) | (slope_size < 1e-5), 1e-6, 0.01 * y_size / fnp.where(slope_size, slope_size, 1))
    bend = _size(field(y + guess * slope, (t + guess).astype(t.dtype)) - slope, y, y, limits) / guess
    most = fnp.maximum(slope_size, bend)
    second = fnp.where(most <= 1e-15, fnp.maximum(1e-6, guess * 1e-3), (0.01 / fnp.where(most > 0, most, 1)) ** 0.2)
    return fnp.minimum(fnp.minimum(100 * guess, second), limits.longest).astype(t.dtype)


# ------------------------------------------------------------------------------------------------------------- adjoint
def _forward(field: Field, limits: _Limits, y: Any, times: Any, *args: Any) -> tuple[Any, Any]:
    rows = _solved(field, limits, y, times, *args)
    return rows, (rows, times, args)


def _backward(field: Field, limits: _Limits, kept: Any, ct: Any) -> Any:
    """Integrate backwards over each interval: y, its cotangent, and the cotangents of time and args."""
    rows, times, args = kept
    real = times.dtype

    def augmented(state: Any, back: Any, *args: Any) -> Any:
        y, y_ct, *_ = state
        slope, pull = vjp(lambda y, *args: field(y, -back, *args), y, *args)
        y_dot, *args_dot = pull(y_ct)
        return (-slope, y_dot, *args_dot)

    def interval(carry: Any, rows_of_steps: Any) -> tuple[Any, Any]:
        y_ct, args_ct = carry
        row, end, start, row_ct, before_ct = rows_of_steps
        state, unravel = flatten_util.ravel_pytree((row, y_ct, *args_ct))
        flat = lambda v, back, *args: flatten_util.ravel_pytree(augmented(unravel(v), back, *args))[0]
        out = _solved(flat, limits, state, fnp.stack([-end, -start]), *args)[1]
        _, y_ct, *args_ct = unravel(out)
        moved = _real_inner(field(row, end, *args), row_ct, real)
        return (y_ct + before_ct, tuple(args_ct)), moved

    start = (ct[-1], tuple(fnp.zeros_like(a) for a in args))
    rows_of_steps = (rows[1:], times[1:], times[:-1], ct[1:], ct[:-1])
    (y_ct, args_ct), times_ct = lax.scan(interval, start, rows_of_steps, reverse=True)
    # A later start shortens the interval.
    first = _real_inner(field(rows[0], times[0], *args), ct[0] - y_ct, real)
    return (y_ct, fnp.concatenate([first[None], times_ct]), *args_ct)


def _real_inner(x: Any, y: Any, dtype: Any) -> Any:
    return fnp.sum(fnp.real(x * y)).astype(dtype)


_solved.defvjp(_forward, _backward)
