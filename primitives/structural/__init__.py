"""Primitives that move data and compute nothing."""
