"""`jax.experimental.compilation_cache`: the cache on disk, which is on by default."""

from __future__ import annotations


def set_cache_dir(path: str) -> None:
    """Do nothing: the package keeps its cache in FT_CACHE_DIR."""


initialize_cache = set_cache_dir


def reset_cache() -> None:
    """Do nothing."""
