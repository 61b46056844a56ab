"""Functions under SciPy's names: `functorch_like.scipy.special`, `functorch_like.scipy.linalg`, `scipy.stats`, ..."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from functorch_like import late as _late
from functorch_like.scipy import linalg as linalg
from functorch_like.scipy import special as special

if _TYPE_CHECKING:
    from functorch_like.scipy import stats as stats

__getattr__, __dir__ = _late.attach(__name__, {}, modules=("stats",))
