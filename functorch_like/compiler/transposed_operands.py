"""Pass over jaxprs: a product of a transpose becomes a product of what was transposed, by other dimension numbers.

XLA does the same, but later. Here, the lowering of products sees how the left operand lies in memory, as it does in the
gradient of a product.
"""

from __future__ import annotations

from functorch_like.backends.cpu import fast_lowering
from functorch_like.ir.jaxpr import Equation, Jaxpr
from functorch_like.primitives.base.shapes import transpose
from functorch_like.primitives.contractions.dot_dimensions import free_dims
from functorch_like.primitives.contractions.dot_general import dot_general

_ON = fast_lowering("transposed_operands", "products of a transposed left operand, such as x.T @ y, take x itself")


def without_transposes(jaxpr: Jaxpr) -> Jaxpr:
    """Return a jaxpr in which left operands of products are no transposes; the same one if there are none."""
    turned = {e.outputs[0]: e for e in jaxpr.equations if e.prim is transpose} if _ON() else {}
    if not turned:
        return jaxpr
    equations = [
        _direct(e, turned[e.inputs[0]]) if e.prim is dot_general and e.inputs[0] in turned else e
        for e in jaxpr.equations
    ]
    return Jaxpr(jaxpr.inputs, equations, jaxpr.outputs, jaxpr.name, jaxpr.origin)


def _direct(product: Equation, turn: Equation) -> Equation:
    """Return the product without the transpose, unless that would change the order of the result's dimensions."""
    (lc, rc), (lb, rb) = product.params["dimension_numbers"]
    order = turn.params["permutation"]
    free = [order[d] for d in free_dims(len(order), lc, lb)]
    if free != sorted(free):
        return product
    lc, rc = zip(*sorted((order[d], other) for d, other in zip(lc, rc, strict=True)), strict=True) if lc else ((), ())
    numbers = ((lc, rc), (tuple(order[d] for d in lb), rb))
    operands = [turn.inputs[0], product.inputs[1]]
    return Equation(
        dot_general, operands, product.params | {"dimension_numbers": numbers}, product.outputs, product.source
    )
