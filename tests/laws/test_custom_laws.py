"""Custom rules equal to the default ones change nothing, for all functions and transformations around them."""

import os

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from support.laws import BATCHES, point, same

import functorch_like as ft
from functorch_like.testing.programs import total
from functorch_like.testing.strategies import programs

EXAMPLES = {"ci": 5, "thin": 3}.get(os.environ.get("HYPOTHESIS_PROFILE", "ci"), 100)


def with_jvp(f):
    custom = ft.custom_jvp(lambda x, w: f(x, w))
    custom.defjvp(lambda primals, tangents: ft.jvp(f, primals, tangents))
    return custom


def with_vjp(f):
    custom = ft.custom_vjp(lambda x, w: f(x, w))
    custom.defvjp(lambda x, w: (f(x, w), (x, w)), lambda args, g: ft.vjp(f, *args)[1](g))
    return custom


def with_vmap(f):
    custom = ft.custom_batching.custom_vmap(lambda x, w: f(x, w))
    axes = lambda batched: tuple(0 if b else None for b in batched)
    custom.def_vmap(lambda size, batched, x, w: (ft.vmap(f, axes(batched))(x, w), True))
    return custom


def converted(f):
    """Close over the first argument; the rule differentiates with respect to it all the same."""

    def through(x, w):
        closed, values = ft.closure_convert(lambda v: f(x, v), w)
        return with_jvp_of_all(closed)(w, *values)

    def with_jvp_of_all(g):
        custom = ft.custom_jvp(g)
        custom.defjvp(lambda primals, tangents: ft.jvp(g, primals, tangents))
        return custom

    return through


#: Uses of a function at a point; each reaches the rules in another way.
USES = {
    "grad": lambda f, x, w, xs: ft.grad(lambda *a: total(f(*a)), (0, 1))(x, w),
    "grad of jit": lambda f, x, w, xs: ft.grad(ft.jit(lambda *a: total(f(*a))), (0, 1))(x, w),
    "jit of vmap of grad": lambda f, x, w, xs: ft.jit(ft.vmap(ft.grad(lambda *a: total(f(*a)), (0, 1)), (0, None)))(
        xs, w
    ),
    "grad of vmap": lambda f, x, w, xs: ft.grad(lambda a, b: ft.vmap(f, (0, None))(a, b).sum(), (0, 1))(xs, w),
}


@pytest.mark.parametrize("rules", [with_jvp, with_vjp, with_vmap, converted])
def test_equal_rules_change_nothing(rules):
    @settings(max_examples=EXAMPLES)
    @given(programs(depth=1, smooth=True, most=3), st.sampled_from(sorted(USES)))
    def law(f, use):
        x, w = point(f)
        xs = ft.device_put(np.asarray(BATCHES[f.ranks[0]][0]))
        found = [ft.tree.leaves(USES[use](g, x, w, xs)) for g in (rules(f), f)]
        for got, want in zip(*found, strict=True):
            same(got, want)

    law()
