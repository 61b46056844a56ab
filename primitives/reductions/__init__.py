"""Reductions and cumulative reductions."""
