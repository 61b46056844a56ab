"""Arrays that a traced function makes of values of the host are constants of its program."""

import gc
import warnings

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.backends import xla
from functorch_like.errors import WideningWarning
from functorch_like.ir import trace_constants

MAKERS = {
    "number": lambda: fnp.asarray(2.5),
    "bool": lambda: fnp.array(True),
    "scalar of a dtype": lambda: fnp.float32(3),
    "list": lambda: fnp.array([[1.0, 2.0], [3.0, 4.0]]),
    "NumPy array": lambda: fnp.asarray(np.arange(4, dtype=np.float32)[::2]),
    "NumPy array of another dtype": lambda: fnp.asarray(np.arange(2), dtype="float16"),
    "full": lambda: fnp.full((2,), [1.0, 2.0]),
    "full of rank 0": lambda: fnp.full((), 7.0),
    "arange": lambda: fnp.arange(0.0, 1.0, 0.5),
    "device_put": lambda: ft.device_put(np.float32(1.5)),
    "device_put of a number": lambda: ft.device_put(4),
    "bfloat16": lambda: fnp.asarray([1.5, 2.5], dtype="bfloat16"),
    "complex": lambda: fnp.asarray([1.5, 2.5j]),
    "subnormal": lambda: fnp.asarray(1e-40),
    "negative zero": lambda: fnp.asarray([-0.0, np.nan]),
    "uint64": lambda: fnp.asarray(2**63, dtype="uint64"),
}


def captured(f):
    """Return the number of arrays that the program of a function of one number takes besides it."""
    return len(ft.jit(f).trace(1.0).consts)


@pytest.mark.parametrize("name", MAKERS)
def test_they_are_literals(name):
    make = MAKERS[name]
    assert captured(lambda x: (fnp.broadcast_to(make(), (2, 2)), x)) == 0
    result, expected = ft.jit(lambda: make())(), make()
    assert result.aval == expected.aval
    assert np.asarray(result).tobytes() == np.asarray(expected).tobytes()


def test_python_reads_them():
    @ft.jit
    def f(x):
        steps = fnp.asarray(3)
        return x * 2 if int(steps) == 3 else x

    assert float(f(1.0)) == 2.0


def test_a_weak_number_stays_weak():
    f = ft.jit(lambda x: x * fnp.asarray(2.5))
    assert f(fnp.ones(2, "float16")).dtype == np.float16
    assert ft.jit(lambda x: x * fnp.float32(2.5))(fnp.ones(2, "float16")).dtype == np.float32


def test_later_writes_to_the_numpy_array_change_nothing():
    values = np.array([1.0, 2.0], np.float32)
    f = ft.jit(lambda x: x + fnp.asarray(values))
    np.testing.assert_array_equal(f(np.zeros(2, np.float32)), [1, 2])
    values[:] = 9
    np.testing.assert_array_equal(f(np.zeros((1, 2), np.float32)), [[9, 9]])  # another trace
    np.testing.assert_array_equal(f(np.zeros(2, np.float32)), [1, 2])


def test_large_arrays_are_inputs():
    most = trace_constants.LITERAL_SIZE
    times = lambda size: lambda x: x * fnp.asarray(np.arange(size, dtype=np.float32))
    assert captured(times(most)) == 0 and captured(times(most + 1)) == 1


def test_arrays_from_outside_are_inputs_and_share_a_program():
    def made(rate):
        return ft.jit(lambda x: x - rate * fnp.asarray([1.0, 2.0, 3.0]))

    x = fnp.ones(3)
    np.testing.assert_allclose(made(fnp.asarray(0.5))(x), [0.5, 0, -0.5])
    before = xla.counters.snapshot()
    np.testing.assert_allclose(made(fnp.asarray(0.25))(x), [0.75, 0.5, 0.25])
    assert not xla.counters.since(before).get("compiles")


def test_arrays_bound_to_a_device_are_inputs():
    device = ft.devices()[0]
    assert captured(lambda x: x * fnp.asarray(2.0, device=device)) == 1


def test_they_mean_the_same_under_transformations():
    table = np.array([[0.5, 2.0], [1.0, -3.0]], np.float32)

    def f(x):
        weights = fnp.asarray(table)

        def body(carry, row):
            return carry * fnp.asarray([1.0, 0.5]) + row * fnp.asarray(2), fnp.asarray(1.0)

        carry, ones = lax.scan(body, fnp.zeros(2), weights * x)
        return lax.cond(fnp.asarray(True), lambda c: c.sum(), lambda c: c[0], carry) + ones.sum()

    def expected(x):
        return float((2 * table[0] * x * [1.0, 0.5] + 2 * table[1] * x).sum() + 2)

    xs = np.array([0.25, -1.5], np.float32)
    for g in (f, ft.jit(f), ft.jit(ft.jit(f))):
        np.testing.assert_allclose(float(g(0.25)), expected(0.25), rtol=1e-6)
        np.testing.assert_allclose(ft.vmap(g)(xs), [expected(x) for x in xs], rtol=1e-6)
        np.testing.assert_allclose(float(ft.grad(g)(0.25)), expected(1.25) - expected(0.25), rtol=1e-5)
        np.testing.assert_allclose(ft.jit(ft.vmap(ft.grad(g)))(xs), [expected(1.0) - expected(0.0)] * 2, rtol=1e-5)


def test_values_are_dropped_with_their_arrays():
    def f(x):
        for k in range(100):
            x = x + fnp.asarray(float(k))
        return x

    gc.collect()
    before = len(trace_constants._VALUES)
    staged = ft.make_jaxpr(f)(1.0)
    gc.collect()
    assert len(staged.equations) == 100 and len(trace_constants._VALUES) == before


def test_results_computed_from_small_numpy_arrays_are_named_where_they_widen():
    """The warning names what NumPy has chosen, be it a literal or an input."""
    small, large = np.arange(3) / 2, np.arange(100) / 2
    with pytest.warns(WideningWarning, match="computed from a NumPy array"):
        ft.jit(lambda x: x + fnp.sin(fnp.asarray(small)))(fnp.ones(1))
    with pytest.warns(WideningWarning, match="computed from a NumPy array"):
        ft.jit(lambda x: x + fnp.sin(small))(fnp.ones(1))
    with pytest.warns(WideningWarning, match="computed from a NumPy array"):
        ft.jit(lambda x: x + fnp.sin(fnp.asarray(large)))(fnp.ones(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ft.jit(lambda x: x + fnp.sin(fnp.asarray([1.0, 2.0], dtype="float64")))(fnp.ones(1))
