"""make_jaxpr and eval_shape: programs as text, shapes without computing."""

import re

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax

X = np.ones(3, np.float32)


def lines(text):
    return [line.strip() for line in str(text).split("\n")]


def test_a_jaxpr_reads_as_python():
    def fun(x, y):
        z = fnp.sin(x)  # first
        return z * y  # second

    found = lines(ft.make_jaxpr(fun)(X, X))
    start = fun.__code__.co_firstlineno
    assert found[0].startswith("def fun(a: f32[3], b: f32[3]):")
    assert re.fullmatch(rf"c: f32\[3\] = sin\(a\) +# test_jaxprs.py:{start + 1}", found[1])
    assert re.fullmatch(rf"d: f32\[3\] = mul\(c, b\) +# test_jaxprs.py:{start + 2}", found[2])
    assert found[3] == "return d"
    assert len(found) == 4


def test_lines_survive_transformations():
    def fun(x):
        return fnp.sin(x) * x  # the line

    line = fun.__code__.co_firstlineno + 1
    for transformed in (
        ft.vmap(fun),
        ft.grad(lambda x: fun(x).sum()),
        ft.vmap(ft.jit(fun)),
        ft.grad(lambda x: ft.jit(fun)(x).sum()),
        lambda x: ft.jvp(ft.jit(fun), (x,), (x,))[1],
        lambda x: ft.linearize(ft.jit(fun), x)[1](x),
    ):
        text = str(ft.make_jaxpr(transformed)(X))
        rows = [row for row in lines(text) if "sin(" in row or "cos(" in row]
        assert rows
        assert all(row.endswith(f"# test_jaxprs.py:{line}") for row in rows), text


def test_a_jaxpr_of_jit_is_a_call():
    f = ft.jit(fnp.sin)
    text = str(ft.make_jaxpr(lambda x: f(x) + f(x))(X))
    assert text.count("def ") == 2, "the same function is printed once"
    assert text.count(" = call(") == 2


def test_a_number_is_broadcast_once_for_each_shape():
    def fun(x):
        for _ in range(5):
            x = x * 0.5 + 0.0 - 1.0
        return x[:2] * 0.5 + -0.0

    for transformed, argument in (
        (fun, X),
        (ft.vmap(fun), np.ones((4, 3), np.float32)),
        (lambda x: ft.vjp(fun, x)[0], X),
        (lambda x: ft.jvp(fun, (x,), (x,))[0], X),
    ):
        text = str(ft.make_jaxpr(transformed)(argument))
        numbers = re.findall(r"broadcast_in_dim\((-?[\d.]+),", text)
        assert len(numbers) == 5, "three numbers in the loop, and two of another shape"
        assert sum("-0.0" in number for number in numbers) == 1, "0.0 is not -0.0"


def test_a_broadcast_number_stays_in_its_function():
    def fun(x):
        y = lax.cond(x[0] > 0.5, lambda x: x * 0.25 + 3.0, lambda x: x * 3.0 - 0.25, x)
        y = lax.scan(lambda c, _: (c * 0.25, c + 3.0), y, None, 4)[0] * 0.25 + 3.0
        y = lax.fori_loop(0, 3, lambda i, c: c * 3.0 + 0.25, y)
        with ft.ensure_compile_time_eval():
            three = X * 3.0
        return y * 0.25 + three + ft.jit(lambda x: x * 3.0 - 0.25)(x)

    def expected(x):
        y = x * 0.25 + 3.0 if x[0] > 0.5 else x * 3.0 - 0.25
        y = y * 0.25**4 * 0.25 + 3.0
        for _ in range(3):
            y = y * 3.0 + 0.25
        return y * 0.25 + 3.0 + x * 3.0 - 0.25

    for x in (np.float32([2.0, 1.0, 0.5]), np.float32([-2.0, 1.0, 0.5])):
        np.testing.assert_allclose(ft.jit(fun)(x), expected(x.astype(np.float64)), rtol=1e-6)
        np.testing.assert_allclose(ft.jit(fun, control_flow="paths")(x), expected(x.astype(np.float64)), rtol=1e-6)
        slopes = ft.jit(ft.jacrev(fun))(x), ft.jit(ft.jacfwd(fun))(x)
        steps = np.eye(3) * 1e-6
        exact = [(expected(x + s) - expected(x - s)) / 2e-6 for s in steps]
        for slope in slopes:
            np.testing.assert_allclose(slope, np.transpose(exact), rtol=1e-5, atol=1e-6)


