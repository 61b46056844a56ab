"""`backends.random.numbers = "jax"`: each draw from a key is what JAX draws from it."""

import json

import numpy as np
import pytest
from scipy import special

import functorch_like as ft
from functorch_like import backends, random

from .jax_numbers import CASES, RECORD, drawn, written

NUMBERS = json.loads(RECORD.read_text())["numbers"]
#: Most relative and absolute difference, by dtype; whole numbers and booleans are equal.
CLOSE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 3e-5, "complex64": 3e-5, "float64": 1e-12}


def same(x, expected):
    dtype, shape, numbers = written(x)
    assert (dtype, shape) == (expected[0], expected[1])
    if tolerance := CLOSE.get(dtype):
        np.testing.assert_allclose(numbers, expected[2], rtol=tolerance, atol=tolerance)
    else:
        assert numbers == expected[2]


@pytest.mark.parametrize(("rule", "case"), [(rule, case) for rule, cases in CASES.items() for case in cases])
def test_a_draw_is_the_one_of_jax(rule, case):
    with backends.random.flags(numbers=rule):
        same(drawn(case, random, ft.numpy), NUMBERS[rule][case])


@pytest.mark.parametrize(
    "case",
    [
        "uniform(KEY, (5,), 'float32')",
        "gamma(KEY, array([0.2, 0.9, 1.0, 2.5, 40.0], 'float32'), (5,), 'float32')",
        "poisson(KEY, 10000.0, (9,))",
        "binomial(KEY, 100, 0.5, (9,))",
        "permutation(KEY, 10)",
    ],
)
def test_draws_are_the_same_under_transformations(case):
    draw = lambda key: eval(case, {**vars(random), "KEY": key, "array": ft.numpy.asarray})
    keys = ft.numpy.stack([random.key(1), random.key(42)])
    with backends.random.flags(numbers="jax"):
        for x in (ft.jit(draw)(keys[1]), ft.vmap(draw)(keys)[1], ft.jit(ft.vmap(draw))(keys)[1]):
            same(x, NUMBERS["jax"][case])


def test_programs_depend_on_the_setting():
    draw = ft.jit(lambda key: random.bits(key, (2,)))
    native = draw(random.key(0)).tolist()
    with backends.random.flags(numbers="jax"):
        assert draw(random.key(0)).tolist() == random.bits(random.key(0), (2,)).tolist() != native
    assert draw(random.key(0)).tolist() == native


def test_gamma_samples_have_derivatives():
    a = ft.numpy.asarray([0.4, 1.0, 7.5], "float64")
    draw = lambda a: random.gamma(random.key(3), a, dtype="float64")
    with backends.random.flags(numbers="jax"):
        sample, slope = draw(a), ft.grad(lambda a: draw(a).sum())(a)
    # That of the quantile at a fixed probability, by differences of SciPy's inverse.
    p = special.gammainc(a, sample)
    differences = (special.gammaincinv(np.asarray(a) + 1e-6, p) - special.gammaincinv(np.asarray(a) - 1e-6, p)) / 2e-6
    np.testing.assert_allclose(slope, differences, rtol=1e-5)
