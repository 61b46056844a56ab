"""Rules of primitives for coefficients of power series: the table of `jet`.

A rule takes the series of all operands (see `power_series.py`) and the primitive's parameters. It gives the series of
each result, or None where it does not apply: then, as for primitives without a rule, `jet` uses the `jvp` rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functorch_like import dtypes
from functorch_like.core import Primitive, aval_of
from functorch_like.primitives import elementwise
from functorch_like.primitives.base.shapes import reduce_sum, zeros
from functorch_like.primitives.indexing.gather_and_scatter_add import gather
from functorch_like.primitives.reductions.extremes_without_nan import reduce_fmax, reduce_fmin
from functorch_like.primitives.reductions.makers import spread
from functorch_like.primitives.reductions.reductions import reduce_max, reduce_max_number, reduce_min
from functorch_like.primitives.structural import convert_element_type, full_like, stop_gradient
from functorch_like.transforms.taylor.power_series import FUNCTIONS, Rule, Series, convolution, fixed, minus, over, plus

Operands = Sequence[Series]


def rule(prim: Primitive, operands: Operands, params: dict[str, Any]) -> list[Series] | None:
    """The series of a primitive's results; None where no rule applies."""
    linear = prim.linear
    if prim in RULES:
        return RULES[prim](*operands, **params)
    if linear == "jointly":
        return _linear(prim, operands, params)
    if linear == "separately":
        return _product(prim, operands, params)
    if isinstance(linear, int) and all(k == linear or fixed(x) for k, x in enumerate(operands)):
        return _linear(prim, operands, params, linear)
    return None


# ---------------------------------------------------------------------------------------------------- linear primitives
def _linear(prim: Primitive, operands: Operands, params: dict[str, Any], only: int | None = None) -> list[Series]:
    """Rule of linear primitives: they apply to each coefficient."""
    order = len(operands[0]) - 1
    moves = [dtypes.is_inexact(aval_of(x[0]).dtype) and (only is None or k == only) for k, x in enumerate(operands)]
    lists = (lambda out: list(out)) if prim.multiple_results else lambda out: [out]
    columns = [lists(prim(*(x[0] for x in operands), **params))]
    for k in range(1, order + 1):
        if all(x[k] is None for x in operands):
            columns.append([None] * len(columns[0]))
            continue
        flat = [
            x[0] if not m else zeros(aval_of(x[0]).strong()) if x[k] is None else x[k]
            for x, m in zip(operands, moves, strict=True)
        ]
        columns.append(lists(prim(*flat, **params)))
    return [
        list(z) if dtypes.is_inexact(aval_of(z[0]).dtype) else [z[0], *[None] * order]
        for z in zip(*columns, strict=True)
    ]


def _add(x: Series, y: Series) -> list[Series]:
    return [[elementwise.add(x[0], y[0]), *(plus(a, b) for a, b in zip(x[1:], y[1:], strict=True))]]


def _sub(x: Series, y: Series) -> list[Series]:
    return [[elementwise.sub(x[0], y[0]), *(minus(a, b) for a, b in zip(x[1:], y[1:], strict=True))]]


def _convert(x: Series, *, new_dtype: Any, weak_type: bool = False) -> list[Series]:
    first = convert_element_type(x[0], new_dtype=new_dtype, weak_type=weak_type)
    if not dtypes.is_inexact(new_dtype):
        return [[first, *[None] * (len(x) - 1)]]
    return [[first, *(None if c is None else convert_element_type(c, new_dtype=new_dtype) for c in x[1:])]]


def _gather(x: Series, indices: Series, **params: Any) -> list[Series]:
    """Gather coefficients; elements out of bounds that are filled in have zero coefficients."""
    moves = {**params, "fill_value": 0}
    return [
        [gather(x[0], indices[0], **params), *(None if c is None else gather(c, indices[0], **moves) for c in x[1:])]
    ]


def _product(prim: Primitive, operands: Operands, params: dict[str, Any]) -> list[Series]:
    """Rule of primitives that are linear in each of two operands: products of coefficients whose orders add up."""
    x, y, *rest = operands
    product = lambda a, b: prim(a, b, *(r[0] for r in rest), **params)
    return [[convolution(x, y, k, product) for k in range(len(x))]]


# ---------------------------------------------------------------------------------------------------- constant, chosen
def _constant(prim: Primitive) -> Rule:
    """Rule of primitives whose derivative is zero."""
    return lambda *operands, **params: [[prim(*(x[0] for x in operands), **params), *[None] * (len(operands[0]) - 1)]]


def _larger(primitive: Any, first: Any, second: Any) -> Rule:
    """Rule of maxima and minima: coefficients of the chosen operand; where the two tie, their mean."""

    def chosen(x: Series, y: Series) -> list[Series]:
        left, right = first(x[0], y[0]), second(x[0], y[0])
        part = lambda c, share: None if c is None else elementwise.mul(c, share)
        return [
            [primitive(x[0], y[0]), *(plus(part(a, left), part(b, right)) for a, b in zip(x[1:], y[1:], strict=True))]
        ]

    return chosen


def _extreme(prim: Primitive) -> Rule:
    """Rule of reductions to an extreme: coefficients of that element; where several tie, their mean."""

    def reduced(x: Series, *, axes: tuple[int, ...]) -> list[Series]:
        aval = aval_of(x[0])
        out = prim(x[0], axes=axes)
        if not aval.size:
            return [[out, *[None] * (len(x) - 1)]]
        hits = convert_element_type(elementwise.eq(x[0], spread(out, aval.shape, axes)), new_dtype=aval.dtype)
        count = reduce_sum(hits, axes=axes)
        if prim in (reduce_fmax, reduce_fmin):  # of no numbers the extreme is NaN, which equals nothing
            count = elementwise.max(count, full_like(count, 1))
        return [
            [out, *(over(None if c is None else reduce_sum(elementwise.mul(c, hits), axes=axes), count) for c in x[1:])]
        ]

    return reduced


def _abs(x: Series) -> list[Series] | None:
    if dtypes.is_complex(aval_of(x[0]).dtype):
        return None
    sign = elementwise.sign(x[0])
    return [[elementwise.abs(x[0]), *(None if c is None else elementwise.mul(c, sign) for c in x[1:])]]


def _sign(x: Series) -> list[Series] | None:
    return None if dtypes.is_complex(aval_of(x[0]).dtype) else [[elementwise.sign(x[0]), *[None] * (len(x) - 1)]]


RULES: dict[Primitive, Rule] = {
    **FUNCTIONS,
    **{
        prim: _constant(prim)
        for prim in (elementwise.floor, elementwise.ceil, elementwise.round, elementwise.share, stop_gradient)
    },
    **{prim: _extreme(prim) for prim in (reduce_max, reduce_max_number, reduce_min, reduce_fmax, reduce_fmin)},
    elementwise.add: _add,
    elementwise.sub: _sub,
    convert_element_type: _convert,
    gather: _gather,
    elementwise.abs: _abs,
    elementwise.sign: _sign,
    elementwise.max: _larger(elementwise.max, elementwise.share, lambda x, y: elementwise.share(y, x)),
    elementwise.min: _larger(elementwise.min, lambda x, y: elementwise.share(y, x), elementwise.share),
}
