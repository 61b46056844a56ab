"""What JAX has under a name and the package has under another, or not at all: a file for each module of JAX."""
