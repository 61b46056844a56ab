"""Alternative and standard lowerings agree with the meaning of the primitive, on both sides of the limits."""

import numpy as np
import pytest
from support.primitive_checks import check_compiled
from support.primitive_samples import Case, results

import functorch_like as ft
from functorch_like import backends, core
from functorch_like.core import aval_of
from functorch_like.primitives.base.lowering import alternatives_of
from functorch_like.testing import count_compiles

PRIMITIVES = [prim for prim in core.TABLE.values() if alternatives_of(prim.lower)]
EDGES = [
    pytest.param(prim, alternative, Case(prim, 1000 + k, sample), taken, id=f"{prim.name}-{alternative.name}-{k}")
    for prim in PRIMITIVES
    for alternative in alternatives_of(prim.lower)
    for k, (sample, taken) in enumerate(alternative.edges())
]
FORMS = [pytest.param(p, on, id=f"{p.name}-{name}") for p in PRIMITIVES for on, name in ((True, "on"), (False, "off"))]
# Only these have a form that is a loop of one kernel.
LOOPS = ("cum", "arg", "true_places", "reduce_fm")
FORMS += [pytest.param(p, "-small_loops", id=f"{p.name}-loops_off") for p in PRIMITIVES if p.name.startswith(LOOPS)]
#: Samples per program: in a program of a hundred convolutions XLA takes longer for each.
AT_ONCE = 12


def switched(on):
    return backends.flags(cpu_fast_lowerings=on)


def jitted(prim, cases):
    return ft.jit(
        lambda *args: [results(prim, prim(*xs, **c.sample.params)) for c, xs in zip(cases, args, strict=True)],
        keep_unused=True,
    )


def picked(case):
    avals = [aval_of(x) for x in case.draw()]
    outs = case.prim.shape(*avals, **case.sample.params)
    return case.prim.lower.pick("cpu", avals, list(outs) if case.prim.multiple_results else [outs], case.sample.params)


@pytest.mark.parametrize(("prim", "alternative", "case", "taken"), EDGES)
def test_the_limits_are_where_they_are_said_to_be(prim, alternative, case, taken):
    assert (picked(case) is alternative) == (taken and alternative.here)
    with switched(False):
        assert picked(case) is None


@pytest.mark.parametrize(("prim", "on"), FORMS)
def test_every_form_is_the_meaning(prim, on):
    edges = [sample for alternative in alternatives_of(prim.lower) for sample, _ in alternative.edges()]
    cases = [Case(prim, k, sample) for k, sample in enumerate([*prim.samples(), *edges])]
    drawn = [c.draw() for c in cases]
    found = []
    with switched(on):
        for k in range(0, len(cases), AT_ONCE):
            found += jitted(prim, cases[k : k + AT_ONCE])(*drawn[k : k + AT_ONCE])
    for case, got in zip(cases, found, strict=True):
        check_compiled(case, got, case.draw())


@pytest.mark.parametrize("prim", [pytest.param(p, id=p.name) for p in PRIMITIVES])
def test_each_limit_has_both_sides(prim):
    for alternative in alternatives_of(prim.lower):
        assert {taken for _, taken in alternative.edges()} == {True, False}, alternative.name
        assert alternative.limits


def test_other_platforms_have_the_standard_form():
    case = next(p.values[2] for p in EDGES if p.values[1].here and p.values[3])
    avals = [aval_of(x) for x in case.draw()]
    outs = case.prim.shape(*avals, **case.sample.params)
    outs = list(outs) if case.prim.multiple_results else [outs]
    assert case.prim.lower.pick("cpu", avals, outs, case.sample.params) is not None
    assert case.prim.lower.pick("gpu", avals, outs, case.sample.params) is None


def test_primitives_are_switched_by_name():
    taken = {prim.name: case for prim, way, case, taken in (p.values for p in EDGES) if taken and way.here}
    with switched("sort"):
        assert picked(taken["sort"]) is not None and picked(taken["cumsum"]) is None
    with switched("-sort"):
        assert picked(taken["sort"]) is None and picked(taken["cumsum"]) is not None


def test_the_switch_recompiles_and_goes_back_to_what_was_compiled():
    x = np.arange(64.0, dtype=np.float32)
    f = ft.jit(lambda v: ft.lax.cumsum(v))
    text = lambda: f.lower(x).as_text()
    standard = "stablehlo.reduce_window"
    with count_compiles() as compiles:
        f(x)
        assert "stablehlo.while" in text()
        with switched(False):
            np.testing.assert_allclose(f(x), np.cumsum(x))
            assert standard in text() and "stablehlo.while" not in text()
        f(x)
    assert compiles.count == 2
