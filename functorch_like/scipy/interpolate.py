"""Interpolation between values on grids, under SciPy's names."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import numpy as fnp
from functorch_like import tree
from functorch_like.calling.api_boundary import public
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ConcretizationError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.operands import given, known
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.typing import PyTree


_METHODS = ("linear", "nearest")


@tree.register_pytree_node_class
class RegularGridInterpolator:
    """A function that interpolates values on a grid, whose lines may be at different distances. It is a pytree.

    Args:
        points: the positions of the lines: n increasing vectors, one for each dimension.
        values: the values: n dimensions for the points, and perhaps further ones.
        method: "linear", or "nearest".
        bounds_error: raise for points outside; their values must be known then.
        fill_value: value for points outside; None extrapolates.

    Raises:
        ShapeError: where values and points do not fit.
        ArgumentError: for other methods, and known points that do not increase.

    >>> f = ft.scipy.interpolate.RegularGridInterpolator((fnp.arange(3.0),), fnp.asarray([0.0, 10.0, 30.0]))
    >>> f(fnp.asarray([0.5, 1.5])).tolist()
    [5.0, 20.0]
    """

    @public
    def __init__(
        self,
        points: Sequence[Any],
        values: Any,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: Any = np.nan,
    ) -> None:
        if method not in _METHODS:
            raise promotion.error(
                ArgumentError, f"RegularGridInterpolator with method={method!r}", "use 'linear' or 'nearest'"
            )
        values, *points = given(values, *points)
        shape = aval_of(values).shape
        for k, p in enumerate(points):
            if len(points) > len(shape) or aval_of(p).shape != (shape[k],) or not shape[k]:
                raise promotion.error(
                    ShapeError,
                    f"values {aval_of(values)!r} on lines {[aval_of(p) for p in points]}",
                    "give one vector of points for each dimension",
                )
            derivatives = known(p)
            if derivatives is not None and not (np.diff(derivatives) > 0).all():
                raise promotion.error(
                    ArgumentError, f"the lines of dimension {k} do not increase", "sort points and values"
                )
        self.grid, self.values = tuple(points), promotion.to_inexact(values)
        self.method, self.bounds_error = method, bool(bounds_error)
        self.fill_value = fill_value

    def tree_flatten(self) -> tuple[tuple[PyTree, ...], tuple[PyTree, ...]]:
        """Return the arrays and the settings."""
        return (self.grid, self.values, self.fill_value), (self.method, self.bounds_error)

    @classmethod
    def tree_unflatten(cls, aux: tuple[Any, ...], children: Any) -> RegularGridInterpolator:
        """Return an interpolator from arrays and settings."""
        made = object.__new__(cls)
        made.grid, made.values, made.fill_value = children
        made.method, made.bounds_error = aux
        return made

    @public
    def __call__(self, xi: Any, method: str | None = None) -> Any:
        """Return the values at points (..., n), or at a tuple of n arrays; a vector of n is an array of one point."""
        method = self.method if method is None else method
        if method not in _METHODS:
            raise promotion.error(
                ArgumentError, f"RegularGridInterpolator with method={method!r}", "use 'linear' or 'nearest'"
            )
        n, apart = len(self.grid), isinstance(xi, tuple)
        if apart:
            xi = fnp.stack(promotion.align_inexact(*given(*xi)), -1)
        (xi,) = given(xi)
        xi = fnp.asarray(xi)
        if aval_of(xi).shape == (n,) and not apart:  # one point, as an array of one, as in SciPy
            xi = xi[None]
        elif aval_of(xi).ndim < 2 and n == 1 and not apart:
            xi = xi[..., None]
        if not aval_of(xi).ndim or aval_of(xi).shape[-1] != n:
            raise promotion.error(ShapeError, f"points {aval_of(xi)!r} on a grid of {n} dimensions", f"give (..., {n})")
        if self.bounds_error:
            self._check(xi)
        return _interpolated(self.grid, self.values, xi, self.fill_value, method=method)

    def _check(self, xi: Any) -> None:
        places, lines = known(xi), [known(g) for g in self.grid]
        if places is None or any(line is None for line in lines):
            raise promotion.error(
                ConcretizationError,
                "traced points cannot be checked against the bounds",
                "use bounds_error=False, and fill_value",
            )
        for k, line in enumerate(lines):
            if ((places[..., k] < line[0]) | (places[..., k] > line[-1])).any():  # type: ignore[index]
                raise promotion.error(
                    ArgumentError, f"a point is out of bounds in dimension {k}", "use bounds_error=False"
                )


@eager_jit(static=("method",))
def _interpolated(grid: Any, values: Any, xi: Any, fill: Any, method: str) -> Any:
    rank = aval_of(values).ndim - len(grid)
    wide = lambda a: fnp.reshape(a, aval_of(a).shape + (1,) * rank)
    outside, sides = False, []
    for k, line in enumerate(grid):
        x, line = map(promotion.to_inexact, promotion.promote(xi[..., k], line))
        n = aval_of(line).size
        outside = outside | (x < line[0]) | (x > line[-1])
        low = fnp.clip(fnp.searchsorted(line, x, side="right") - 1, 0, max(n - 2, 0))
        high = fnp.minimum(low + 1, n - 1)
        width = line[high] - line[low]
        share = (x - line[low]) / fnp.where(width == 0, 1, width)
        if method == "nearest":
            sides.append([(fnp.where(share <= 0.5, low, high), 1)])
        else:
            sides.append([(low, wide(1 - share)), (high, wide(share))])
    total: Any = 0
    for corner in itertools.product(*sides):
        value = values[tuple(i for i, _ in corner)]
        for _, weight in corner:
            value = value * weight
        total = total + value
    if fill is not None:
        total = fnp.where(wide(outside), fill, total)
    return fnp.where(wide(fnp.any(xi != xi, -1)), fnp.nan, total)
