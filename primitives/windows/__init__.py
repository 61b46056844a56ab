"""Reductions over sliding windows, and their transposes."""
