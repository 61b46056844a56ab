"""Integrals of samples, under SciPy's names."""

from __future__ import annotations

from functorch_like.numpy.cumulative import trapezoid as trapezoid

__all__ = ["trapezoid"]
