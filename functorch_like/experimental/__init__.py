"""Modules that are useful and may still change: `ode`, ordinary differential equations, and `sparse`, sparse arrays."""

from __future__ import annotations

from functorch_like.calling import lazy_imports as _lazy_imports

with _lazy_imports.block(__name__, wrap=False):
    from functorch_like.experimental import ode as ode
with _lazy_imports.block(__name__):
    from functorch_like.experimental import sparse as sparse
