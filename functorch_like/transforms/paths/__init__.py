"""Python control flow that depends on values, under jit: one program for all paths that the function has taken."""
