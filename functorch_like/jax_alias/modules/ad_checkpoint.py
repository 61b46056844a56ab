"""`jax.ad_checkpoint`: decisions of policies."""

from __future__ import annotations

from functorch_like.debug.saved_residuals import saved_residuals as saved_residuals
from functorch_like.primitives.higher_order.checkpoint.rematerialization import Offload

#: Decisions of a policy: to keep a value, or to compute it again.
Saveable, Recompute = True, False


def Offloadable(src: str, dst: str) -> Offload:
    """Return the decision to keep a value in another kind of memory."""
    return Offload(src, dst)
