"""Primitives that others are made of, and makers of primitives."""
