"""Special functions, as in scipy.special: operands broadcast and are promoted, integers become the default float."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from functorch_like.calling import lazy_imports as _lazy_imports
from functorch_like.core import aval_of as _aval_of
from functorch_like.lax.elementwise import _any_order as _any_order
from functorch_like.nn.softmax import logsumexp as logsumexp
from functorch_like.numpy import promotion
from functorch_like.primitives import elementwise
from functorch_like.primitives.base.shapes import full_like as _full_like
from functorch_like.primitives.elementwise.bessel import bessel_i0e as _bessel_i0e
from functorch_like.primitives.elementwise.bessel import bessel_i1e as _bessel_i1e
from functorch_like.primitives.elementwise.incomplete_beta import (
    regularized_incomplete_beta as _regularized_incomplete_beta,
)
from functorch_like.primitives.elementwise.incomplete_gamma import igamma as _igamma
from functorch_like.primitives.elementwise.incomplete_gamma import igammac as _igammac
from functorch_like.primitives.elementwise.zeta import zeta as _zeta_row
from functorch_like.scipy import normal as _normal
from functorch_like.scipy.logarithms import logit as _logit
from functorch_like.scipy.slopes import with_slopes as _with_slopes
from functorch_like.scipy.special.makers import make as _make
from functorch_like.scipy.special.makers import one as _one
from functorch_like.scipy.special.makers import two as _two
from functorch_like.scipy.special.softmaxes import log_softmax as log_softmax
from functorch_like.scipy.special.softmaxes import softmax as softmax
from functorch_like.transforms.eager_jit import eager_jit as _kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


def _zero(x: Any) -> Any:
    return elementwise.eq(x, _full_like(x, 0))


# -------------------------------------------------------------------------------------------------- gamma and relatives
erf = _one("erf", elementwise.erf, "The error function.")
erfc = _one("erfc", elementwise.erfc, "1 - erf(x), accurate for large x.")
erfinv = _one("erfinv", elementwise.erf_inv, "The inverse of erf.")
gammaln = _one("gammaln", elementwise.lgamma, "log of the absolute value of the gamma function.")
digamma = _one("digamma", elementwise.digamma, "The derivative of gammaln.")
psi = digamma
_zeta = _two("zeta", "x q", _zeta_row, "The Hurwitz zeta function.", "2.5, 1.0")


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """The Hurwitz zeta function: the sum of (q + k)**-x for k = 0, 1, ...; without q, Riemann's.

    Args:
        x: array or number; above 1, or NaN is returned, unless q is left out.
        q: array or number.

    Returns:
        Floats, of the shape that both broadcast to.

    >>> bool(np.isclose(ft.scipy.special.zeta(2.0), np.pi**2 / 6))
    True
    """
    if q is None:
        from functorch_like.scipy.special.riemann import riemann  # few programs need it

        return riemann(x)
    return _zeta(x, q)


gammainc = _two("gammainc", "a x", _igamma, "The regularized lower incomplete gamma function.")
gammaincc = _two("gammaincc", "a x", _igammac, "The regularized upper incomplete gamma function.")
betainc = _make(
    "betainc", "a b x", _regularized_incomplete_beta, "The regularized incomplete beta function.", "1, 2, 0.5"
)


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The n-th derivative of digamma.

    Args:
        n: Python int, at least 0; or an array of whole numbers.
        x: array or number.

    Returns:
        Floats, of the shape that both broadcast to.

    >>> bool(np.isclose(ft.scipy.special.polygamma(1, 1.0), np.pi**2 / 6))
    True
    """
    return _polygamma_int(n, *promotion.numbers(x)) if type(n) is int and n >= 0 else _polygamma(n, x)


@_kernel(static=("n",))
def _polygamma_int(n: int, x: Any) -> Any:
    x = promotion.to_inexact(x)
    return elementwise.polygamma(promotion.convert(x, _aval_of(x).dtype, _aval_of(x).weak_type), m=n)


_polygamma = _two("polygamma", "n x", _any_order, "The n-th derivative of digamma.", "2.0, 1.5")

