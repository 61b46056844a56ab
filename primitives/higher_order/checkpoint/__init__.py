"""Rematerialization, and what it keeps under a memory budget."""
