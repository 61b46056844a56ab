"""Conversion of Python and NumPy values to arrays, and the devices that hold them."""
