"""Callbacks, checks and other primitives that a program must not drop, move or repeat."""
