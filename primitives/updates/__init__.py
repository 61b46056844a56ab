"""Slices at computed positions, gather and scatter."""
