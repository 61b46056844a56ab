"""Policies of `checkpoint`: rules that select the intermediate values to keep for the derivative.

A policy is a function `(primitive, *avals, **params)`, called for each equation of the checkpointed function. It
returns True to keep the results, False to compute them again, or an `Offload` to keep them in other memory. It must be
hashable; those here are equal if made with equal arguments.

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
from functorch_like.errors import ArgumentError, nearest
from functorch_like.primitives.contractions.convolution import conv_general_dilated
from functorch_like.primitives.contractions.dot_general import dot_general
from functorch_like.primitives.effects.checkpoint_name import name as named
from functorch_like.primitives.effects.memory_placement import KINDS
from functorch_like.primitives.higher_order.checkpoint.memory_budget import Within
from functorch_like.primitives.higher_order.checkpoint.rematerialization import Offload as Offload

Policy = Callable[..., Any]


def everything_saveable(prim: Primitive, *avals: object, **params: object) -> bool:
    """Keep all intermediate values, as without `checkpoint`."""
    return True


def nothing_saveable(prim: Primitive, *avals: object, **params: object) -> bool:
    """Keep the arguments alone; the default policy."""
    return False


def dots_saveable(prim: Primitive, *avals: object, **params: object) -> bool:
    """Keep the results of matrix products and convolutions; compute all other values again."""
    return prim is dot_general or prim is conv_general_dilated


checkpoint_dots = dots_saveable


def dots_with_no_batch_dims_saveable(prim: Primitive, *avals: object, **params: Any) -> bool:
    """Keep the results of products without batch dimensions: of activations with weights, not with each other."""
    return prim is dot_general and not any(params["dimension_numbers"][1])


checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable


@dataclasses.dataclass(frozen=True)
class _Names:
    """Policy by the names that `checkpoint_name` gave; `others` is its result for equations without a name."""

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
            raise ArgumentError(
                f"a policy takes names as strings, got {name!r:.60}", fix="give names that checkpoint_name has set"
            )
    return frozenset(names)


@api_boundary.public
def save_only_these_names(*names: str) -> Policy:
    """Keep the values of these names only.

    Args:
        names: names that `checkpoint_name` gives.

    Returns:
        A policy for `checkpoint`.

    Raises:
        ArgumentError: for a name that is not a string.

    >>> import functorch_like as ft
    >>> policy = ft.checkpoint_policies.save_only_these_names("square")
    >>> float(ft.grad(ft.checkpoint(lambda x: ft.checkpoint_name(x * x, "square") ** 2, policy=policy))(1.0))
    4.0
    """
    return _Names(_names(names), frozenset(), False)


@api_boundary.public
def save_any_names_but_these(*names: str) -> Policy:
    """Keep all values that have a name, except those of these names.

    Args:
        names: names that `checkpoint_name` gives.

    Returns:
        A policy for `checkpoint`.

    Raises:
        ArgumentError: for a name that is not a string.

    >>> import functorch_like as ft
    >>> policy = ft.checkpoint_policies.save_any_names_but_these("square")
    >>> float(ft.grad(ft.checkpoint(lambda x: ft.checkpoint_name(x * x, "square") ** 2, policy=policy))(1.0))
    4.0
    """
    return _Names(None, _names(names), False)


@api_boundary.public
def save_anything_except_these_names(*names: str) -> Policy:
    """Keep all values except those of these names; the operand of `checkpoint_name` is kept.

    Args:
        names: names that `checkpoint_name` gives.

    Returns:
        A policy for `checkpoint`.

    Raises:
        ArgumentError: for a name that is not a string.

    >>> import functorch_like as ft
    >>> policy = ft.checkpoint_policies.save_anything_except_these_names("square")
    >>> float(ft.grad(ft.checkpoint(lambda x: ft.checkpoint_name(x * x, "square") ** 2, policy=policy))(1.0))
    4.0
    """
    return _Names(None, _names(names), True)


@dataclasses.dataclass(frozen=True)
class _Either:
    first: Policy
    second: Policy

    def __call__(self, prim: Primitive, *avals: Any, **params: Any) -> Any:
        return self.first(prim, *avals, **params) or self.second(prim, *avals, **params)


def save_from_both_policies(first: Policy, second: Policy) -> Policy:
    """Keep a value if one of two policies keeps it.

    Args:
        first: a policy; where it keeps a value, its result counts.
        second: a policy for all other values.

    Returns:
        A policy for `checkpoint`.

    >>> import functorch_like as ft
    >>> policies = ft.checkpoint_policies
    >>> policy = policies.save_from_both_policies(policies.dots_saveable, policies.save_only_these_names("square"))
    >>> float(ft.grad(ft.checkpoint(lambda x: ft.checkpoint_name(x * x, "square") ** 2, policy=policy))(1.0))
    4.0
    """
    return _Either(first, second)


def _offload(source: str, target: str) -> Offload:
    for name, kind in (("offload_src", source), ("offload_dst", target)):
        if kind not in KINDS:
            raise ArgumentError(
                f"{name}={kind!r:.60} is not a kind of memory{nearest(str(kind), KINDS)}",
                fix=f"use one of {', '.join(map(repr, KINDS))}",
            )
    return Offload(source, target)


@dataclasses.dataclass(frozen=True)
class _SaveAndOffloadNames:
    """Policy by the names that `checkpoint_name` gave, with offloading."""

    saved: frozenset[str]
    offloaded: frozenset[str]
    how: Offload

    def __call__(self, prim: Primitive, *avals: Any, **params: Any) -> Any:
        if prim is not named:
            return False
        return params["name"] in self.saved or (self.how if params["name"] in self.offloaded else False)


@api_boundary.public
def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Sequence[str],
    names_which_can_be_offloaded: Sequence[str],
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """Keep values of some names on the device, and those of others in the host's memory.

    The compiled program moves them there, and back for the derivative. On CPUs, which have one memory, and in
    derivatives outside of `jit`, values of all of these names are kept where they are.

    Args:
        names_which_can_be_saved: names of values that stay.
        names_which_can_be_offloaded: names of values that are moved.
        offload_src: the kind of memory that they are in: "device".
        offload_dst: the kind of memory that they are moved to: "pinned_host".

    Returns:
        A policy for `checkpoint`.

    Raises:
        ArgumentError: for a name in both lists, or an unknown kind of memory.

    >>> import functorch_like as ft
    >>> policy = ft.checkpoint_policies.save_and_offload_only_these_names(
    ...     names_which_can_be_saved=[], names_which_can_be_offloaded=["hidden"],
    ...     offload_src="device", offload_dst="pinned_host")
    >>> f = ft.checkpoint(lambda x: ft.checkpoint_name(x * x, "hidden") ** 2, policy=policy)
    >>> float(ft.jit(ft.grad(f))(1.0))
    4.0
    """
    saved, offloaded = _names(tuple(names_which_can_be_saved)), _names(tuple(names_which_can_be_offloaded))
    if saved & offloaded:
        raise ArgumentError(
            f"{', '.join(sorted(saved & offloaded))}: to be saved and to be offloaded", fix="put each name in one list"
        )
    return _SaveAndOffloadNames(saved, offloaded, _offload(offload_src, offload_dst))


@dataclasses.dataclass(frozen=True)
class _OffloadDots:
    how: Offload

    def __call__(self, prim: Primitive, *avals: Any, **params: Any) -> Any:
        return dots_with_no_batch_dims_saveable(prim, *avals, **params) and self.how


@api_boundary.public
def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Keep the results of products without batch dimensions in the host's memory.

    Args:
        offload_src: as for `save_and_offload_only_these_names`.
        offload_dst: likewise.

    Returns:
        A policy for `checkpoint`.

    Raises:
        ArgumentError: for an unknown kind of memory.

    >>> import functorch_like as ft
    >>> policy = ft.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    >>> f = ft.checkpoint(lambda w, x: fnp.sin(w @ x).sum(), policy=policy)
    >>> ft.jit(ft.grad(f))(fnp.zeros((1, 2)), fnp.ones(2)).tolist()
    [[1.0, 1.0]]
    """
    return _OffloadDots(_offload(offload_src, offload_dst))


