"""Clusters, under SciPy's names: `cluster.vq.vq`."""

from __future__ import annotations

from functorch_like.scipy.cluster import vq as vq