def test_a_number_beside_a_followed_condition():
    @ft.jit(control_flow="paths")
    def fun(x):
        y = x * 2.0
        y = y * 3.0 + 5.0 if y[0] > 1.0 else y - 5.0
        return y * 3.0 + 5.0

    for first in (2.0, -2.0, 3.0):
        x = np.float32([first, 1.0, 4.0])
        y = x * 2
        y = y * 3 + 5 if y[0] > 1 else y - 5
        np.testing.assert_array_equal(fun(x), y * 3 + 5)


def test_user_functions_leave_no_calls():
    text = str(ft.make_jaxpr(lambda x: fnp.mean(fnp.where(x > 0, fnp.tanh(x), x) + fnp.linspace(0, 1, 3)))(X))
    assert "call(" not in text
    assert text.count("def ") == 1


def test_constants_and_statics():
    table = fnp.asarray(np.arange(50, dtype=np.float32))
    text = str(ft.make_jaxpr(lambda i, n: table[i] * n, static_argnums=1)(3, 2.5))
    assert "f32[50]" in text
    assert "2.5" in text


def test_arrays_that_staged_code_makes_of_numbers_are_literals():
    outside = fnp.float32(4)
    f = lambda x: fnp.float32(3) * x ** fnp.asarray(2.0) + fnp.array(1, fnp.int32) + outside
    for g in (f, ft.vmap(f), ft.grad(lambda x: f(x).sum()), ft.jit(f)):
        assert str(ft.make_jaxpr(g)(X)).partition("\n")[0].count("f32[]") <= 1  # at most `outside` is an input
    np.testing.assert_array_equal(ft.jit(f)(2 * X), [17, 17, 17])
    number, weak = ft.jit(lambda: (fnp.float32(3), fnp.asarray(3)))()
    assert number.dtype == "float32" and not number.weak_type and weak.weak_type


def test_the_shape_of_the_result_too():
    jaxpr, shape = ft.make_jaxpr(lambda x: {"y": x @ x}, return_shape=True)(X)
    assert shape == {"y": ft.ShapeDtypeStruct((), "float32")}
    assert [repr(a) for a in jaxpr.out_avals] == ["f32[]"]


def test_nothing_is_computed_by_tracing():
    from functorch_like.backends.xla import counters

    big = ft.ShapeDtypeStruct((100_000, 100_000), "float32")
    before = counters.snapshot()
    out = ft.eval_shape(lambda x: fnp.sum(x @ x.T, axis=0), big)
    assert out == ft.ShapeDtypeStruct((100_000,), "float32")
    ft.make_jaxpr(lambda x: x @ x)(big)
    assert set(counters.since(before)) <= {"misses", "traces"}


@pytest.mark.parametrize("value", [1, 1.0, True, 1j, X, np.int8(3)])
def test_eval_shape_agrees_with_evaluation(value):
    fun = lambda x: (x * 2, {"s": fnp.sin(x * 1.0)})
    shapes = ft.eval_shape(fun, value)
    out = fun(fnp.asarray(value))
    assert shapes[0].shape == out[0].shape
    assert shapes[1]["s"].dtype == out[1]["s"].dtype


def test_equal_structs_are_equal():
    a, b = ft.ShapeDtypeStruct((2, 3), "float32"), ft.ShapeDtypeStruct([2, 3], np.float32)
    assert a == b and hash(a) == hash(b) and a != ft.ShapeDtypeStruct((2, 3), "float64")
    assert (a.ndim, a.size) == (2, 6)
