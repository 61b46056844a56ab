"""What is useful and may still change: `experimental.ode`, ordinary differential equations."""

from __future__ import annotations

from functorch_like.experimental import ode as ode
