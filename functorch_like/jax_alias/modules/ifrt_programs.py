"""`jax.extend.ifrt_programs`: jaxlib's programs for clients of its IFRT interface."""

from __future__ import annotations

from functorch_like.backends.xla.jaxlib_api import _jax

__all__ = ["ifrt_programs"]

ifrt_programs = _jax.ifrt_programs
