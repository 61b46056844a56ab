"""Rematerialization, and the values it keeps under a memory budget."""
