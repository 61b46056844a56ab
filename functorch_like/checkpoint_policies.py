"""Policies of `checkpoint`: which intermediate values are kept for the derivative, and which computed again.

A policy is a function `(primitive, *avals, **params) -> bool`, asked for each equation of the checkpointed function
whether its results are kept. It must be hashable; those here are equal if made with equal arguments.

>>> import functorch_like as ft
>>> policy = ft.checkpoint_policies.save_only_these_names("hidden")
>>> def layer(w, x):
...     return fnp.tanh(ft.checkpoint_name(w @ x, "hidden"))
>>> ft.grad(lambda w, x: ft.checkpoint(layer, policy=policy)(w, x).sum())(fnp.ones((2, 2)), fnp.zeros(2)).tolist()
[[0.0, 0.0], [0.0, 0.0]]
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from functorch_like.calling import api_boundary
from functorch_like.core import Primitive
from functorch_like.errors import ArgumentError, UnsupportedError
from functorch_like.primitives.contractions.convolution import conv_general_dilated
from functorch_like.primitives.contractions.dot_general import dot_general
from functorch_like.primitives.effects.checkpoint_name import name as named
from functorch_like.primitives.higher_order.checkpoint.memory_budget import Within

Policy = Callable[..., bool]


def everything_saveable(prim: Primitive, *avals: Any, **params: Any) -> bool:
    """Keep everything, as without `checkpoint`."""
    return True


def nothing_saveable(prim: Primitive, *avals: Any, **params: Any) -> bool:
    """Keep nothing but the arguments; the default."""
    return False


def dots_saveable(prim: Primitive, *avals: Any, **params: Any) -> bool:
    """Keep the results of matrix products and convolutions, compute everything else again."""
    return prim is dot_general or prim is conv_general_dilated


checkpoint_dots = dots_saveable


def dots_with_no_batch_dims_saveable(prim: Primitive, *avals: Any, **params: Any) -> bool:
    """Keep the results of products without batch dimensions: of activations with weights, not with each other."""
    return prim is dot_general and not any(params["dimension_numbers"][1])


checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable


@dataclasses.dataclass(frozen=True)
class _Names:
    """By the names that `checkpoint_name` gave; `others` is for equations that are no names."""

    kept: frozenset[str] | None
    recomputed: frozenset[str]
    others: bool

    def __call__(self, prim: Primitive, *avals: Any, **params: Any) -> bool:
        if prim is not named:
            return self.others
        name = params["name"]
        return name not in self.recomputed and (self.kept is None or name in self.kept)


def _names(names: tuple[str, ...]) -> frozenset[str]:
    for name in names:
        if not isinstance(name, str):
            raise ArgumentError(f"{name!r:.60} is no name", fix="give names, as checkpoint_name was given")
    return frozenset(names)


@api_boundary.public
def save_only_these_names(*names: str) -> Policy:
    """Keep the values of these names only."""
    return _Names(_names(names), frozenset(), False)


@api_boundary.public
def save_any_names_but_these(*names: str) -> Policy:
    """Keep all values that have a name, but for these."""
    return _Names(None, _names(names), False)


@api_boundary.public
def save_anything_except_these_names(*names: str) -> Policy:
    """Keep everything but the values of these names; of a value that was named, what it was named from is kept."""
    return _Names(None, _names(names), True)


@dataclasses.dataclass(frozen=True)
class _Either:
    first: Policy
    second: Policy

    def __call__(self, prim: Primitive, *avals: Any, **params: Any) -> bool:
        return bool(self.first(prim, *avals, **params)) or bool(self.second(prim, *avals, **params))


def save_from_both_policies(first: Policy, second: Policy) -> Policy:
    """Keep what one of two policies keeps."""
    return _Either(first, second)


@api_boundary.public
def save_and_offload_only_these_names(
    *, names_which_can_be_saved: Sequence[str], names_which_can_be_offloaded: Sequence[str], **places: str
) -> Policy:
    """Keep values of some names on the device, and move those of others to the host's memory.

    Args:
        names_which_can_be_saved: as of `save_only_these_names`.
        names_which_can_be_offloaded: not supported; must be empty.
        places: `offload_src` and `offload_dst`, which JAX wants.

    Raises:
        UnsupportedError: where there is anything to be moved.
    """
    if names_which_can_be_offloaded:
        raise _nowhere()
    return save_only_these_names(*names_which_can_be_saved)


@api_boundary.public
def offload_dot_with_no_batch_dims(offload_src: str = "device", offload_dst: str = "pinned_host") -> Policy:
    """As `dots_with_no_batch_dims_saveable`, in the host's memory; not supported.

    Raises:
        UnsupportedError: always.
    """
    raise _nowhere()


def _nowhere() -> UnsupportedError:
    return UnsupportedError(
        "values that are kept cannot be moved to the host: on a CPU they lie there already, and this package has no "
        "memories beside the device's own",
        fix="keep them with save_only_these_names, or keep fewer with within(bytes)",
    )


@api_boundary.public
def within(bytes: int) -> Policy:
    """Keep what fits a budget of memory, and so that least is computed again.

    As long as the budget allows it, no matrix product, convolution or loop is computed again: a cheapest cut through
    the graph of the function and its derivative says which values are kept, and cheap elementwise operations make the
    others of them. Below that, the function is computed again from its start up to some place, in segments; with the
    least budget that it can meet, memory goes with the square root of the depth, for one more run of the function.

    Args:
        bytes: how many may be alive at one time of intermediate values, kept ones and those that a segment computes
            again. Arguments do not count. A budget that cannot be met gives the plan that comes nearest.

    Raises:
        ArgumentError: where bytes is no number from 0.

    >>> import functorch_like as ft
    >>> f = ft.checkpoint(lambda x: fnp.sin(fnp.sin(fnp.sin(x))), policy=ft.checkpoint_policies.within(1 << 20))
    >>> float(ft.grad(f)(0.0))
    1.0
    """
    if isinstance(bytes, bool) or not isinstance(bytes, (int, float)) or not bytes >= 0:
        raise ArgumentError(f"a budget of {bytes!r} bytes", fix="give a number from 0, e.g. 2**30")
    return Within(int(bytes))
