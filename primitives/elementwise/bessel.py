"""The modified Bessel functions of order 0 and 1 times exp(-|x|): bessel_i0e bessel_i1e.

The tables are polynomials in powers of t, from Chebyshev expansions computed with mpmath to 50 digits: of exp(-x) I0(x)
and exp(-x) I1(x) / x over 0 <= x <= 8, in t = x/4 - 1; of sqrt(x) exp(-x) I(x) over x >= 8, in t = 16/x - 1. That the
second is smooth at infinity is the asymptotic expansion DLMF 10.40.1.

Narrower dtypes take one polynomial for all x >= 0, good to 3e-10: of exp(-x) I0(x) sqrt(x + K) and of
exp(-x) I1(x) (x + K)**1.5 / x in t = 2K / (x + K) - 1, interpolated by mpmath in 24 Chebyshev nodes. It needs no branch
and no division.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.primitives import elementwise
from functorch_like.primitives.base.elementwise_makers import unary
from functorch_like.primitives.base.shapes import full_like
from functorch_like.primitives.formulas.term import Term, choose, estrin, where, widened

_I0_NEAR = (
    0.2070019212239867,
    -0.11300432688620549,
    0.09451562853995103,
    -0.08904344136075962,
    0.08734341617552313,
    -0.08496338091616305,
    0.07927522590716347,
    -0.06954119561719381,
    0.05677703201991695,
    -0.04298594945479612,
    0.030177912022978357,
    -0.01968265469059234,
    0.011960077907026221,
    -0.0067923998730731695,
    0.003617126448897043,
    -0.001811886793937724,
    0.0008563152748272306,
    -0.00038290209550065975,
    0.00016240542162878106,
    -6.550861389620851e-05,
    2.520232727107692e-05,
    -9.251680584432654e-06,
    3.2293390826404927e-06,
    -1.0883393970072518e-06,
    3.675842926555429e-07,
    -1.1384114641747256e-07,
    2.6265363151970112e-08,
    -7.723094556846333e-09,
    4.470516727511741e-09,
    -1.1852342482684723e-09,
)
_I0_FAR = (
    0.4021765094450081,
    0.0033605519836678614,
    0.0001362160743919305,
    1.1143033790932038e-05,
    1.4838475658279249e-06,
    2.9735985885673923e-07,
    8.872219737904054e-08,
    3.932584334552952e-08,
    2.1548377974791598e-08,
    7.554691881248808e-09,
    -6.747657956107524e-09,
    -1.340891754008974e-08,
    -5.404771567579958e-09,
    7.552583062123384e-09,
    7.430464650325426e-09,
    -3.505966530879332e-09,
    -5.95356943826489e-09,
    1.5200816953924232e-09,
    3.6379546359011143e-09,
    -5.715843864202709e-10,
    -1.618980683624682e-09,
    1.5279202694981569e-10,
    4.577087631643623e-10,
    -2.0260604287413626e-11,
    -6.067631570603006e-11,
)
_I1_NEAR = (
    0.044687709875608835,
    -0.061124338029666284,
    0.0680575999095116,
    -0.06848260620582691,
    0.06376740371340721,
    -0.055280039226991644,
    0.04467457262125467,
    -0.03367135552108536,
    0.023686016957729535,
    -0.015571309243980052,
    0.009583962150731578,
    -0.005534567847563678,
    0.0030057624197775295,
    -0.00153887456203039,
    0.0007445123445061157,
    -0.0003411760289073331,
    0.0001484212433475852,
    -6.142360299099794e-05,
    2.4233753149624307e-05,
    -9.136543922789093e-06,
    3.293899139003749e-06,
    -1.1327072698408053e-06,
    3.759367306404118e-07,
    -1.2424759932738304e-07,
    3.802984785138283e-08,
    -8.984420960424589e-09,
    2.603206542331157e-09,
    -1.41695079121077e-09,
    3.7284532079392345e-10,
)
_I1_FAR = (
    0.38939845902587233,
    -0.009749577193235737,
    -0.00021923576383388928,
    -1.5038547200567216e-05,
    -1.8349101326980946e-06,
    -3.483855761044295e-07,
    -1.0001288294864884e-07,
    -4.312917729178349e-08,
    -2.337392820814264e-08,
    -8.427766093735185e-09,
    6.734464815301592e-09,
    1.4034238782067183e-08,
    5.974437608040264e-09,
    -7.64239413436356e-09,
    -7.888351507862078e-09,
    3.4262341490077958e-09,
    6.242741219786445e-09,
    -1.4387250533041013e-09,
    -3.794670896208339e-09,
    5.295625441161261e-10,
    1.6848984479705146e-09,
    -1.4011625179770627e-10,
    -4.758818838703853e-10,
    1.8515118828852956e-11,
    6.305965197150057e-11,
)

_I0_SINGLE = (
    0.575233967906383,
    0.31209264213595433,
    0.25851716168177086,
    0.24477239348795837,
    0.2539829034063655,
    0.28276168157051473,
    0.31715670267243334,
    0.313261458727446,
    0.21113182138567202,
    0.015298185961757825,
    -0.1365414179364641,
    -0.09419976468673474,
    0.06287985682419177,
    0.08986203168077155,
    -0.0308360142754623,
    -0.06860704330612066,
    0.01644518983158957,
    0.04326238119308813,
    -0.00767721556634182,
    -0.02035339109642551,
    0.0024105856521027262,
    0.006113748162705703,
    -0.0003567458761123728,
    -0.0008598085473686849,
)
_I1_SINGLE = (
    1.0647951322103428,
    1.4625685782970843,
    1.6416338309833058,
    1.6664286511417792,
    1.5416278553229472,
    1.2479053610705038,
    0.7804497266079407,
    0.22200748454154562,
    -0.20896532844490995,
    -0.2781128988326955,
    -0.021843186784590376,
    0.18059653811857615,
    0.06361960416133115,
    -0.12191519611565524,
    -0.05343880942817968,
    0.0871849636227065,
    0.03247054183552279,
    -0.05630931623391377,
    -0.014308234915032806,
    0.027586916777126907,
    0.00403158924014522,
    -0.008589974524123812,
    -0.0005367862469775375,
    0.001242546378056537,
)
_K = 7.0
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
        inside = size <= 8
        low = estrin(where(inside, size, 8) * 0.25 - 1, near)
        inverse = 1 / where(inside, 8, size)
        high = estrin(inverse * 16 - 1, far) * inverse.sqrt()  # XLA:CPU runs no division by a root on vectors
        if odd:
            return where(inside, low * x, where(x < 0, -high, high))
        return where(inside, low, high)

    return formula


def _single_formula(coefficients: Sequence[float], odd: bool) -> Any:
    def formula(x: Term) -> Term:
        far = abs(x) + _K
        # 1 / sqrt(x + K) from single precision, by a step of Newton's method.
        e, single = x.e, x.aval.update(dtype=dtypes.float32)
        guess = Term(e, e.convert(far.v, single), single).apply("stablehlo.rsqrt")
        root = Term(e, e.convert(guess.v, x.aval), x.aval)
        root = root * (1.5 - 0.5 * far * (root * root))
        inverse = root * root
        value = estrin(inverse * (2 * _K) - 1, coefficients) * root
        if odd:
            value = choose(value * inverse * x, (x.equals(-math.inf), -0.0))
        return where(x.equals(math.inf) if odd else far.equals(math.inf), 0, value)

    return formula


def _lower(double: Callable[[Term], Term], single: Callable[[Term], Term]) -> Any:
    wide, narrow = widened(double), widened(single)
    return lambda e, x: (wide if e.outs[0].dtype == dtypes.float64 else narrow)(e, x)


def _i0e_tangent(g: Any, x: Any, y: Any) -> Any:
    return elementwise.mul(g, elementwise.sub(bessel_i1e(x), elementwise.mul(elementwise.sign(x), y)))


def _i1e_over(x: Any, y: Any) -> Any:
    """Return y / x for y = exp(-|x|) I1(x); up to 1 by its power series, DLMF 10.25.2: derivatives keep digits."""
    near = elementwise.lt(elementwise.abs(x), full_like(x, 1))
    small, large = elementwise.select_n(near, full_like(x, 0), x), elementwise.select_n(near, x, full_like(x, 1))
    square, series = elementwise.mul(small, small), full_like(x, 0)
    for k in range(9, -1, -1):
        term = 0.5 / (4**k * math.factorial(k) * math.factorial(k + 1))
        series = elementwise.add(elementwise.mul(series, square), full_like(x, term))
    series = elementwise.mul(series, elementwise.exp(elementwise.neg(elementwise.abs(small))))
    return elementwise.select_n(near, elementwise.div(y, large), series)


def _i1e_tangent(g: Any, x: Any, y: Any) -> Any:
    """(e I1)' = e I0 - e I1 (sign x + 1/x); at 0 it is 1/2."""
    slope = elementwise.sub(elementwise.sub(bessel_i0e(x), elementwise.mul(y, elementwise.sign(x))), _i1e_over(x, y))
    return elementwise.mul(g, slope)


_I0E = _lower(_formula(_I0_NEAR, _I0_FAR, odd=False), _single_formula(_I0_SINGLE, odd=False))
_I1E = _lower(_formula(_I1_NEAR, _I1_FAR, odd=True), _single_formula(_I1_SINGLE, odd=True))
bessel_i0e = unary("bessel_i0e", _ref(0), _I0E, _i0e_tangent, takes="f", domain=(0.2, 12.0))
bessel_i1e = unary("bessel_i1e", _ref(1), _I1E, _i1e_tangent, takes="f", domain=(0.2, 12.0))
