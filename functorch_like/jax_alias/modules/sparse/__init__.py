"""Submodules of `jax.experimental.sparse`, a file each; the module itself is `experimental.sparse`."""
