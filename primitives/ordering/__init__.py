"""Sorting and the largest k elements."""
