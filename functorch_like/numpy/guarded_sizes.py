"""Sizes of results that depend on values: known where jit follows Python's control flow, as guards of the path."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import Tracer, aval_of, state
from functorch_like.errors import ArgumentError, ConcretizationError
from functorch_like.ir.trace_to_jaxpr import follower
from functorch_like.numpy import promotion
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.ordering.sort import sort


def checked_size(size: Any, name: str = "size") -> int:
    """Return the user's `size=` as an int; raise for a negative one."""
    n = operator.index(size)
    if n < 0:
        raise promotion.error(ArgumentError, f"{name}={n} is negative", "give 0 or more")
    return n


def guarded_size(x: Any) -> int | None:
    """Return the value of an integer scalar that is the size of a result; None where it is only traced."""
    value = x.guarded("size") if isinstance(x, Tracer) else x
    return None if value is None else int(np.asarray(value))


def traced_size(x: Tracer, reason: str, fix: str) -> int:
    """Return the value of a traced number on which a shape depends, where jit follows Python's control flow.

    Raises:
        ConcretizationError: where it does not, and for anything but an integer scalar.
    """
    aval = aval_of(x)
    value = guarded_size(x) if dtypes.is_integer(aval.dtype) and not aval.shape else None
    if value is None:
        follows = follower(state.trace) is not None
        paths = "" if follows else "; or let jit trace each size: jit(control_flow='paths')"
        raise promotion.error(ConcretizationError, reason, f"{fix}{paths}")
    return value


def count_true(mask: Any) -> int | None:
    """Return the number of true elements of a traced array of booleans; None where it is not known."""
    flat = structural.reshape(mask, shape=(aval_of(mask).size,))
    numbers = structural.convert_element_type(flat, new_dtype=dtypes.default_int(), weak_type=False)
    return guarded_size(structural.reduce_sum(numbers, axes=(0,)))


def mask_places(mask: Any, size: int) -> list[Any]:
    """Return the positions at which a traced array of booleans is true: an array for each dimension."""
    aval, index = aval_of(mask), dtypes.default_int()
    false = elementwise.not_(structural.reshape(mask, shape=(aval.size,)))
    places = structural.iota(dtype=index, shape=(aval.size,), dimension=0)
    _, order = sort(false, places, dimension=0, is_stable=True, num_keys=1)
    rest = structural.slice(order, start_indices=(0,), limit_indices=(size,), strides=(1,))
    result: list[Any] = []
    for n in reversed(aval.shape):
        result.append(elementwise.rem(rest, structural.full_like(rest, max(n, 1))))
        rest = elementwise.div(rest, structural.full_like(rest, max(n, 1)))
    return result[::-1]
