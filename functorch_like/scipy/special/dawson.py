"""Dawson's integral and its derivative, by one polynomial.

D(x) = x (1 + x**2 Q / (1 + x**2)**2) / (1 + 2 x**2), where Q falls from 4/3 at 0 to 1 at infinity. The same Q gives the
derivative, 1 - 2 x D(x), without the cancellation that it has for large x. Q was interpolated by mpmath in Chebyshev
nodes of (x**2 - K) / (x**2 + K).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.primitives.formulas.term import estrin
from functorch_like.scipy.slopes import with_slopes

_K, _K_SINGLE = 24.0, 16.0
#: Coefficients of powers: with their roundings D is good to 2e-15.
_Q = (
    1.135249060697628, -0.2937761141945775, 0.347278811005774, -0.4185930074413705, 0.5192670582369849,
    -0.6727121243809578, 0.9250794138200896, -1.3474729864826573, 1.9721886226445127, -2.554419589112937,
    2.1650218114777178, 0.8341596022930845, -7.236309871333394, 13.719587313743165, -11.912099363957504,
    -3.6770383846127705, 22.282276121428445, -19.741737828371065, -9.366676114315252, 29.16554288363119,
    -5.429692908720769, -29.51885821190774, 14.566715061528546, 28.34359528079136, -18.47933058585131,
    -28.56089437296234, 18.73083170131982, 29.74451933915107, -16.429184125956304, -29.901052875153084,
    12.537011464104976, 27.12969713429295, -8.177658142555748, -21.119984545882392, 4.438038635962368,
    13.55612738820525, -1.9364633119581331, -6.90577158920503, 0.6492063574239036, 2.667349195341273,
    -0.15630831870268586, -0.7308278634253461, 0.02398247882510455, 0.1262001482209423, -0.0017571884580997222,
    -0.010305459204679455,
)  # fmt: skip
#: The same for results in single precision: good to 6e-11.
_Q_SINGLE = (
    1.2123732466840749, -0.48726255274442076, 0.6518040501264247, -0.9383589944024509, 1.4431166087187908,
    -2.1338583968796017, 2.3369622367283265, -0.30252223316609367, -5.315035349999841, 11.067366659340303,
    -7.54211203160644, -8.26104220500229, 18.13405964417805, -2.451190108569226, -18.404689258383645, 7.752996957207023,
    15.688268610775719, -7.900201687059345, -11.943420803715348, 5.339822136492295, 7.4615483689958575,
    -2.4556836343297865, -3.3994725641808943, 0.6937136766756477, 0.9722713145852626, -0.090446284906534,
    -0.1290074073587694,
)  # fmt: skip
#: 1 / (2 x) is exact above.
_FAR = 1e8


def dawson(single: bool) -> Callable[[Any], Any]:
    """Return a function in double precision; one for results in single precision sums fewer terms."""
    middle, powers = (_K_SINGLE, _Q_SINGLE) if single else (_K, _Q)

    def parts(x: Any) -> tuple[Any, Any, Any]:
        """Return where x is far, and elsewhere x**2 and Q."""
        far = fnp.abs(x) > _FAR
        square = fnp.where(far, 1, x) ** 2
        at = (square - middle) / (square + middle)
        return far, square, estrin(at, powers)

    def body(x: Any) -> Any:
        far, square, q = parts(x)
        near = (1 + square * q / ((1 + square) * (1 + square))) / (1 + 2 * square)
        return fnp.where(far, 0.5 / fnp.where(far, x, 1), x * near)

    def slope(out: Any, x: Any) -> Any:
        far, square, q = parts(x)
        inverse = 1 / fnp.where(far, x, 1)
        part = square / (1 + square)
        return fnp.where(far, -0.5 * inverse * inverse, (1 - 2 * part * part * q) / (1 + 2 * square))

    return with_slopes(body, slope)
