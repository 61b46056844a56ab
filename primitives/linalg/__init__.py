"""Matrix factorizations, eigenvalues and linear solves."""
