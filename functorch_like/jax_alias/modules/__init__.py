"""JAX's names that the package has under another name, or not at all: a file for each module of JAX."""
