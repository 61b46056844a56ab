"""`jax.memory`."""

from functorch_like.sharding import MemorySpace as Space

__all__ = ["Space"]
