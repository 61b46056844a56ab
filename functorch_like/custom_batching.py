"""The user's batch rules, under the names of `jax.custom_batching`."""

from __future__ import annotations

from typing import Any

from functorch_like import lax, tree
from functorch_like.calling import api_boundary
from functorch_like.calling.traced_function import check_callable, wraps
from functorch_like.transforms.custom.custom_vmap import custom_vmap as custom_vmap
from functorch_like.transforms.tangents import Fun

__all__ = ["custom_vmap", "sequential_vmap"]


@api_boundary.public
def sequential_vmap(f: Fun) -> custom_vmap:
    """Make a function that vmap maps over its axis in a loop, one element after the other.

    For functions that need much memory for each element, or that vmap cannot vectorise. Under nested maps there are
    nested loops.

    Args:
        f: takes and returns pytrees of arrays.

    Returns:
        A `custom_vmap` function with `f`'s arguments and results; its batch rule is `lax.map`.

    Raises:
        ArgumentError: if `f` is not callable.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> square = ft.custom_batching.sequential_vmap(lambda x: x * x)
    >>> ft.vmap(square)(fnp.arange(3)).tolist()
    [0, 1, 4]
    """
    check_callable(f, "sequential_vmap")
    sequential = custom_vmap(f)

    @sequential.def_vmap
    @wraps(f)
    def rule(axis_size: int, in_batched: Any, *args: Any) -> Any:
        leaves, structure = tree.flatten(args)
        batched = tree.leaves(in_batched)

        def apply(elements: list[Any]) -> Any:
            rest = iter(elements)
            return sequential(
                *structure.unflatten([next(rest) if b else x for x, b in zip(leaves, batched, strict=True)])
            )

        out = lax.map(apply, [x for x, b in zip(leaves, batched, strict=True) if b])
        return out, tree.map(lambda _: True, out)

    return sequential
