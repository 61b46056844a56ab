"""Geometry under SciPy's names: `spatial.transform`, rotations of space."""

from __future__ import annotations

from functorch_like.scipy.spatial import transform as transform
