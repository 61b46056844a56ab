"""Formulas of elementwise primitives over NumPy and StableHLO alike."""
