"""The modified Bessel functions of order 0 and 1 times exp(-|x|): bessel_i0e bessel_i1e.

The tables are Chebyshev expansions, computed with mpmath to 40 digits: of exp(-x) I0(x) and exp(-x) I1(x) / x over
0 <= x <= 8, in t = x/4 - 1; of sqrt(x) exp(-x) I(x) over x >= 8, in t = 16/x - 1. That the second is smooth at infinity
is the asymptotic expansion DLMF 10.40.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like.primitives import elementwise
from functorch_like.primitives.base.elementwise_makers import unary
from functorch_like.primitives.base.shapes import full_like
from functorch_like.primitives.formulas.term import Term, chebyshev, where, widened

_I0_NEAR = (
    0.33839763720473803,
    -0.3046826723431984,
    0.17162090152220877,
    -0.09490109704804764,
    0.04930528423967071,
    -0.02373741480589947,
    0.010546460394594998,
    -0.004324309995050576,
    0.0016394756169413357,
    -0.0005763755745385824,
    0.00018850288509584165,
    -5.754195010082104e-05,
    1.6448448070728896e-05,
    -4.4167383584587505e-06,
    1.1173875391201037e-06,
    -2.670793853940612e-07,
    6.046995022541919e-08,
    -1.300025009986248e-08,
    2.6598237246823866e-09,
    -5.189795601635263e-10,
    9.675809035373237e-11,
    -1.726826291441556e-11,
    2.95505266312964e-12,
    -4.856446783111929e-13,
    7.676185498604936e-14,
    -1.1685332877993451e-14,
    1.715391285555133e-15,
    -2.431279846547955e-16,
    3.3307945188222384e-17,
    -4.4153416464793395e-18,
)
_I0_FAR = (
    0.4022452055070544,
    0.0033691164782556943,
    6.889758346916825e-05,
    2.8913705208347567e-06,
    2.0489185894690638e-07,
    2.266668990498178e-08,
    3.3962320257083865e-09,
    4.94060238822497e-10,
    1.1889147107846439e-11,
    -3.1499165279632416e-11,
    -1.3215811840447713e-11,
    -1.7941785315068062e-12,
    7.180124451383666e-13,
    3.8527783827421426e-13,
    1.540086217521415e-14,
    -4.150569347287224e-14,
    -9.554846698828476e-15,
    3.811680669352971e-15,
    1.7725601330566224e-15,
    -3.425485619692254e-16,
    -2.8276239804969706e-16,
    3.4612228679909e-17,
    4.4656214190710166e-17,
    -4.830504479509467e-18,
    -7.233180447476745e-18,
)
_I1_NEAR = (
    0.12629359322181682,
    -0.17641651835783406,
    0.1026436586898471,
    -0.05294598120809499,
    0.024726449030626516,
    -0.010564084894626197,
    0.004156422944312888,
    -0.0015135724506312532,
    0.0005122859561685758,
    -0.00016176081582589674,
    4.781565107550054e-05,
    -1.3273163656039436e-05,
    3.4702513081376785e-06,
    -8.568720264695455e-07,
    2.0032947535521353e-07,
    -4.445059128796328e-08,
    9.381537386495773e-09,
    -1.8872497517228294e-09,
    3.625590281552117e-10,
    -6.663489723502027e-11,
    1.1736186298890901e-11,
    -1.9839743977649436e-12,
    3.223793365945575e-13,
    -5.042185504727912e-14,
    7.600684294735408e-15,
    -1.1055969477353862e-15,
    1.5536319577362005e-16,
    -2.111421214358166e-17,
    2.7779141127610464e-18,
)
_I1_FAR = (
    0.38928811750914005,
    -0.009761097491361469,
    -0.00011058893876262371,
    -3.882564808877691e-06,
    -2.512236237870209e-07,
    -2.6314688468895196e-08,
    -3.835380385964237e-09,
    -5.589743462196584e-10,
    -1.8974958123505413e-11,
    3.2526035830154884e-11,
    1.4125807436613782e-11,
    2.0356285441470896e-12,
    -7.198551776245908e-13,
    -4.083551111092197e-13,
    -2.1015418427726697e-14,
    4.2724400167119536e-14,
    1.0420276984128972e-14,
    -3.814403072437366e-15,
    -1.8803547755108634e-15,
    3.3082023109361146e-16,
    2.962628997625507e-16,
    -3.209525922280163e-17,
    -4.650305367239895e-17,
    4.414348316004607e-18,
    7.517296270388092e-18,
)

_NODES = 2000


def _ref(order: int) -> Any:
    """exp(-|x|) I(x) as the mean of exp(x cos t - |x|) cos(order t), DLMF 10.32.3; the midpoint rule is exact here."""

    def ref(x: np.ndarray) -> Any:
        t = (np.arange(_NODES) + 0.5) * (math.pi / _NODES)
        wide = np.asarray(x, np.float64)[..., None]
        size = np.abs(wide)
        far = size[..., 0] > 1e4  # there the integrand is too narrow for the nodes
        near = np.exp(np.where(far[..., None], 0, size) * (np.cos(t) - 1)) @ np.cos(order * t) / _NODES
        mu, z = 4 * order * order, 8 * np.where(far, size[..., 0], 1)
        series = (1 - (mu - 1) / z * (1 - (mu - 9) / (2 * z) * (1 - (mu - 25) / (3 * z)))) / np.sqrt(math.pi * z / 4)
        out = np.where(far, series, near)
        half = np.where(size[..., 0] < 1, size[..., 0], 0) / 2  # near 0 the power series, DLMF 10.25.2
        power = sum(half ** (2 * k + order) / (math.factorial(k) * math.factorial(k + order)) for k in range(12))
        out = np.where(size[..., 0] < 1, power * np.exp(-2 * half), out)
        out = np.where(np.isnan(wide[..., 0]), np.nan, out)
        return (np.copysign(out, wide[..., 0]) if order else out).astype(x.dtype)

    return ref


def _formula(near: Sequence[float], far: Sequence[float], odd: bool) -> Any:
    def formula(x: Term) -> Term:
        size = abs(x)
        infinite = size.equals(math.inf)
        inside = size <= 8
        low = chebyshev(where(inside, size, 8) * 0.25 - 1, near)
        high = where(inside, 8, size)
        high = where(infinite, 0, chebyshev(16 / high - 1, far) / high.sqrt())
        if odd:
            return where(inside, low * x, where(x < 0, -high, high))
        return where(inside, low, high)

    return widened(formula)


def _i0e_tangent(g: Any, x: Any, y: Any) -> Any:
    return elementwise.mul(g, elementwise.sub(bessel_i1e(x), elementwise.mul(elementwise.sign(x), y)))


def _i1e_tangent(g: Any, x: Any, y: Any) -> Any:
    """(e I1)' = e I0 - e I1 (sign x + 1/x); at 0 it is 1/2."""
    zero = elementwise.eq(x, full_like(x, 0))
    safe = elementwise.select_n(zero, x, full_like(x, 1))
    slope = elementwise.sub(
        bessel_i0e(x), elementwise.mul(y, elementwise.add(elementwise.sign(x), elementwise.div(full_like(x, 1), safe)))
    )
    return elementwise.mul(g, elementwise.select_n(zero, slope, full_like(x, 0.5)))


bessel_i0e = unary(
    "bessel_i0e", _ref(0), _formula(_I0_NEAR, _I0_FAR, odd=False), _i0e_tangent, takes="f", domain=(0.2, 12.0)
)
bessel_i1e = unary(
    "bessel_i1e", _ref(1), _formula(_I1_NEAR, _I1_FAR, odd=True), _i1e_tangent, takes="f", domain=(0.2, 12.0)
)
