"""scatter (which overwrites), scatter_mul, scatter_min and scatter_max: updates by a way other than adding.

Where several updates go to one place, `scatter` keeps one of them, the last on CPUs; its derivative follows the one
that was kept. `unique_indices=True` promises that this does not happen, and is cheaper to differentiate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import NotDefined, Primitive, UndefinedPrimal, aval_of
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.base.bilinear import both_unknown
from functorch_like.primitives.indexing.gather_and_scatter_add import along, read_back, scatter_add
from functorch_like.primitives.indexing.scatter_makers import scatter_primitive
from functorch_like.primitives.ordering.sort import sort
from functorch_like.primitives.reductions.cumulative import shifted


def _zeros(x: Any) -> Any:
    return structural.zeros(aval_of(x).strong())


def _cast(flags: Any, like: Any) -> Any:
    return structural.convert_element_type(flags, new_dtype=aval_of(like).dtype)


def _winners(operand: Any, indices: Any, updates: Any, params: dict[str, Any]) -> tuple[Any, Any]:
    """Find the elements of the operand that survive, and the updates that are kept, by scattering their numbers."""
    into, written = aval_of(operand), aval_of(updates)
    number = dtypes.int32 if written.size < 2**31 - 1 else dtypes.int64
    flat = structural.iota(dtype=number, shape=(written.size,), dimension=0)
    ids = structural.reshape(elementwise.add(flat, structural.full_like(flat, 1)), shape=written.shape)
    spread = scatter(structural.zeros(into.strong().update(dtype=number)), indices, ids, **params)
    return elementwise.eq(spread, structural.full_like(spread, 0)), elementwise.eq(
        read_back(spread, indices, written, params), ids
    )


def _set_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    operand, indices, updates = primals
    base, _, news = tangents
    base = _zeros(operand) if base is None else base
    news = _zeros(updates) if news is None else news
    if params.get("unique_indices", False):
        return scatter(operand, indices, updates, **params), scatter(base, indices, news, **params)
    # Kept updates are added to the elements that survive: this is right whichever of repeated ones the hardware keeps.
    survives, kept = _winners(operand, indices, updates, params)
    write = lambda old, new: scatter_add(
        elementwise.select_n(survives, _zeros(old), old),
        indices,
        elementwise.select_n(kept, _zeros(new), new),
        **params,
    )
    return write(operand, updates), write(base, news)


def _set_transpose(ct: Any, args: Sequence[Any], **params: Any) -> list[Any]:
    operand, indices, updates = args
    back: list[Any] = [None, None, None]
    if type(operand) is UndefinedPrimal:
        back[0] = scatter(ct, indices, _zeros(updates), **params)
    if type(updates) is UndefinedPrimal:
        back[2] = read_back(ct, indices, updates.aval, params)
        if not params.get("unique_indices", False):
            _, kept = _winners(ct, indices, updates, params)
            back[2] = elementwise.select_n(kept, _zeros(back[2]), back[2])
    return back


scatter = scatter_primitive(
    "scatter", lambda old, new: new, "", _set_jvp, _set_transpose, lambda dtype: True,
    "float32", "int32", "complex64", "bool", "bfloat16", linear="jointly",
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------ scatter_mul
def _mul_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    """Compute for each update the product of the operand and of all other updates that go to the same place."""
    operand, indices, updates = primals
    base, _, news = tangents
    out = scatter_mul(operand, indices, updates, **params)
    tangent = None
    if base is not None:
        tangent = elementwise.mul(base, scatter_mul(structural.full_like(operand, 1), indices, updates, **params))
    if news is not None:
        rest = read_back(operand, indices, aval_of(updates), params)
        if not params.get("unique_indices", False) and aval_of(updates).size > 1:
            rest = elementwise.mul(rest, _others(operand, indices, updates, params))
        change = scatter_add(_zeros(operand), indices, elementwise.mul(news, rest), **params)
        tangent = change if tangent is None else elementwise.add(tangent, change)
    return out, tangent


def _others(operand: Any, indices: Any, updates: Any, params: dict[str, Any]) -> Any:
    """Compute for each update the product of the others that go to the same place.

    Updates are sorted by place, multiplied up from both ends of each place, and sorted back: nothing is divided, so
    that zeros do no harm, in derivatives of any order.
    """
    into, written = aval_of(operand), aval_of(updates)
    places = structural.reshape(structural.iota(dtype=dtypes.int64, shape=(into.size,), dimension=0), shape=into.shape)
    reached = elementwise.add(places, structural.full_like(places, 1))  # dropped updates read 0
    place = structural.reshape(read_back(reached, indices, written, params), shape=(written.size,))
    flat = structural.reshape(updates, shape=(written.size,))
    dropped = elementwise.eq(place, structural.full_like(place, 0))
    flat = elementwise.select_n(dropped, flat, structural.full_like(flat, 1))
    number = structural.iota(dtype=dtypes.int64, shape=(written.size,), dimension=0)
    place, order = sort(place, number, dimension=0, is_stable=True, num_keys=1)
    in_order = along(flat, order, 0)
    both = elementwise.mul(_before(place, in_order, False), _before(place, in_order, True))
    _, back = sort(order, number, dimension=0, is_stable=True, num_keys=1)
    return structural.reshape(along(both, back, 0), shape=written.shape)


def _before(place: Any, x: Any, reverse: bool) -> Any:
    """Compute for each element the product of those before it (after it) at the same place; places are sorted."""
    n, one = aval_of(x).shape[0], structural.full_like(x, 1)
    same = lambda by: elementwise.eq(shifted(place, by, -1, 0, reverse), place)
    total, by = elementwise.select_n(same(1), one, shifted(x, 1, 1, 0, reverse)), 1
    while by < n:
        total = elementwise.mul(total, elementwise.select_n(same(by), one, shifted(total, by, 1, 0, reverse)))
        by *= 2
    return total


def _mul_transpose(ct: Any, args: Sequence[Any], **params: Any) -> list[Any]:
    operand, indices, updates = args
    if both_unknown("scatter_mul", operand, updates):
        return [ct, None, None]
    if type(operand) is UndefinedPrimal:
        return [elementwise.mul(ct, scatter_mul(structural.full_like(ct, 1), indices, updates, **params)), None, None]
    return [
        None,
        None,
        read_back(elementwise.mul(ct, operand), indices, updates.aval, params),
    ]  # linear if indices are unique


scatter_mul = scatter_primitive(
    "scatter_mul", np.multiply, "multiply", _mul_jvp, _mul_transpose, lambda dtype: dtype != dtypes.bool_,
    "float32", "int32", "complex64",
)  # fmt: skip


# --------------------------------------------------------------------------------------- scatter_min, scatter_max
def _extreme_jvp(primitive: Callable[[], Primitive]) -> Any:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        """The operand's element and the updates that attain the extreme share the derivative evenly."""
        operand, indices, updates = structural.materialize(primals[0]), primals[1], structural.materialize(primals[2])
        base, _, news = tangents
        out = primitive()(operand, indices, updates, **params)
        old = _cast(elementwise.eq(operand, out), operand)
        new = _cast(elementwise.eq(updates, read_back(out, indices, aval_of(updates), params)), operand)
        count = scatter_add(old, indices, new, **params)
        total = _zeros(operand) if base is None else elementwise.mul(base, old)
        if news is not None:
            total = scatter_add(total, indices, elementwise.mul(news, new), **params)
        return out, elementwise.div(total, count)

    return jvp


_real = lambda dtype: not dtypes.is_complex(dtype)
_no = NotDefined("the least or greatest of several updates is not linear in them; differentiate it with its jvp rule")
scatter_min = scatter_primitive(
    "scatter_min", np.minimum, "minimum", _extreme_jvp(lambda: scatter_min), _no, _real, "float32", "int32", "bfloat16"
)
scatter_max = scatter_primitive(
    "scatter_max", np.maximum, "maximum", _extreme_jvp(lambda: scatter_max), _no, _real, "float32", "int32", "bfloat16"
)
