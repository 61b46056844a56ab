"""Second derivatives of primitives that are not elementwise, both ways round, compiled and mapped.

Forward over reverse and reverse over forward give the same product of the second derivative with a vector: the finite
difference of the first derivative. The primitives of a family are compiled as one program, because compiling takes most
of the time.
"""

import numpy as np
import pytest
from support.oracle import reference
from support.primitive_checks import applied, reversible
from support.primitive_samples import along, close, differentiable, direction, random_like, ref

import functorch_like as ft
from functorch_like.interpreters import forward, reverse
from functorch_like.ir.jaxpr import Jaxpr

ELEMENTWISE = {
    "elementwise_makers", "transcendental", "arithmetic", "bessel", "bitwise", "comparison", "complex_parts", "zeta",
    "incomplete_beta", "incomplete_gamma", "powers", "erf_and_gamma",
}  # fmt: skip


def chosen():
    """Return, by family, the first sample of each primitive for which second derivatives are tested."""
    seen, families = set(), {}
    for case in differentiable(smooth=True):
        holds_jaxpr = any(isinstance(v, Jaxpr) for v in case.sample.params.values())
        if case.prim.family in ELEMENTWISE or case.prim.partial_eval is not None or holds_jaxpr or not reversible(case):
            continue
        full = all(o.size for o in case.sample.operands) and all(o.size for o in ref(case, case.draw()))
        if full and case.prim not in seen:
            seen.add(case.prim)
            families.setdefault(case.prim.family, []).append(case)
    return families


FAMILIES = chosen()


class Second:
    """The products of one sample's second derivative with a fixed direction, for fixed cotangents."""

    def __init__(self, case):
        xs = case.draw()
        self.fun, self.vs = applied(case), direction(case, xs, 1)
        self.wanted = [v is not None for v in self.vs]
        self.cts = [random_like(o, case.seed(2)) for o in ref(case, xs)]

    def pull(self, *xs):
        """Return the first derivative: cotangents of the operands that have one."""
        _, linear = reverse.linearize(self.fun, xs, self.wanted)
        back = linear.transpose([None if o is None else c for c, o in zip(self.cts, linear.outputs, strict=True)])
        floats = [x for x, w in zip(xs, self.wanted, strict=True) if w]
        return [x * 0 if b is None else b for b, x in zip(back, floats, strict=True)]

    def forward_over_reverse(self, *xs):
        outs, tangents = forward.jvp(self.pull, xs, self.vs)
        return [o * 0 if t is None else t for o, t in zip(outs, tangents, strict=True)]

    def reverse_over_forward(self, *xs):
        def push(*ys):
            outs, tangents = forward.jvp(self.fun, ys, self.vs)
            return [o if t is None else t for o, t in zip(outs, tangents, strict=True)], [t is None for t in tangents]

        still: list[bool] = []

        def tangents_of(*ys):
            outs, still[:] = push(*ys)
            return outs

        _, linear = reverse.linearize(tangents_of, xs, self.wanted)
        live = [None if o is None or zero else c for c, o, zero in zip(self.cts, linear.outputs, still, strict=True)]
        back = linear.transpose(live)
        floats = [x for x, w in zip(xs, self.wanted, strict=True) if w]
        return [x * 0 if b is None else b for b, x in zip(back, floats, strict=True)]


def batch_of(case):
    """Return the operands, with two values stacked for each float operand."""
    return [np.stack(case.variants(k, 2)) if k in case.floats else x for k, x in enumerate(case.draw())]


@pytest.mark.parametrize("family", FAMILIES)
def test_both_ways_round_under_vmap_and_jit(family):
    cases = FAMILIES[family]
    seconds = [Second(c) for c in cases]
    batches = [batch_of(c) for c in cases]
    axes = [[0 if k in c.floats else None for k in range(len(b))] for c, b in zip(cases, batches, strict=True)]

    def everything(batches):
        return [
            [ft.vmap(way, axis)(*xs) for way in (second.forward_over_reverse, second.reverse_over_forward)]
            for second, axis, xs in zip(seconds, axes, batches, strict=True)
        ]

    found = ft.jit(everything)(batches)
    for case, second, xs, ways in zip(cases, seconds, batches, found, strict=True):
        for at in range(2):
            one = [x[at] if k in case.floats else x for k, x in enumerate(xs)]
            with reference():
                want = along(lambda ys: [np.asarray(b) for b in second.pull(*ys)], one, second.vs)  # noqa: B023
            for name, way in zip(("forward over reverse", "reverse over forward"), ways, strict=True):
                for got, w in zip(way, want, strict=True):
                    close(np.asarray(got)[at], w, 2e-5, 2e-6, what=f"{name}, {case.label}")


def test_most_primitives_are_there():
    names = {c.prim.name for cases in FAMILIES.values() for c in cases}
    assert names >= {
        "dot_general",
        "conv_general_dilated",
        "reduce_prod",
        "cumprod",
        "eigh",
        "svd",
        "qr",
        "scatter_mul",
    }
