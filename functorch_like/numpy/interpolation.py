"""`interp`: linear interpolation between given points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.coordinates import distance
from functorch_like.numpy.indexing import elements
from functorch_like.numpy.operands import given, known
from functorch_like.transforms.eager_jit import eager_jit, with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


@with_kernel(3, values=("left", "right", "period"))
def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | None = None,
    right: ArrayLike | None = None,
    period: ArrayLike | None = None,
) -> Array:
    """The values at x of the function that is linear between the points (xp, fp).

    Args:
        x: the points: array or number.
        xp: (n,), increasing; or in any order with a period.
        fp: (n,), real or complex.
        left: value for x < xp[0]: a number, fp[0] by default; or "extrapolate" to continue the first line.
        right: value for x > xp[-1], likewise; fp[-1] by default.
        period: period of the function.

    Returns:
        Floats, of the shape of x.

    Raises:
        ShapeError: where xp and fp differ in size, or are empty.
        ArgumentError: for period 0, or other strings.

    >>> fnp.interp([0.5, 3.0], [0.0, 1.0, 2.0], [0.0, 10.0, 30.0]).tolist()
    [5.0, 30.0]
    """
    ends = {"left": left, "right": right}
    for name, end in ends.items():
        if isinstance(end, str) and end != "extrapolate":
            raise promotion.error(ArgumentError, f"fnp.interp: {name}={end!r}", "give a number or 'extrapolate'")
    beyond = tuple(name for name, end in ends.items() if isinstance(end, str))
    left, right = (None if isinstance(end, str) else end for end in (left, right))
    x, xp, fp, left, right, period = given(x, xp, fp, left, right, period)
    a, b = aval_of(xp), aval_of(fp)
    if a.ndim != 1 or a.shape != b.shape or not a.size:
        raise promotion.error(
            ShapeError, f"fnp.interp between {a!r} and {b!r}", "give one dimension, of one size above 0"
        )
    if period is not None:
        value = known(period)
        if value is not None and value == 0:
            raise promotion.error(
                ArgumentError, "fnp.interp takes a nonzero period, got 0", "give another, or leave it out"
            )
    return _interp(x, xp, fp, left, right, period, beyond=beyond)


@eager_jit(static=("beyond",), ints=True)
def _interp(x: Any, xp: Any, fp: Any, left: Any, right: Any, period: Any, beyond: tuple[str, ...]) -> Any:
    x, xp = promotion.promote(x, xp)
    fp = promotion.to_inexact(fp)
    dtype, weak = dtypes.promote(aval_of(promotion.to_inexact(x)), aval_of(fp))
    fit = lambda v: promotion.convert(v, dtypes.real_part(dtype), weak)
    if period is not None or dtypes.is_inexact(aval_of(xp).dtype):
        x, xp = fit(x), fit(xp)
    if period is not None:
        period = fnp.abs(period)
        x, xp = x % period, xp % period
        order = fnp.argsort(xp)
        xp, fp = xp[order], fp[order]
        xp = fnp.concatenate([xp[-1:] - period, xp, xp[:1] + period])
        fp = fnp.concatenate([fp[-1:], fp, fp[:1]])
    n = aval_of(xp).size
    if n == 1:
        out = fp[0] + fit(fnp.zeros_like(x))
    else:
        i = fnp.clip(fnp.searchsorted(xp, x, side="right"), 1, n - 1)
        (x0, x1), (y0, y1) = ([elements(v, i - 1), elements(v, i)] for v in (xp, fp))
        width = distance(x1, x0)
        jump = width == 0
        part = fit(distance(x, x0) / fnp.where(jump, 1, width))
        rise = y1 - y0
        finite, from_finite, to_finite = map(fnp.isfinite, (rise, y0, y1))
        still = ~finite & ((part == 0) | (~from_finite & to_finite))  # on or right of a point, which is its value
        rise = fnp.where(still, 0, rise)
        out = fnp.where(jump, y1, y0 + part * rise)
        out = fnp.where(x == x1, y1, out)  # exact at the points
    if period is None:
        if "left" not in beyond:
            out = fnp.where(x < xp[0], fp[0] if left is None else left, out)
        if "right" not in beyond:
            out = fnp.where(x > xp[-1], fp[-1] if right is None else right, out)
    return out
