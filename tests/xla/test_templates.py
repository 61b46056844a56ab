"""Templates: equations with equal primitives, avals and parameters share one lowering, written for other operands."""

import weakref

import numpy as np
import pytest
from support import lifetimes

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax

X = np.float32([3, 4, 5])
Y = np.float32([10, 20, 40])


def test_an_operation_of_one_value_twice_does_not_stand_for_two():
    ft.clear_caches()
    both = ft.jit(lambda x, y: (x + x, y + y, x + y, x - x, y - y, x - y, y - x))(X, Y)
    np.testing.assert_array_equal(np.stack(both), [X + X, Y + Y, X + Y, X - X, Y - Y, X - Y, Y - X])


def test_a_division_by_a_constant_does_not_stand_for_one_by_a_value():
    def quotients(x, y):
        return [lax.div(x, fnp.full_like(x, 3)), lax.div(x, fnp.full_like(x, -7)), lax.div(x, y)]

    ft.clear_caches()
    x, y = np.int32([7, -7, -(2**31), 5]), np.int32([2, 2, -1, 0])
    assert "f64" in ft.jit(quotients).lower(x, y).as_text()  # division by a value uses double precision
    thirds, sevenths, quotient = ft.jit(quotients)(x, y)
    np.testing.assert_array_equal(thirds, [2, -2, -715827882, 1])
    np.testing.assert_array_equal(sevenths, [-1, 1, 306783378, 0])
    np.testing.assert_array_equal(quotient, [3, -3, -(2**31), -1])


def test_constants_of_a_template_are_written_in_each_block():
    def slopes(x):
        first = ft.grad(lambda x: fnp.sum(fnp.tanh(x)))(x)
        inside = lax.fori_loop(0, 2, lambda i, x: ft.grad(lambda x: fnp.sum(fnp.tanh(x)))(x), x)
        return first, inside, ft.grad(lambda x: fnp.sum(fnp.tanh(x)))(first)

    slope = lambda x: 1 - np.tanh(x) ** 2
    x = np.float32([0.5, -1, 2])
    first, inside, again = ft.jit(slopes)(x)
    np.testing.assert_allclose(first, slope(x), rtol=1e-5)
    np.testing.assert_allclose(inside, slope(slope(x)), rtol=1e-5)
    np.testing.assert_allclose(again, slope(slope(x)), rtol=1e-5)


def test_parameters_that_are_equal_and_differ_in_sign_are_distinguished():
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))

    def fill(empty, value):
        where = fnp.zeros((2, 1), np.int32)
        return lax.gather(empty, where, numbers, (0,), mode="fill", fill_value=value)

    for _ in range(2):  # the second lowering makes a template
        ft.jit(lambda x: fill(x, 0.0)).lower(np.zeros(0, np.float32))
    positive, negative = (ft.jit(lambda x, v=v: fill(x, v))(np.zeros(0, np.float32)) for v in (0.0, -0.0))
    assert not np.signbit(positive).any()
    assert np.signbit(negative).all()


@pytest.mark.parametrize("values", [X, X[:2]])
def test_programs_that_repeat_operations_are_written_alike(values):
    """The third module is written from the templates of the second."""

    def program(x):
        for part in fnp.split(fnp.concatenate([x, x, x]), 3):
            x = fnp.tanh(x * part) + fnp.logaddexp(x, part) / x
        return x @ x, ft.grad(lambda x: fnp.sum(fnp.sort(x) ** 2))(x)

    ft.clear_caches()
    text = lambda: ft.jit(lambda x: program(x)).lower(values).as_text()
    assert text() == text() == text()


def test_reductions_of_templates_keep_operation_dtype_and_block():
    def folds(x):
        inside = lax.fori_loop(0, 2, lambda i, total: total + fnp.sum(x) + fnp.max(x), x[0])
        return fnp.sum(x), fnp.prod(x), fnp.max(x), fnp.min(x), fnp.any(x > 1), fnp.all(x > 1), inside

    ft.clear_caches()
    for x in (np.int32([1, 2, 3]), np.float32([1, 2, 3]), np.float32([5, 2, 4])):
        for _ in range(3):  # lowered by the rule, then recorded as a template, then written from it
            results = ft.jit(lambda x: folds(x))(x)
        expected = x.sum(), x.prod(), x.max(), x.min(), (x > 1).any(), (x > 1).all(), x[0] + 2 * (x.sum() + x.max())
        np.testing.assert_array_equal(results, expected)


def test_settings_have_templates_of_their_own():
    lowered = lambda: ft.jit(lambda x: fnp.cbrt(x)).lower(X).as_text()
    fast = lowered()
    with ft.backends.cpu.flags(fast_lowerings=False):
        plain = lowered()
    assert fast == lowered() != plain


def test_no_template_keeps_a_function_or_a_jaxpr_of_the_user():
    def make():
        def held(x):
            return x

        kind = ft.ShapeDtypeStruct((), np.float32)
        for _ in range(2):
            ft.jit(lambda x: ft.pure_callback(held, kind, x))(np.float32(1))
            ft.jit(lambda x: lax.reduce(x, np.float32(0), lambda a, b: held(a) + b, (0,)))(np.ones(3, np.float32))
        return weakref.ref(held)

    gone = make()
    lifetimes.collect()
    assert gone() is None
