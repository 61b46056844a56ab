"""Communication over a named axis."""
