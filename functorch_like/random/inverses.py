"""Distributions with parameters whose samples are functions of uniform, exponential or normal samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from functorch_like import numpy as fnp
from functorch_like.random.continuous import exponential, inside, normals
from functorch_like.random.discrete import rademacher
from functorch_like.random.drawing import drawn, streams
from functorch_like.random.jax_numbers import or_jax

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike, Shape


def lognormal(
    key: ArrayLike, sigma: ArrayLike = 1.0, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Samples of the log-normal distribution: exponentials of normal samples of mean 0.

    Args:
        key: uint32[2].
        sigma: standard deviation of the normal samples; number or array.
        shape: shape of the result; by default that of sigma.
        dtype: float32 by default; float64, float16, bfloat16.

    Returns:
        Positive floats of that shape.

    >>> random.lognormal(random.key(0), 0.5, (2,)).shape
    (2,)
    """
    return drawn("lognormal", _lognormal, key, {"sigma": sigma}, shape, dtype)


def _lognormal(key: Any, sigma: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return fnp.exp(sigma * normals(key, shape, dtype))


def pareto(key: ArrayLike, b: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Samples of the Pareto distribution: its density on [1, inf) is b / x**(b + 1).

    Args:
        key: uint32[2].
        b: positive number or array.
        shape: shape of the result; by default that of b.
        dtype: float32 by default; float64, float16, bfloat16.

    Returns:
        Floats of that shape, 1 or more.

    >>> bool((random.pareto(random.key(0), 3.0, (9,)) >= 1).all())
    True
    """
    return drawn("pareto", _pareto, key, {"b": b}, shape, dtype)


def _pareto(key: Any, b: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return fnp.exp(exponential.raw(key, shape, dtype) / b)


def rayleigh(key: ArrayLike, scale: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Samples of the Rayleigh distribution: norms of vectors of two normal samples.

    Args:
        key: uint32[2].
        scale: standard deviation of the normal samples; number or array.
        shape: shape of the result; by default that of scale.
        dtype: float32 by default; float64, float16, bfloat16.

    Returns:
        Positive floats of that shape.

    >>> random.rayleigh(random.key(0), 2.0, (2,)).shape
    (2,)
    """
    return drawn("rayleigh", _rayleigh, key, {"scale": scale}, shape, dtype)


@or_jax("continuous.rayleigh")
def _rayleigh(key: Any, scale: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return scale * fnp.sqrt(2 * exponential.raw(key, shape, dtype))


def weibull_min(
    key: ArrayLike,
    scale: ArrayLike,
    concentration: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Samples of the Weibull distribution: scale * e**(1 / concentration), with e exponential.

    Args:
        key: uint32[2].
        scale: number or array.
        concentration: positive number or array.
        shape: shape of the result; by default that to which both broadcast.
        dtype: float32 by default; float64, float16, bfloat16.

    Returns:
        Positive floats of that shape.

    >>> random.weibull_min(random.key(0), 1.0, 2.0, (2,)).shape
    (2,)
    """
    values = {"scale": scale, "concentration": concentration}
    return drawn("weibull_min", _weibull, key, values, shape, dtype)


def _weibull(key: Any, scale: Any, concentration: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return scale * exponential.raw(key, shape, dtype) ** (1 / concentration)


def triangular(
    key: ArrayLike,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Samples of the triangular distribution: its density rises linearly up to the mode, and falls after it.

    Args:
        key: uint32[2].
        left: lower bound; number or array.
        mode: the point of highest density, from left to right.
        right: upper bound.
        shape: shape of the result; by default that to which all broadcast.
        dtype: float32 by default; float64, float16, bfloat16.

    Returns:
        Floats of that shape.

    >>> x = random.triangular(random.key(0), 1.0, 2.0, 5.0, (9,))
    >>> bool((x >= 1).all() & (x <= 5).all())
    True
    """
    return drawn("triangular", _triangular, key, {"left": left, "mode": mode, "right": right}, shape, dtype)


def _triangular(key: Any, left: Any, mode: Any, right: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    u = inside(key, shape, dtype)
    width = right - left
    low = u * width < mode - left
    # The branch that is not taken must not have an infinite derivative.
    below = fnp.sqrt(fnp.where(low, u * width * (mode - left), 1))
    above = fnp.sqrt(fnp.where(low, 1, (1 - u) * width * (right - mode)))
    return fnp.where(low, left + below, right - above)


def wald(key: ArrayLike, mean: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Samples of the Wald (inverse Gaussian) distribution with scale 1.

    J. R. Michael, W. R. Schucany, R. W. Haas, "Generating random variates using transformations with multiple roots",
    The American Statistician 30, 1976.

    Args:
        key: uint32[2].
        mean: positive number or array.
        shape: shape of the result; by default that of mean.
        dtype: float32 by default; float64, float16, bfloat16.

    Returns:
        Positive floats of that shape.

    >>> bool((random.wald(random.key(0), 2.0, (9,)) > 0).all())
    True
    """
    return drawn("wald", _wald, key, {"mean": mean}, shape, dtype)


def _wald(key: Any, mean: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    first, second = streams(key, 2)
    w = mean * normals(first, shape, dtype) ** 2 / 2
    # The smaller root, without cancellation; the product of both is mean**2.
    quotient = 1 / (1 + w + fnp.sqrt(w * (w + 2)))
    small = inside(second, shape, dtype) * (1 + quotient) <= 1
    return mean * fnp.where(small, quotient, 1 / quotient)


def maxwell(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Samples of the Maxwell distribution: norms of vectors of three normal samples.

    Args:
        key: uint32[2].
        shape: shape of the result.
        dtype: float32 by default; float64, float16, bfloat16.

    Returns:
        Positive floats of that shape.

    >>> random.maxwell(random.key(0), (2,)).shape
    (2,)
    """
    return drawn("maxwell", _maxwell, key, {}, shape, dtype)


@or_jax("continuous.maxwell")
def _maxwell(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return fnp.sqrt((normals(key, (3, *shape), dtype) ** 2).sum(0))


def double_sided_maxwell(
    key: ArrayLike, loc: ArrayLike, scale: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Samples of the Maxwell distribution with random signs, scaled and shifted.

    Args:
        key: uint32[2].
        loc: the shift; number or array.
        scale: the factor.
        shape: shape of the result; by default that to which both broadcast.
        dtype: float32 by default; float64, float16, bfloat16.

    Returns:
        Floats of that shape.

    >>> random.double_sided_maxwell(random.key(0), 0.0, 2.0, (2,)).shape
    (2,)
    """
    return drawn("double_sided_maxwell", _double_sided, key, {"loc": loc, "scale": scale}, shape, dtype)


def _double_sided(key: Any, loc: Any, scale: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    first, second = streams(key, 2)
    return loc + scale * rademacher(second, shape, dtype) * _maxwell(first, shape, dtype)
