"""SciPy's module for sparse matrices: `sparse.linalg`, linear systems of functions and matrices by iteration."""

from __future__ import annotations

from functorch_like.calling import lazy_imports as _lazy_imports

with _lazy_imports.block(__name__, wrap=False):
    from functorch_like.scipy.sparse import linalg as linalg
