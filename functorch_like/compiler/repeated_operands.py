"""Pass over jaxprs: a product of an operand that repeats along a free dimension is computed once and broadcast.

`x @ broadcast(v)` has equal columns, so one column is computed. Gradients of sums are such products: the cotangent of a
sum is a broadcast. This saves work, and avoids an error of YNNPACK, which misreads such right operands.
`backends.xla.library_check` finds operands that this pass misses, at the cost of a second compilation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functorch_like.backends.cpu import fast_lowering
from functorch_like.ir.jaxpr import Equation, Jaxpr, Var
from functorch_like.primitives.base.shapes import broadcast_in_dim, reduce_sum, reshape, transpose
from functorch_like.primitives.contractions.dot_dimensions import free_dims
from functorch_like.primitives.contractions.dot_general import dot_general
from functorch_like.primitives.structural.pad_and_slice import slice as slice_

_NONE: frozenset[int] = frozenset()
_ON = fast_lowering(
    "repeated_operands", "products of an operand that repeats along a free dimension are computed once and broadcast"
)


def narrow_products(jaxpr: Jaxpr) -> Jaxpr:
    """Narrow each product of an operand that repeats along a free dimension; return the same jaxpr if there is none."""
    if not _ON() or not any(e.prim is dot_general for e in jaxpr.equations):
        return jaxpr
    repeats = repeated_dimensions(jaxpr)
    equations: list[Equation] = []
    for e in jaxpr.equations:
        narrow = e.prim is dot_general and not repeats.keys().isdisjoint(e.inputs)
        equations.extend(_narrowed(e, repeats) if narrow else [e])
    if len(equations) == len(jaxpr.equations):
        return jaxpr
    return Jaxpr(jaxpr.inputs, equations, jaxpr.outputs, jaxpr.name, jaxpr.origin)


def repeated_dimensions(jaxpr: Jaxpr) -> dict[Any, frozenset[int]]:
    """Return the dimensions along which variables are known to repeat; the others are left out."""
    repeats: dict[Any, frozenset[int]] = {}
    for e in jaxpr.equations:
        if len(e.outputs) == 1 and (e.prim is broadcast_in_dim or not repeats.keys().isdisjoint(e.inputs)):
            along = _repeats_along(e, repeats)
            if along:
                repeats[e.outputs[0]] = along
    return repeats


def _repeats_along(e: Equation, repeats: dict[Any, frozenset[int]]) -> frozenset[int]:
    """Return the dimensions along which the result of an equation is known to repeat."""
    out = e.outputs[0].aval
    if e.prim is broadcast_in_dim:
        operand = e.inputs[0]
        sources = {
            d: i
            for i, d in enumerate(e.params["broadcast_dimensions"])
            if operand.aval.shape[i] == out.shape[d] and i not in repeats.get(operand, _NONE)
        }
        return frozenset(d for d in range(out.ndim) if d not in sources)
    of = repeats.get(e.inputs[0], _NONE)
    if e.prim is transpose:
        return frozenset(i for i, d in enumerate(e.params["permutation"]) if d in of)
    if e.prim is reshape:
        return _of_reshape(e.inputs[0].aval.shape, out.shape, of)
    if e.prim is reduce_sum:
        left = [d for d in range(e.inputs[0].aval.ndim) if d not in e.params["axes"]]
        return frozenset(i for i, d in enumerate(left) if d in of)
    if e.prim is dot_general:
        return _of_product(e, repeats)
    if e.prim.kind == "elementwise":
        return _common([a for a in e.inputs if a.aval.ndim], out.shape, repeats)
    return _NONE


def _of_reshape(before: tuple[int, ...], after: tuple[int, ...], of: frozenset[int]) -> frozenset[int]:
    """Return the repeating dimensions after a reshape: merged or split ones repeat only if all their origins do."""
    result: set[int] = set()
    i = j = 0
    while i < len(before) and j < len(after):
        start, first, left, right = i, j, before[i], after[j]
        while left != right:
            if left < right and i + 1 < len(before):
                i += 1
                left *= before[i]
            elif j + 1 < len(after):
                j += 1
                right *= after[j]
            else:  # sizes of 0
                return _NONE
        if all(d in of or before[d] == 1 for d in range(start, i + 1)):
            result.update(range(first, j + 1))
        i, j = i + 1, j + 1
    return frozenset(result)


def _common(operands: Sequence[Any], shape: tuple[int, ...], repeats: dict[Any, frozenset[int]]) -> frozenset[int]:
    if any(a not in repeats or a.aval.shape != shape for a in operands):
        return _NONE
    return frozenset.intersection(*[repeats[a] for a in operands])


def _of_product(e: Equation, repeats: dict[Any, frozenset[int]]) -> frozenset[int]:
    (lc, rc), (lb, rb) = e.params["dimension_numbers"]
    left, right = (repeats.get(a, _NONE) for a in e.inputs)
    along = [i in left and j in right for i, j in zip(lb, rb, strict=True)]
    along += [d in left for d in free_dims(e.inputs[0].aval.ndim, lc, lb)]
    along += [d in right for d in free_dims(e.inputs[1].aval.ndim, rc, rb)]
    return frozenset(i for i, repeating in enumerate(along) if repeating)


def _narrowed(e: Equation, repeats: dict[Any, frozenset[int]]) -> list[Equation]:
    """Return the equations of a product with operands of size 1 along repeating free dimensions, and its broadcast."""
    (lc, rc), (lb, rb) = e.params["dimension_numbers"]
    made: list[Equation] = []
    operands: list[Any] = []
    shape = [e.inputs[0].aval.shape[d] for d in lb]
    for operand, contracted, batch in zip(e.inputs, (lc, rc), (lb, rb), strict=True):
        free = free_dims(operand.aval.ndim, contracted, batch)
        along = [d for d in free if d in repeats.get(operand, _NONE) and operand.aval.shape[d] > 1]
        operands.append(_first(operand, along, e, made) if along else operand)
        shape += [operands[-1].aval.shape[d] for d in free]
    if not made:
        return [e]
    out = e.outputs[0].aval
    product = Var(out.update(shape=tuple(shape)))
    made.append(Equation(dot_general, operands, e.params, [product], e.source))
    spread = {"shape": out.shape, "broadcast_dimensions": tuple(range(out.ndim))}
    made.append(Equation(broadcast_in_dim, [product], spread, e.outputs, e.source))
    return made


def _first(operand: Any, along: Sequence[int], e: Equation, made: list[Equation]) -> Var:
    """Append a slice to size 1 along some dimensions to `made`, and return its variable."""
    aval = operand.aval
    limits = tuple(1 if d in along else n for d, n in enumerate(aval.shape))
    first = Var(aval.update(shape=limits))
    params = {"start_indices": (0,) * aval.ndim, "limit_indices": limits, "strides": None}
    made.append(Equation(slice_, [operand], params, [first], e.source))
    return first