# --------------------------------------------------------------------------------------------------------------- Bessel
i0e = _one("i0e", _bessel_i0e, "exp(-|x|) times the modified Bessel function of order 0.")
i1e = _one("i1e", _bessel_i1e, "exp(-|x|) times the modified Bessel function of order 1.")
i0 = _one(
    "i0",
    lambda x: elementwise.mul(elementwise.exp(elementwise.abs(x)), _bessel_i0e(x)),
    "The modified Bessel function of order 0.",
)
i1 = _one(
    "i1",
    lambda x: elementwise.mul(elementwise.exp(elementwise.abs(x)), _bessel_i1e(x)),
    "The modified Bessel function of order 1.",
)


# ---------------------------------------------------------------------------------------------- logistic and entropies
def _x_times(log: Callable[[Any], Any], shift: float) -> Callable[[Any, Any], Any]:
    """Return x log y, with 0 where x is 0; the logarithm has its pole at y = -shift.

    The body and the slope by x compute the same logarithm, which a gradient needs once.
    """

    def body(x: Any, y: Any) -> Any:
        still = elementwise.and_(_zero(x), elementwise.eq(y, y))
        return elementwise.select_n(still, elementwise.mul(x, log(y)), _full_like(x, 0))

    def right(out: Any, x: Any, y: Any) -> Any:
        return _ratio(x, elementwise.add(y, _full_like(y, shift)) if shift else y)

    # Where x is 0 the slope is log y, which may be infinite.
    return _with_slopes(body, lambda out, x, y: log(y), right)


def _ratio(x: Any, y: Any) -> Any:
    """Return x / y, with 0 where both are 0."""
    empty = elementwise.and_(_zero(x), _zero(y))
    return elementwise.select_n(
        empty, elementwise.div(x, elementwise.select_n(empty, y, _full_like(y, 1))), _full_like(x, 0)
    )


_xlogy = _x_times(elementwise.log, 0.0)


def _entr(x: Any) -> Any:
    return elementwise.select_n(
        elementwise.lt(x, _full_like(x, 0)), elementwise.neg(_xlogy(x, x)), _full_like(x, -math.inf)
    )


def _entr_slope(out: Any, x: Any) -> Any:
    zero = _full_like(x, 0)
    return elementwise.select_n(
        elementwise.lt(x, zero), elementwise.neg(elementwise.add(elementwise.log(x), _full_like(x, 1))), zero
    )


def _log_ratio(x: Any, y: Any) -> Any:
    """Return log(x / y) of positive numbers; their logarithms would share most digits where they are near."""
    half, gap = _full_like(x, 0.5), elementwise.sub(x, y)
    near = elementwise.lt(elementwise.abs(gap), elementwise.mul(half, y))
    close = elementwise.log1p(elementwise.select_n(near, _full_like(x, 0), elementwise.div(gap, y)))
    return elementwise.select_n(near, elementwise.sub(elementwise.log(x), elementwise.log(y)), close)


def _entropy(
    pair: Callable[[Any, Any, Any], Any],
    empty: Callable[[Any, Any], Any],
    slopes: Callable[[Any, Any], tuple[Any, Any]],
    outside: tuple[float, float],
) -> Callable[[Any, Any], Any]:
    """Make a body: pair(x, y, x log(x / y)) for positive x and y, empty(x, y) for x = 0 and y >= 0, else infinity.

    `slopes(log(x / y), x / y)` gives the partial derivatives where both are positive. Elsewhere x log(x / y) counts as
    a constant, as in JAX, and the derivatives are `outside`. So a loss that leaves out zeros has finite gradients.
    """

    def both_positive(x: Any, y: Any) -> tuple[Any, Any, Any]:
        zero = _full_like(x, 0)
        both = elementwise.and_(elementwise.gt(x, zero), elementwise.gt(y, zero))
        u, v = elementwise.select_n(both, _full_like(x, 1), x), elementwise.select_n(both, _full_like(x, 1), y)
        return both, u, v

    def body(x: Any, y: Any) -> Any:
        both, u, v = both_positive(x, y)
        alone = elementwise.and_(_zero(x), elementwise.ge(y, _full_like(y, 0)))
        nan = elementwise.or_(elementwise.ne(x, x), elementwise.ne(y, y))
        other = elementwise.select_n(alone, _full_like(x, math.inf), empty(x, y))
        other = elementwise.select_n(nan, other, _full_like(x, math.nan))
        return elementwise.select_n(both, other, pair(u, v, elementwise.mul(u, _log_ratio(u, v))))

    def slope(i: int) -> Callable[[Any, Any, Any], Any]:
        def partial(out: Any, x: Any, y: Any) -> Any:
            both, u, v = both_positive(x, y)
            result = slopes(_log_ratio(u, v), elementwise.div(u, v))[i]
            return elementwise.select_n(both, _full_like(x, outside[i]), result)

        return partial

    return _with_slopes(body, slope(0), slope(1))


