"""The three groups that operands of a scan, and inputs of its body, come in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class Groups(NamedTuple):
    """Values that are the same for all steps, that one step hands to the next, and that have a slice for each step."""

    consts: list[Any]
    carries: list[Any]
    slices: list[Any]


def groups(values: Sequence[Any], num_consts: int, num_carry: int) -> Groups:
    """Split operands of a scan into its groups."""
    at = num_consts + num_carry
    return Groups(list(values[:num_consts]), list(values[num_consts:at]), list(values[at:]))
