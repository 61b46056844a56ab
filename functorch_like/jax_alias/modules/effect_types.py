"""Sets of classes of effects, to which libraries add their own."""

from __future__ import annotations

from typing import Any


class EffectTypes:
    """A set of classes of effects."""

    def __init__(self) -> None:
        self._types: set[type] = set()

    def add_type(self, effect_type: type) -> None:
        """Add a class. This changes nothing: effects of libraries are allowed everywhere."""
        self._types.add(effect_type)

    def contains(self, effect: Any) -> bool:
        """Return True for an effect of a class in the set."""
        return isinstance(effect, tuple(self._types))


control_flow_allowed_effects = EffectTypes()
lowerable_effects = EffectTypes()
