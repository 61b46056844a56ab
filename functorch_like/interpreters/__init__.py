"""Interpreters of primitives: evaluation, forward mode, reverse mode and batching."""
