"""Functions under SciPy's names: `functorch_like.scipy.special`."""

from __future__ import annotations

from functorch_like.scipy import special as special
