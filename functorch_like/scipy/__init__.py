"""Functions under SciPy's names: `functorch_like.scipy.special`, `functorch_like.scipy.linalg`."""

from __future__ import annotations

from functorch_like.scipy import linalg as linalg
from functorch_like.scipy import special as special
