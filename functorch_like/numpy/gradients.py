"""`gradient`: derivatives of sampled functions, by differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import axis_of
from functorch_like.numpy.coordinates import distance
from functorch_like.numpy.joining import _cut
from functorch_like.numpy.operands import given
from functorch_like.transforms.eager_jit import eager_jit, with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, NestedArrayLike


@overload
def gradient(
    f: NestedArrayLike, *varargs: ArrayLike | Sequence[ArrayLike], axis: int, edge_order: int | None = None
) -> Array: ...
@overload
def gradient(
    f: NestedArrayLike, *varargs: ArrayLike | Sequence[ArrayLike], axis: Sequence[int], edge_order: int | None = None
) -> list[Array]: ...
@overload
def gradient(
    f: NestedArrayLike, *varargs: ArrayLike | Sequence[ArrayLike], axis: None = None, edge_order: int | None = None
) -> Any: ...
@with_kernel(1)
def gradient(
    f: NestedArrayLike,
    *varargs: ArrayLike | Sequence[ArrayLike],
    axis: int | Sequence[int] | None = None,
    edge_order: int | None = None,
) -> Any:
    """Derivatives along axes: differences of neighbouring elements, central differences inside.

    Args:
        f: the samples.
        varargs: distances: one number for all axes, or, for each axis, a number or the coordinates; 1 by default.
        axis: one or several; all by default.
        edge_order: order of the differences at the ends, 1 (the default) or 2.

    Returns:
        An array of the shape of f, in floating point; a list of them for several axes.

    Raises:
        ArgumentError: for a wrong number of distances, or another edge_order.
        ShapeError: for coordinates of another size, and axes of fewer than edge_order + 1 samples.

    >>> fnp.gradient(fnp.asarray([1.0, 2.0, 4.0, 8.0])).tolist()
    [1.0, 1.5, 3.0, 4.0]
    """
    f, *distances = given(f, *varargs)
    aval, order = aval_of(f), 1 if edge_order is None else edge_order
    if order not in (1, 2):
        raise promotion.error(ArgumentError, f"fnp.gradient with edge_order={edge_order}", "use 1 or 2")
    single = axis is not None and not isinstance(axis, Sequence)
    listed = list(range(aval.ndim)) if axis is None else [axis] if single else list(axis)  # type: ignore[arg-type]
    axes = tuple(axis_of(a, aval.ndim, "fnp.gradient") for a in listed)
    if len(distances) not in (0, 1, len(axes)) or len(set(axes)) != len(axes):
        raise promotion.error(
            ArgumentError,
            f"fnp.gradient over axes {axes} with {len(distances)} distances",
            "give one for all, or one for each; name each axis once",
        )
    if len(distances) == 1 and len(axes) > 1 and aval_of(distances[0]).ndim:
        raise promotion.error(ArgumentError, "fnp.gradient with coordinates of one of its axes", "give them for each")
    distances = distances * len(axes) if len(distances) == 1 else distances or [1] * len(axes)
    for d, h in zip(axes, distances, strict=True):
        if aval.shape[d] <= order:
            raise promotion.error(
                ShapeError, f"fnp.gradient of {aval!r} along axis {d}", f"give more than {order} samples"
            )
        if aval_of(h).ndim and aval_of(h).shape != (aval.shape[d],):
            raise promotion.error(
                ShapeError, f"fnp.gradient of {aval!r} along axis {d} with {aval_of(h)!r}", "give one coordinate each"
            )
    result = [_along(f, h, d=d, order=order) for d, h in zip(axes, distances, strict=True)]
    return result[0] if len(result) == 1 else result


@eager_jit(static=("d", "order"), ints=True)
def _along(f: Any, h: Any, d: int, order: int) -> Any:
    dtype, weak = dtypes.promote(*(aval_of(promotion.to_inexact(v)) for v in (f, h)))
    n, rank = aval_of(f).shape[d], aval_of(f).ndim
    at = lambda start, stop: _cut(f, d, start, stop)
    rises = distance(at(1, n), at(0, n - 1))
    rise = lambda k: _cut(rises, d, k % (n - 1), k % (n - 1) + 1)
    if not aval_of(h).ndim:
        inner = distance(at(2, n), at(0, n - 2)) / (2 * h)
        if order == 1:
            first, last = rise(0) / h, rise(-1) / h
        else:
            first, last = (1.5 * rise(0) - 0.5 * rise(1)) / h, (1.5 * rise(-1) - 0.5 * rise(-2)) / h
    else:  # parabolas through three points
        steps = distance(h[1:], h[:-1])
        wide = lambda s: fnp.reshape(s, [-1 if k == d else 1 for k in range(rank)])
        a, b = wide(steps[:-1]), wide(steps[1:])
        before, after = _cut(rises, d, 0, n - 2), _cut(rises, d, 1, n - 1)
        inner = b / (a * (a + b)) * before + a / (b * (a + b)) * after
        p, q = steps[0], steps[-1]
        if order == 1:
            first, last = rise(0) / p, rise(-1) / q
        else:
            r, s = steps[1], steps[-2]
            first = (2 * p + r) / (p * (p + r)) * rise(0) - p / (r * (p + r)) * rise(1)
            last = (2 * q + s) / (q * (s + q)) * rise(-1) - q / (s * (s + q)) * rise(-2)
    return promotion.convert(fnp.concatenate([first, inner, last], d), dtype, weak)
