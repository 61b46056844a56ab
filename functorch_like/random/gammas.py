"""The gamma distribution and related ones: beta, Dirichlet, chi-square, F, Student's t, generalized normal.

Samples are differentiable with respect to the parameters: the derivative is that of the quantile function, at a fixed
probability.
M. Figurnov, S. Mohamed, A. Mnih, "Implicit reparameterization gradients", arXiv:1805.08498.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from functorch_like import lax
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import shape_of
from functorch_like.random.continuous import F64, exponential, inside, normals
from functorch_like.random.discrete import rademacher
from functorch_like.random.drawing import accepted, drawn, streams
from functorch_like.random.jax_numbers import or_jax
from functorch_like.transforms.custom.custom_jvp import custom_jvp

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike, Shape


# --------------------------------------------------------------------------------------------------- standard samples
def _sample(key: Any, a: Any) -> tuple[Any, Any, Any]:
    """Return (t, d, power) with gamma(a) = d (1 + t)**3 exp(power): the squeeze of G. Marsaglia, W. W. Tsang.

    "A simple method for generating gamma variables", ACM TOMS 26, 2000; for a below 1 with their note that a sample
    of a + 1 times u**(1 / a) is one of a.
    """
    shape, dtype = aval_of(a).shape, aval_of(a).dtype
    # Rounding depends on how XLA compiles this; in float64 it does not change which proposals are accepted.
    a = promotion.convert(a, F64)
    tries, boost = streams(key, 2)
    small, proper = a < 1, (a > 0) & (a < fnp.inf)
    safe = fnp.where(proper, a, 1)
    d = fnp.where(small, safe + 1, safe) - 1 / 3
    c = 1 / fnp.sqrt(9 * d)

    def propose(u: Any, v: Any, c: Any, d: Any) -> tuple[Any, Any]:
        u, t = promotion.convert(u, F64), c * promotion.convert(math.sqrt(2) * lax.erf_inv(2 * v - 1), F64)
        # Their acceptance test, rewritten without x**2 / 2 = 4.5 d t**2, where large terms would cancel.
        s = fnp.maximum(t, -0.99)
        w = 1 + s
        log1p = fnp.log(w) - (w - 1 - s) / w  # as exact as XLA's log1p, with which a sample takes a fifth longer
        rest = 3 * (log1p - s + 0.5 * s * s) - s * s * s
        return (t > -0.99) & (fnp.log(u) < d * rest), t

    t = accepted(tries, proper, fnp.zeros_like(a), propose, c, d, digits=dtype)
    power = fnp.where(small, fnp.log(promotion.convert(inside(boost, shape, dtype), F64)) / safe, 0)
    return t, fnp.where(proper, d, fnp.where(a == 0, 0, fnp.where(a > 0, a, fnp.nan))), power


@custom_jvp
@or_jax("gammas.gamma")
def _gamma(key: Any, a: Any) -> Any:
    t, d, power = _sample(key, a)
    return promotion.convert(d * (1 + t) ** 3 * fnp.exp(power), aval_of(a).dtype)


@_gamma.defjvp
def _gamma_jvp(primals: Any, tangents: Any) -> Any:
    sample = _gamma(*primals)
    return sample, tangents[1] * lax.random_gamma_grad(primals[1], sample)


@custom_jvp
@or_jax("gammas.log_gamma")
def standard_log_gamma(key: Any, a: Any) -> Any:
    """Return the logarithm of a gamma sample: finite where the sample itself would be 0."""
    t, d, power = _sample(key, a)
    return promotion.convert(fnp.log(d) + 3 * fnp.log1p(t) + power, aval_of(a).dtype)


@standard_log_gamma.defjvp
def _log_gamma_jvp(primals: Any, tangents: Any) -> Any:
    (key, a), (_, da) = primals, tangents
    sample = standard_log_gamma(key, a)
    # For a small x, the distribution function is x**a / gamma(a + 1), to the precision of the dtype.
    small = sample < math.log(float(fnp.finfo(aval_of(a).dtype).eps))
    x = fnp.exp(fnp.where(small, 0, sample))
    slope = fnp.where(small, (lax.digamma(a + 1) - sample) / a, lax.random_gamma_grad(a, x) / x)
    return sample, da * slope


# ------------------------------------------------------------------------------------------------------ distributions
def gamma(key: ArrayLike, a: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Samples of the gamma distribution with scale 1: its density is x**(a - 1) exp(-x) / gamma(a).

    Args:
        key: uint32[2].
        a: shape parameter, positive; number or array. Negative values give NaN, 0 gives 0.
        shape: shape of the result; by default that of `a`.
        dtype: float32 by default; float64, float16, bfloat16.

    Returns:
        Positive floats of that shape.

    Raises:
        DtypeError: for anything but a key, or a dtype that is not a float.
        ShapeError: where `a` does not broadcast to the shape.

    >>> random.gamma(random.key(0), fnp.asarray([1.0, 2.0]), (3, 2)).shape
    (3, 2)
    """
    return drawn("gamma", _gamma_body, key, {"a": a}, shape, dtype)


