"""`jax.experimental.random`: generators whose keys are typed."""

from __future__ import annotations

from typing import Any

from functorch_like.experimental.random import StatefulPRNG as StatefulPRNG
from functorch_like.experimental.random import made, seeded
from functorch_like.jax_alias.modules.random import key

__all__ = ["StatefulPRNG", "stateful_rng"]


def stateful_rng(seed: Any = None, *, impl: Any = None) -> StatefulPRNG:
    """Make a random generator that keeps its own state, as `functorch_like.experimental.random` does."""
    return made(key(seeded(seed), impl=impl))
