"""Functions under SciPy's names: `functorch_like.scipy.special`, `functorch_like.scipy.linalg`, `scipy.stats`, ..."""

from __future__ import annotations

from functorch_like.calling import lazy_imports as _lazy_imports

with _lazy_imports.block(__name__):
    from functorch_like.scipy import cluster as cluster
    from functorch_like.scipy import fft as fft
    from functorch_like.scipy import integrate as integrate
    from functorch_like.scipy import interpolate as interpolate
    from functorch_like.scipy import linalg as linalg
    from functorch_like.scipy import ndimage as ndimage
    from functorch_like.scipy import optimize as optimize
    from functorch_like.scipy import signal as signal
    from functorch_like.scipy import sparse as sparse
    from functorch_like.scipy import spatial as spatial
    from functorch_like.scipy import special as special
    from functorch_like.scipy import stats as stats
