"""`gaussian_kde`: a density estimated from samples, with a normal distribution around each."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from functorch_like import numpy as fnp
from functorch_like import random, tree
from functorch_like.calling.api_boundary import public
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.nn.softmax import logsumexp
from functorch_like.numpy import promotion
from functorch_like.numpy.operands import given
from functorch_like.scipy.linalg import solve_triangular
from functorch_like.scipy.normal import ndtr
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


_PARTS = ("neff", "dataset", "weights", "covariance", "inv_cov")


@tree.register_pytree_node_class
class gaussian_kde:
    """The density that is the mean of normal distributions around samples. It is a pytree.

    Args:
        dataset: samples (d, n), or (n,) of numbers.
        bw_method: bandwidth: "scott" (default, n**(-1 / (d + 4))), "silverman", a number, or a function of the estimate
            that returns one. The covariance of the samples is multiplied by its square.
        weights: (n,): the weight of each sample.

    Raises:
        ShapeError: for other shapes, and a single sample.
        ArgumentError: for another `bw_method`.

    >>> kde = ft.scipy.stats.gaussian_kde(fnp.asarray([0.0, 1.0, 2.0]))
    >>> round(float(kde(1.0)[0]), 3), round(float(kde.integrate_box_1d(-9, 9)), 3)
    (0.318, 1.0)
    """

    neff: Any
    dataset: Any
    weights: Any
    covariance: Any
    inv_cov: Any

    @public
    def __init__(
        self, dataset: Any, bw_method: str | float | Callable[[Any], Any] | None = None, weights: Any = None
    ) -> None:
        data, weights = given(dataset, weights)
        data = fnp.atleast_2d(promotion.to_inexact(fnp.asarray(data)))
        if aval_of(data).ndim != 2 or aval_of(data).shape[1] < 2:
            raise promotion.error(
                ShapeError, f"gaussian_kde of {aval_of(data)!r}", "give (d, n), with at least two samples"
            )
        n = aval_of(data).shape[1]
        if weights is None:
            weights = fnp.full(n, 1 / n, aval_of(data).dtype)
        elif aval_of(weights).shape != (n,):
            raise promotion.error(
                ShapeError, f"gaussian_kde of {n} samples with {aval_of(weights)!r}", "give one weight each"
            )
        weights = promotion.convert(weights, aval_of(data).dtype)
        self.dataset, self.weights = data, weights / fnp.sum(weights)
        self.neff = 1 / fnp.sum(self.weights**2)
        covariance = fnp.atleast_2d(fnp.cov(data, bias=False, aweights=self.weights))
        self.covariance, self.inv_cov = covariance, fnp.linalg.inv(covariance)
        factor = self._factor(bw_method)
        self.covariance, self.inv_cov = covariance * factor**2, self.inv_cov / factor**2

    def _factor(self, method: Any) -> Any:
        if method is None or method == "scott":
            return self.neff ** (-1.0 / (self.d + 4))
        if method == "silverman":
            return (self.neff * (self.d + 2) / 4.0) ** (-1.0 / (self.d + 4))
        if callable(method):
            return method(self)
        if isinstance(method, str):
            raise promotion.error(
                ArgumentError, f"gaussian_kde: bw_method={method!r}", "use 'scott', 'silverman' or a number"
            )
        return method

    @property
    def d(self) -> int:
        """Number of components of a sample."""
        return aval_of(self.dataset).shape[0]

    @property
    def n(self) -> int:
        """Number of samples."""
        return aval_of(self.dataset).shape[1]

    def tree_flatten(self) -> tuple[tuple[Array, ...], None]:
        """Return the arrays."""
        return tuple(getattr(self, name) for name in _PARTS), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: Any) -> gaussian_kde:
        """Return an estimate from its arrays."""
        made = object.__new__(cls)
        for name, child in zip(_PARTS, children, strict=True):
            setattr(made, name, child)
        return made

    def _points(self, points: Any) -> Any:
        (points,) = given(points)
        points = fnp.atleast_2d(promotion.to_inexact(fnp.asarray(points)))
        shape = aval_of(points).shape
        if len(shape) == 2 and shape[0] != self.d and shape == (1, self.d):
            points = points.T
        if len(shape) != 2 or aval_of(points).shape[0] != self.d:
            raise promotion.error(ShapeError, f"gaussian_kde of d={self.d} at points of shape {shape}", "give (d, m)")
        return points

    @public
    def evaluate(self, points: ArrayLike) -> Array:
        """The density at points (d, m), or (m,) of numbers: (m,)."""
        return fnp.exp(self.logpdf(points))

    __call__ = pdf = evaluate

    @public
    def logpdf(self, x: ArrayLike) -> Array:
        """log of the density at points (d, m), or (m,) of numbers: (m,)."""
        return _log_mixture(self.dataset, self.weights, self._points(x), self.covariance)

    @public
    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Array:
        """The integral of the product with a normal density of mean (d,) and covariance (d, d)."""
        mean, cov = given(mean, cov)
        mean, cov = fnp.atleast_1d(mean), fnp.atleast_2d(cov)
        if aval_of(mean).shape != (self.d,) or aval_of(cov).shape != (self.d, self.d):
            raise promotion.error(
                ShapeError,
                f"integrate_gaussian of {aval_of(mean)!r} and {aval_of(cov)!r}",
                f"the samples have d={self.d}",
            )
        return fnp.exp(_log_mixture(self.dataset, self.weights, mean[:, None], self.covariance + cov))[0]

    @public
    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """The integral from `low` to `high`, in one dimension."""
        if self.d != 1:
            raise promotion.error(ShapeError, f"integrate_box_1d of samples with d={self.d}", "use samples with d=1")
        low, high = given(low, high)
        return _box(self.dataset[0], self.weights, self.covariance, low, high)

    @public
    def integrate_kde(self, other: gaussian_kde) -> Array:
        """The integral of the product with another estimate."""
        if other.d != self.d:
            raise promotion.error(ShapeError, f"integrate_kde of d={self.d} and d={other.d}", "give both one d")
        covariance = self.covariance + other.covariance
        logs = _log_mixture(self.dataset, self.weights, other.dataset, covariance)
        return fnp.sum(fnp.exp(logs) * other.weights)

    @public
    def resample(self, key: ArrayLike, shape: tuple[int, ...] = ()) -> Array:
        """Draw from the density: (d, *shape)."""
        which, noise = random.split(key)
        chosen = random.choice(which, self.n, shape=shape, replace=True, p=self.weights)
        root = fnp.linalg.cholesky(self.covariance)
        steps = fnp.tensordot(root, random.normal(noise, (self.d, *shape), aval_of(root).dtype), 1)
        return self.dataset[:, chosen] + steps


@eager_jit
def _log_mixture(data: Any, weights: Any, points: Any, covariance: Any) -> Any:
    data, points, covariance = promotion.promote(data, points, covariance)
    root = fnp.linalg.cholesky(covariance)
    d, m = aval_of(points).shape
    if not m:
        return fnp.zeros(0, aval_of(points).dtype)
    centres, places = (solve_triangular(root, x, lower=True) for x in (data, points))
    distance = fnp.sum((places[:, :, None] - centres[:, None, :]) ** 2, 0)
    constant = fnp.sum(fnp.log(fnp.diagonal(root))) + 0.5 * d * math.log(2 * math.pi)
    return logsumexp(-0.5 * distance, axis=1, b=weights) - constant


@eager_jit(ints=True)
def _box(data: Any, weights: Any, covariance: Any, low: Any, high: Any) -> Any:
    spread = fnp.sqrt(covariance[0, 0])
    return fnp.sum(weights * (ndtr((high - data) / spread) - ndtr((low - data) / spread)))
