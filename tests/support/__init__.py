"""Code shared by several test files. `tests/` is on the path, so it is imported as `support`."""
