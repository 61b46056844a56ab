"""Spherical harmonics."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

from functorch_like import lax
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ConcretizationError, UnsupportedError
from functorch_like.numpy import promotion
from functorch_like.numpy.operands import given, known
from functorch_like.primitives import elementwise
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


def sph_harm_y(
    n: ArrayLike, m: ArrayLike, theta: ArrayLike, phi: ArrayLike, diff_n: int | None = None, n_max: int | None = None
) -> Array:
    """The spherical harmonic of degree n and order m, orthonormal, with the sign (-1)**m of Condon and Shortley.

    Args:
        n: degrees, whole numbers, at least 0.
        m: orders, whole numbers; 0 is the result where |m| > n.
        theta: angles from the pole, 0 to pi.
        phi: angles around it.
        diff_n: not supported: take derivatives with `grad`.
        n_max: the highest degree, a Python int; needed where n is traced.

    Returns:
        Complex numbers of the shape that all broadcast to.

    Raises:
        ConcretizationError: for traced n without `n_max`.
        UnsupportedError: with `diff_n`.

    >>> round(float(ft.scipy.special.sph_harm_y(1, 0, 0.0, 0.0).real), 4)
    0.4886
    """
    if diff_n:
        raise promotion.error(UnsupportedError, f"sph_harm_y with diff_n={diff_n}", "use ft.grad or ft.jvp")
    n, m, theta, phi = given(n, m, theta, phi)
    if n_max is None:
        values = known(n)
        if values is None:
            raise promotion.error(ConcretizationError, f"sph_harm_y of a traced degree {aval_of(n)!r}", "pass n_max=")
        n_max = max(int(values.max()), 0) if values.size else 0
    return _harmonic(n, m, theta, phi, n_max=operator.index(n_max))


@eager_jit(static=("n_max",), ints=True)
def _harmonic(n: Any, m: Any, theta: Any, phi: Any, n_max: int) -> Any:
    """Run the recurrence in the degree, DLMF 14.10.3, of normalized functions: from degree |m| up to n."""
    theta, phi = promotion.align_inexact(theta, phi)
    dtype = aval_of(theta).dtype
    n, m, theta, phi = promotion.broadcast_arrays(n, m, theta, phi)
    n, m = promotion.convert(n, dtype), promotion.convert(m, dtype)
    order = fnp.abs(m)
    cosine, sine = fnp.cos(theta), fnp.sin(theta)
    # The first, of degree |m|: sqrt((2m + 1)! / 4 pi) / (2**m m!) times (-sin theta)**m.
    log = (
        0.5 * (elementwise.lgamma(2 * order + 2) - math.log(4 * math.pi))
        - order * math.log(2)
        - elementwise.lgamma(order + 1)
    )
    none = order == 0
    power = fnp.where(none, 1, fnp.where(sine == 0, 0, fnp.abs(fnp.where(sine == 0, 1, sine)) ** order))
    odd = order - 2 * fnp.floor(order / 2) != 0
    # As in SciPy the sine is sqrt(1 - cos(theta)**2), which is not negative for any theta.
    first = fnp.exp(log) * power * fnp.where(odd, -1, 1)

    def step(state: Any, k: Any) -> Any:
        """Compute degree k from k - 2 and k - 1; keep the value at degree n."""
        before, last, kept = state
        here = k > order
        top = fnp.where(here, k * k - order * order, 1)
        a = fnp.sqrt(fnp.where(here, 4 * k * k - 1, 0) / top)
        b = fnp.sqrt(
            fnp.where(here, fnp.maximum((k - 1) ** 2 - order * order, 0) / fnp.maximum(4 * (k - 1) ** 2 - 1, 1), 0)
        )
        value = fnp.where(k == order, first, fnp.where(here, a * (cosine * last - b * before), 0))
        return (last, value, fnp.where(k == n, value, kept)), None

    zero = fnp.zeros_like(first)
    degrees = fnp.arange(n_max + 1, dtype=dtype)
    (_, _, value), _ = lax.scan(step, (zero, zero, zero), degrees)
    value = fnp.where((m < 0) & odd, -value, value)
    return elementwise.complex(value * fnp.cos(m * phi), value * fnp.sin(m * phi))