_rel_entr = _entropy(
    lambda x, y, z: z,
    lambda x, y: _full_like(x, 0),
    lambda log, ratio: (elementwise.add(log, _full_like(log, 1)), elementwise.neg(ratio)),
    (0.0, 0.0),
)
_kl_div = _entropy(
    lambda x, y, z: elementwise.add(elementwise.sub(z, x), y),
    lambda x, y: y,
    lambda log, ratio: (log, elementwise.sub(_full_like(ratio, 1), ratio)),
    (-1.0, 1.0),
)


expit = _one("expit", elementwise.logistic, "1 / (1 + exp(-x)).", complex=True)
logit = _one("logit", _logit, "log(x) - log(1 - x).", complex=True)
xlogy = _two("xlogy", "x y", _xlogy, "x log(y), and 0 where x is 0.", complex=True)
xlog1py = _two("xlog1py", "x y", _x_times(elementwise.log1p, 1.0), "x log(1 + y), and 0 where x is 0.", complex=True)
entr = _one("entr", _with_slopes(_entr, _entr_slope), "-x log(x), 0 at 0 and -inf below.")
rel_entr = _two("rel_entr", "x y", _rel_entr, "x log(x / y), 0 where x is 0 and infinite where one is negative.")
kl_div = _two("kl_div", "x y", _kl_div, "x log(x / y) - x + y.")

# --------------------------------------------------------------------------------------------- the normal distribution
ndtr = _one("ndtr", _normal.ndtr, "The distribution function of the normal distribution.")
log_ndtr = _one("log_ndtr", _normal.log_ndtr, "log of ndtr, accurate in the far left tail.")
ndtri = _one("ndtri", _normal.ndtri, "The inverse of ndtr.")

with _lazy_imports.block(__name__):
    from functorch_like.scipy.special.bessel_functions import bessel_jn as bessel_jn
    from functorch_like.scipy.special.combinatorics import bernoulli as bernoulli
    from functorch_like.scipy.special.combinatorics import comb as comb
    from functorch_like.scipy.special.combinatorics import factorial as factorial
    from functorch_like.scipy.special.gamma_functions import beta as beta
    from functorch_like.scipy.special.gamma_functions import betaln as betaln
    from functorch_like.scipy.special.gamma_functions import gamma as gamma
    from functorch_like.scipy.special.gamma_functions import gammasgn as gammasgn
    from functorch_like.scipy.special.gamma_functions import loggamma as loggamma
    from functorch_like.scipy.special.gamma_functions import multigammaln as multigammaln
    from functorch_like.scipy.special.gamma_functions import poch as poch
    from functorch_like.scipy.special.harmonics import sph_harm_y as sph_harm_y
    from functorch_like.scipy.special.hypergeometric import hyp1f1 as hyp1f1
    from functorch_like.scipy.special.hypergeometric import hyp2f1 as hyp2f1
    from functorch_like.scipy.special.integrals import exp1 as exp1
    from functorch_like.scipy.special.integrals import expi as expi
    from functorch_like.scipy.special.integrals import expn as expn
    from functorch_like.scipy.special.integrals import sici as sici
    from functorch_like.scipy.special.integrals import spence as spence
    from functorch_like.scipy.special.owens import owens_t as owens_t
    from functorch_like.scipy.special.transforms import boxcox as boxcox
    from functorch_like.scipy.special.transforms import boxcox1p as boxcox1p
    from functorch_like.scipy.special.trapezoidal import dawsn as dawsn
    from functorch_like.scipy.special.trapezoidal import erfcx as erfcx
    from functorch_like.scipy.special.trapezoidal import fresnel as fresnel
    from functorch_like.scipy.special.trapezoidal import wofz as wofz
