"""Every primitive has all rules and samples; its shape rule and compiled form agree with its meaning."""

import functools

import pytest
from support.primitive_checks import check_compiled, check_rules_compiled, check_shape
from support.primitive_samples import all_cases, results, rule_cases

import functorch_like as ft
from functorch_like import core
from functorch_like.core import RULES, NotDefined
from functorch_like.interpreters.host_evaluation import FIRST_CALLS

CASES = [pytest.param(c, id=c.label) for c in all_cases()]
PRIMITIVES = [pytest.param(p, id=p.name) for p in core.TABLE.values()]


@pytest.mark.parametrize("prim", PRIMITIVES)
def test_every_rule_is_there(prim):
    for rule in RULES:
        value = getattr(prim, rule)
        assert callable(value)
        if isinstance(value, NotDefined):
            why, _, instead = value.partition("; ")
            assert len(why) >= 15 and instead, f"{rule} of {prim}: say why, and after '; ' what to do instead"
    assert ".py:" in prim.where and prim.family


@pytest.mark.parametrize("prim", PRIMITIVES)
def test_samples_are_there(prim):
    samples = prim.samples()
    # Collectives work inside vmap only, and foreign calls in compiled code only: they have tests of their own.
    # custom_lin is never compiled: the tests of custom_vjp_call cover it.
    exempt = isinstance(prim.ref, NotDefined) or prim.name == "custom_lin"
    assert samples or exempt, "without samples nothing about the primitive is tested"
    assert all(lo <= hi for lo, hi in (s.domain for s in samples))


@pytest.mark.parametrize("case", CASES)
def test_shape_is_that_of_the_meaning(case):
    check_shape(case)


@functools.cache
def compiled(prim):
    """Run all samples of a primitive in one program, because compiling takes most of the time."""
    cases = [c for c in all_cases() if c.prim is prim]
    drawn = [c.draw() for c in cases]
    run = lambda *args: [results(prim, prim(*xs, **c.sample.params)) for c, xs in zip(cases, args, strict=True)]
    return ft.jit(run, keep_unused=True)(*drawn)


@pytest.mark.parametrize("case", CASES)
def test_compiled_is_the_meaning(case):
    check_compiled(case, compiled(case.prim)[case.index], case.draw())


@pytest.mark.parametrize("case", CASES)
def test_eager_is_the_meaning(case):
    """Each case is a program of its own, like users' eager operations after the first calls, which NumPy computes."""
    xs = case.draw()
    token = FIRST_CALLS.swap_local(0)
    try:
        outs = results(case.prim, case.prim(*xs, **case.sample.params))
    finally:
        FIRST_CALLS.restore(token)
    check_compiled(case, outs, xs)


CHOSEN = [pytest.param(c, id=c.label) for c in rule_cases()]


@pytest.mark.parametrize("case", CHOSEN)
def test_rules_lower_to_what_they_mean(case):
    check_rules_compiled(case)
