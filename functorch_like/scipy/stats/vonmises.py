"""Von Mises' distribution, of angles."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.primitives.elementwise.bessel import bessel_i0e
from functorch_like.scipy.stats.families import Family

_family = Family("von Mises' distribution", "0.5, 2.0", lambda kappa: kappa >= 0)


@_family
def logpdf(x: Any, kappa: Any) -> Any:
    """kappa cos x - log(2 pi I0(kappa)), with kappa subtracted from both terms."""
    return -2 * kappa * fnp.sin(0.5 * x) ** 2 - fnp.log(2 * math.pi * bessel_i0e(kappa))


pdf = _family.exp(logpdf)
