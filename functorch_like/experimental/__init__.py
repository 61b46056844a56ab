"""Functions that are useful and may still change: `experimental.ode`, ordinary differential equations."""

from __future__ import annotations

from functorch_like.calling import lazy_imports as _lazy_imports

with _lazy_imports.block(__name__, wrap=False):
    from functorch_like.experimental import ode as ode
