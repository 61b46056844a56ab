"""Clusters, under SciPy's names: `cluster.vq.vq`."""

from __future__ import annotations

from functorch_like.calling import lazy_imports as _lazy_imports

with _lazy_imports.block(__name__, wrap=False):
    from functorch_like.scipy.cluster import vq as vq
