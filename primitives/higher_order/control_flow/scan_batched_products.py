"""Sums over steps of products, as one product over all steps.

The cotangent of a weight that all steps share is a sum of products, one for each step. Adding them up in the loop reads
and writes an array of the weight's size in each step; one matrix product of the stacked factors after the loop does
the same work at the speed of large matrix products.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from functorch_like.ir.jaxpr import Atom, Equation, Jaxpr, Var
from functorch_like.primitives.base.elementwise_makers import add
from functorch_like.primitives.base.shapes import reshape, transpose
from functorch_like.primitives.contractions.dot_general import dot_general
from functorch_like.primitives.structural import convert_element_type

#: Primitives that may be applied to the sum instead of to each of its terms.
_AFTERWARDS = frozenset((transpose, reshape, convert_element_type))


class Product(NamedTuple):
    """One term of a sum over steps: a dot_general of two values that differ between steps, then other primitives."""

    left: Var
    right: Var
    params: dict[str, Any]
    then: tuple[Equation, ...]

    @property
    def length(self) -> int:
        """Number of products that one step sums."""
        return math.prod(self.left.aval.shape[d] for d in self.params["dimension_numbers"][0][0])

    def of_all_steps(self, left: Any, right: Any) -> Any:
        """The sum over steps, given the stacked factors."""
        (lc, rc), (lb, rb) = self.params["dimension_numbers"]
        up = lambda dims: tuple(d + 1 for d in dims)
        numbers = (((0, *up(lc)), (0, *up(rc))), (up(lb), up(rb)))
        value = dot_general(left, right, **{**self.params, "dimension_numbers": numbers})
        for e in self.then:
            value = e.prim(value, **e.params)
        return value


def products(jaxpr: Jaxpr, atom: Atom, same: Collection[Var]) -> list[Product] | None:
    """A result of a body as a sum of products; None where it is no such sum.

    Args:
        jaxpr: the body.
        atom: one of its results.
        same: variables that do not differ between steps.
    """
    made = {v: e for e in jaxpr.equations for v in e.outputs}
    terms: list[Product] = []
    pending: list[tuple[Any, tuple[Equation, ...]]] = [(atom, ())]
    while pending:
        value, then = pending.pop()
        e = made.get(value)
        if e is None:
            return None
        if e.prim is add:
            pending += [(a, then) for a in e.inputs]
        elif e.prim in _AFTERWARDS:
            pending.append((e.inputs[0], (e, *then)))
        elif e.prim is dot_general and not any(type(a) is not Var or a in same for a in e.inputs):
            terms.append(Product(e.inputs[0], e.inputs[1], e.params, then))
        else:
            return None
    return terms


#: Number of products summed in one step from which on its own matrix product is as fast as a large one.
_ENOUGH = 64


def worthwhile(terms: Sequence[Product], stacked: Collection[Var], weight: Atom) -> bool:
    """Return True if stacking the factors costs less than adding up the products.

    It does where a step makes short sums of products, and factors that are smaller than the weight.
    """
    factors = {v for t in terms for v in (t.left, t.right)}.difference(stacked)
    small = sum(math.prod(v.aval.shape) for v in factors) <= math.prod(weight.aval.shape)
    return small and all(t.length < _ENOUGH for t in terms)
