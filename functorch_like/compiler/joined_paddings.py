"""Pass over jaxprs: a sum of arrays padded with zeros, side by side, becomes their concatenation.

The gradient of slices is such a sum. XLA:CPU computes each summand for every element of the sum, inside of the padding
and outside. (The gradient of `nn.glu` of 256 x 256 takes 0.1 ms instead of 0.5.)
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple

from functorch_like.backends.cpu import fast_lowering
from functorch_like.ir.jaxpr import Equation, Jaxpr, Literal, Var
from functorch_like.ir.passes import dead_code
from functorch_like.primitives.base.elementwise_makers import add
from functorch_like.primitives.structural import concatenate, pad

_ON = fast_lowering("joined_paddings", "sums of arrays padded with zeros, side by side, are concatenations")
#: Fewest neighbouring elements of each part: shorter ones are copied slowly. (65,536 rows of two parts: of 4 elements,
#: with an exponential, 1.23 ms instead of 0.92; 256 rows of four parts of 256 elements 0.50 instead of 3.38.)
_NEIGHBOURS = 16


class _Padded(NamedTuple):
    """An array that is zero but for parts side by side."""

    dimension: int
    start: int
    end: int
    parts: tuple[Any, ...]
    zero: Literal


def with_concatenations(jaxpr: Jaxpr) -> Jaxpr:
    """Return a jaxpr without sums of zeros and parts side by side; the same one if there are none."""
    if sum(e.prim is pad for e in jaxpr.equations) < 2 or not _ON():
        return jaxpr
    readers = Counter(a for e in jaxpr.equations for a in e.inputs)
    readers.update(jaxpr.outputs)
    found: dict[Any, _Padded] = {}
    equations: list[Equation] = []
    for e in jaxpr.equations:
        made = None
        if e.prim is pad:
            made = _padded(e)
        elif e.prim is add:
            first, second = map(found.get, e.inputs)
            if first and second and all(readers[a] == 1 for a in e.inputs):
                made = _joined(first, second)
        if made:
            found[e.outputs[0]] = made
        equations.extend(_written(e, made) if made and len(made.parts) > 1 else (e,))
    if len(equations) == len(jaxpr.equations) and not any(len(each.parts) > 1 for each in found.values()):
        return jaxpr
    return dead_code(Jaxpr(jaxpr.inputs, equations, jaxpr.outputs, jaxpr.name, jaxpr.origin))


def _padded(e: Equation) -> _Padded | None:
    """Return the facts about a padding with zeros along one dimension; None for other ones."""
    x, zero = e.inputs
    along = [d for d, widths in enumerate(e.params["padding_config"]) if any(widths)]
    if len(along) != 1 or type(zero) is not Literal or zero.value != 0:
        return None
    low, high, interior = e.params["padding_config"][along[0]]
    if low < 0 or high < 0 or interior or math.prod(x.aval.shape[along[0] :]) < _NEIGHBOURS:
        return None
    return _Padded(along[0], low, low + x.aval.shape[along[0]], (x,), zero)


def _joined(first: _Padded, second: _Padded) -> _Padded | None:
    """Return the facts about a sum of two padded arrays; None unless they are side by side."""
    if second.end == first.start:
        first, second = second, first
    if first.dimension != second.dimension or first.end != second.start:
        return None
    return _Padded(first.dimension, first.start, second.end, (*first.parts, *second.parts), first.zero)


def _written(e: Equation, made: _Padded) -> list[Equation]:
    """Return the equations of a sum as a concatenation, padded if the parts do not fill it."""
    out = e.outputs[0].aval
    d = made.dimension
    size = made.end - made.start
    params = {"dimension": d}
    if size == out.shape[d]:
        return [Equation(concatenate, made.parts, params, e.outputs, e.source)]
    whole = Var(out.update(shape=(*out.shape[:d], size, *out.shape[d + 1 :])))
    widths = [(made.start, out.shape[d] - made.end, 0) if k == d else (0, 0, 0) for k in range(out.ndim)]
    return [
        Equation(concatenate, made.parts, params, [whole], e.source),
        Equation(pad, [whole, made.zero], {"padding_config": tuple(widths)}, e.outputs, e.source),
    ]
