"""Positions as indices: dimension numbers of gather and scatter, and scatter-add, which derivatives of both need."""
