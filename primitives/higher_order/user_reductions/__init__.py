"""Reductions, window reductions and scatters by a function of the user's."""
