"""Functions with given partial derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functorch_like import tree
from functorch_like.transforms.custom.custom_jvp import custom_jvp


def with_slopes(body: Callable[..., Any], *slopes: Callable[..., Any] | None) -> Callable[..., Any]:
    """Make a body with given partial derivatives, each a function `(result, *arguments)`, or None."""
    function = custom_jvp(body)

    def part(slope: Callable[..., Any]) -> Callable[..., Any]:
        return lambda g, out, *xs: tree.map(lambda s: s * g, slope(out, *xs))

    function.defjvps(*(None if s is None else part(s) for s in slopes))
    return function
