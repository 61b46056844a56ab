"""The transformations that users call."""
