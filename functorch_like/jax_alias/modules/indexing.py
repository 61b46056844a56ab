"""`jax._src.numpy.indexing`: the function behind `x[index]`, which qwix exchanges by its code object."""

from functorch_like.numpy.indexing import getitem as rewriting_take

__all__ = ["rewriting_take"]