def loggamma(key: ArrayLike, a: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Logarithms of gamma samples, finite where the samples themselves would be 0; see `gamma`.

    Args:
        key: uint32[2].
        a: shape parameter, positive; number or array.
        shape: shape of the result; by default that of `a`.
        dtype: float32 by default; float64, float16, bfloat16.

    Returns:
        Floats of that shape.

    >>> bool(random.loggamma(random.key(0), 1e-4) < -100)
    True
    """
    return drawn("loggamma", _log_gamma_body, key, {"a": a}, shape, dtype)


def _gamma_body(key: Any, a: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return _gamma(key, a)


def _log_gamma_body(key: Any, a: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return standard_log_gamma(key, a)


def chisquare(key: ArrayLike, df: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Samples of the chi-square distribution: sums of the squares of `df` standard normal samples.

    Args:
        key: uint32[2].
        df: degrees of freedom, positive; number or array.
        shape: shape of the result; by default that of `df`.
        dtype: float32 by default; float64, float16, bfloat16.

    Returns:
        Positive floats of that shape.

    >>> random.chisquare(random.key(0), 3.0, (2,)).shape
    (2,)
    """
    return drawn("chisquare", _chisquare, key, {"df": df}, shape, dtype)


def _chisquare(key: Any, df: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return 2 * _gamma(key, df / 2)


def f(
    key: ArrayLike, dfnum: ArrayLike, dfden: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Samples of the F distribution: ratios of chi-square samples, each divided by its degrees of freedom.

    Args:
        key: uint32[2].
        dfnum: degrees of freedom of the numerator, positive; number or array.
        dfden: degrees of freedom of the denominator, positive; number or array.
        shape: shape of the result; by default that to which both broadcast.
        dtype: float32 by default; float64, float16, bfloat16.

    Returns:
        Positive floats of that shape.

    >>> random.f(random.key(0), 3.0, 4.0, (2,)).shape
    (2,)
    """
    return drawn("f", _f, key, {"dfnum": dfnum, "dfden": dfden}, shape, dtype)


def _f(key: Any, n: Any, d: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    second, first = streams(key, 2)
    return fnp.exp(standard_log_gamma(first, n / 2) - standard_log_gamma(second, d / 2)) * d / n


def t(key: ArrayLike, df: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Samples of Student's t distribution: normal / sqrt(chi-square / df).

    Args:
        key: uint32[2].
        df: degrees of freedom, positive; number or array.
        shape: shape of the result; by default that of `df`.
        dtype: float32 by default; float64, float16, bfloat16.

    Returns:
        Floats of that shape.

    >>> random.t(random.key(0), 3.0, (2,)).shape
    (2,)
    """
    return drawn("t", _t, key, {"df": df}, shape, dtype)


def _t(key: Any, df: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    first, second = streams(key, 2)
    half = df / 2
    return normals(first, shape, dtype) * fnp.exp((fnp.log(half) - standard_log_gamma(second, half)) / 2)


def beta(
    key: ArrayLike, a: ArrayLike, b: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Samples of the beta distribution: its density on (0, 1) is proportional to x**(a - 1) (1 - x)**(b - 1).

    Args:
        key: uint32[2].
        a: positive number or array.
        b: positive number or array.
        shape: shape of the result; by default that to which both broadcast.
        dtype: float32 by default; float64, float16, bfloat16.

    Returns:
        Floats in [0, 1] of that shape.

    >>> x = random.beta(random.key(0), 2.0, 3.0, (100,))
    >>> bool((x > 0).all() & (x < 1).all())
    True
    """
    return drawn("beta", _beta, key, {"a": a, "b": b}, shape, dtype)


def _beta(key: Any, a: Any, b: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    first, second = streams(key, 2)
    return lax.logistic(standard_log_gamma(first, a) - standard_log_gamma(second, b))


def generalized_normal(key: ArrayLike, p: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Samples of the generalized normal distribution: its density is proportional to exp(-abs(x)**p).

    Args:
        key: uint32[2].
        p: positive number, or array that broadcasts to the shape.
        shape: shape of the result.
        dtype: float32 by default; float64, float16, bfloat16.

    Returns:
        Floats of that shape.

    >>> random.generalized_normal(random.key(0), 1.5, (2,)).shape
    (2,)
    """
    return drawn("generalized_normal", _generalized, key, {"p": p}, shape, dtype)


def _generalized(key: Any, p: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    first, second = streams(key, 2)
    return rademacher(second, shape, dtype) * fnp.exp(standard_log_gamma(first, 1 / p) / p)


def dirichlet(key: ArrayLike, alpha: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Samples of the Dirichlet distribution: vectors with sum 1, and density proportional to prod(x**(alpha - 1)).

    Args:
        key: uint32[2].
        alpha: (..., n), positive.
        shape: shape of the result without its last dimension; by default that of alpha without its last.
        dtype: float32 by default; float64, float16, bfloat16.

    Returns:
        (*shape, n).

    Raises:
        DtypeError: for anything but a key, or a dtype that is not a float.
        ShapeError: for a scalar alpha, or one that does not broadcast to the shape.

    >>> random.dirichlet(random.key(0), fnp.ones(3), (5,)).sum(-1).round(5).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """
    what = "random.dirichlet"
    sizes = aval_of(alpha).shape
    if not sizes:
        raise promotion.error(
            ShapeError, f"{what} takes a vector alpha, got a scalar", "give one number for each component"
        )
    lead = sizes[:-1] if shape is None else shape_of(shape, what)
    return drawn("dirichlet", _dirichlet, key, {"alpha": alpha}, (*lead, sizes[-1]), dtype)


def _dirichlet(key: Any, alpha: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    logs = standard_log_gamma(key, alpha)
    if not shape[-1]:
        return logs
    parts = fnp.exp(logs - lax.stop_gradient(logs.max(-1, keepdims=True)))
    return parts / parts.sum(-1, keepdims=True)


def ball(key: ArrayLike, d: int, p: ArrayLike = 2, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Points drawn uniformly from the unit ball of the p-norm in d dimensions.

    F. Barthe, O. Guédon, S. Mendelson, A. Naor, "A probabilistic approach to the geometry of the l_p^n-ball",
    Annals of Probability 33, 2005.

    Args:
        key: uint32[2].
        d: number of dimensions.
        p: positive number.
        shape: shape of the array of points.
        dtype: float32 by default; float64, float16, bfloat16.

    Returns:
        (*shape, d).

    >>> bool((fnp.linalg.norm(random.ball(random.key(0), 3, shape=(9,)), axis=-1) <= 1).all())
    True
    """
    what = "random.ball"
    sizes = (*shape_of(shape, what), *shape_of(d, what))
    return drawn("ball", _ball, key, {"p": p}, sizes, dtype)


def _ball(key: Any, p: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    first, second = streams(key, 2)
    point = _generalized(first, p, shape, dtype)
    power = p[..., :1] if shape[-1] else fnp.ones((*shape[:-1], 1), dtype)
    extra = exponential.raw(second, (*shape[:-1], 1), dtype)
    size = (abs(point) ** p).sum(-1, keepdims=True) + extra
    return point / size ** (1 / power)
