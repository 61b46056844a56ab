"""Composable transformations of NumPy-style functions, compiled by XLA."""
