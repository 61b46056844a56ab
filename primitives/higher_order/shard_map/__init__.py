"""Functions written for the parts of arrays on one device each."""
