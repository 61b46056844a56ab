"""`jax.experimental.layout`: descriptions of how arrays lie in memory, which have no effect."""

from __future__ import annotations

from typing import Any


class Layout:
    """An order of axes in memory."""

    AUTO: Any = None

    def __init__(self, major_to_minor: Any = None, *details: Any, **options: Any) -> None:
        self.major_to_minor = major_to_minor


class Format:
    """A layout and a sharding."""

    def __init__(self, layout: Any = None, sharding: Any = None) -> None:
        self.layout, self.sharding = layout, sharding


DeviceLocalLayout = Layout