@api_boundary.public
def within(bytes: int) -> Policy:
    """Keep the values that fit a memory budget, chosen so that as little as possible is computed again.

    As long as the budget allows it, no matrix product, convolution or loop is computed again. A minimum cut through
    the graph of the function and its derivative gives the values to keep; cheap elementwise operations compute the
    others from them. With a smaller budget, the first part of the function is computed again in segments. The smallest
    budget that can be met grows with the square root of the depth, and costs one more run of the function.

    H. He and S. Yu, "Transcending runtime-memory tradeoffs in checkpointing by being fusion aware", 2023; T. Chen et
    al., "Training deep nets with sublinear memory cost", arXiv:1604.06174.

    Args:
        bytes: the intermediate values that may be alive at one time: those that are kept and those that a segment
            computes again. Arguments do not count. A budget that cannot be met gives the plan that comes nearest.

    Returns:
        A policy for `checkpoint`.

    Raises:
        ArgumentError: unless bytes is a number from 0.

    >>> import functorch_like as ft
    >>> f = ft.checkpoint(lambda x: fnp.sin(fnp.sin(fnp.sin(x))), policy=ft.checkpoint_policies.within(1 << 20))
    >>> float(ft.grad(f)(0.0))
    1.0
    """
    if isinstance(bytes, bool) or not isinstance(bytes, (int, float)) or not bytes >= 0:
        raise ArgumentError(f"a budget of {bytes!r} bytes", fix="give a number from 0, e.g. 2**30")
    return Within(int(bytes))
