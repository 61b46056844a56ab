"""The table of primitives: one row each, families by file."""
