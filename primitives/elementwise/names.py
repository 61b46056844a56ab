"""All elementwise rows under one roof: `from functorch_like.primitives.elementwise.names import add`."""

# ruff: noqa: F401, I001, E501
# fmt: off
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from functorch_like.primitives.elementwise.transcendental import (acos, acosh, asin, asinh, atan, atan2, atanh, cbrt, ceil, cos, cosh, exp, exp2, expm1, floor, log, log1p, logistic, nextafter, one_minus_square, round, rsqrt, sin, sinh, sqrt, tan, tanh, tanh_slope)
from functorch_like.primitives.elementwise.arithmetic import (abs, div, integer_pow, max, min, mul, rem, share, sign, square, sub)
from functorch_like.primitives.elementwise.bitwise import (and_, bitcast_convert_type, clz, mulhi, not_, or_, population_count, reduce_precision, shift_left, shift_right_arithmetic, shift_right_logical, xor)
from functorch_like.primitives.elementwise.comparison import (clamp, eq, eq_to, ge, gt, is_finite, le, le_to, lt, lt_to, ne, select_n)
from functorch_like.primitives.elementwise.complex_parts import (complex, conj, imag, real)
from functorch_like.primitives.elementwise.powers import half_integer_pow, pow
from functorch_like.primitives.base.elementwise_makers import add, neg

if TYPE_CHECKING:
    from functorch_like.primitives.elementwise.erf_and_gamma import (digamma, erf, erf_inv, erfc, lgamma, polygamma)

_SPECIAL = ("digamma", "erf", "erf_inv", "erfc", "lgamma", "polygamma")


def __getattr__(name: str) -> Any:
    """Rows that few programs use, and whose formulas are long, when they are asked for."""
    if name not in _SPECIAL:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from functorch_like.primitives.elementwise import erf_and_gamma as special

    found = globals()[name] = getattr(special, name)
    return found
