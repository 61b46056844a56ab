"""Each checker accepts right functions, and rejects a planted wrong one with a message that says where."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors
from functorch_like.testing import check_dtypes, check_grads, check_jit, check_leaks, check_vmap

X = np.array([0.3, -1.2, 0.7])
HALF = lambda x: ft.lax.stop_gradient(0.5 * x) + 0.5 * x  # half of its derivative is missing


def message(check, *args, **options):
    with pytest.raises(AssertionError) as caught:
        check(*args, **options)
    return str(caught.value)


# ------------------------------------------------------------------------------------------------------- check_grads
@pytest.mark.parametrize("dtype", [np.float64, np.float32, ft.numpy.bfloat16, np.complex128, np.complex64])
def test_right_derivatives_pass(dtype):
    check_grads(lambda p: {"y": fnp.sin(p["x"]) * p["w"]}, ({"x": X.astype(dtype), "w": np.asarray(0.5, dtype)},))


def test_functions_of_complex_numbers_that_have_no_complex_derivative():
    z = np.array([0.3 + 0.4j, -1.0 + 2.0j])
    check_grads(lambda z: (fnp.conj(z) * z * z, fnp.real(z) ** 2, fnp.abs(z)), (z,))


def test_integers_stay_as_they_are():
    check_grads(lambda x, k: (x[k] ** 2, k + 1), (X, np.array([2, 0])))


def test_third_order():
    check_grads(fnp.exp, (np.array(0.5),), order=3)


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_a_wrong_first_derivative(mode):
    text = message(check_grads, lambda p: fnp.sin(HALF(p["x"])) * p["w"], ({"x": X, "w": X},), modes=(mode,))
    assert f"order 1, mode {mode}, argument args[0]['x']" in text
    assert "got " in text and "want " in text and "eps=0.001" in text


@pytest.mark.parametrize(
    ("modes", "label"), [(("fwd",), "fwd over fwd"), (("rev",), "rev over rev"), (("fwd", "rev"), "fwd over fwd")]
)
def test_a_wrong_second_derivative(modes, label):
    wrong = lambda x: fnp.sum(x * ft.lax.stop_gradient(x) + x * 0) + 0.5 * fnp.sum(x * x - HALF(x) * HALF(x)) * 0
    right_once = lambda x: fnp.sum(
        ft.lax.stop_gradient(x) * (x - ft.lax.stop_gradient(x)) + ft.lax.stop_gradient(x * x) / 2
    )
    assert "order 1" in message(check_grads, wrong, (X,), modes=modes)
    text = message(check_grads, right_once, (X,), modes=modes)
    assert "order 2" in text and label in text


def test_a_derivative_that_is_not_finite():
    assert "nan" in message(check_grads, lambda x: fnp.where(x > 0, fnp.sqrt(x), 0.0), (X,), modes=("rev",))


def test_nothing_to_differentiate():
    with pytest.raises(errors.ArgumentError, match="no argument of check_grads has a derivative"):
        check_grads(lambda k: k, (np.arange(3),))
    with pytest.raises(errors.ArgumentError, match="modes"):
        check_grads(fnp.sin, (X,), modes=("forward",))


# -------------------------------------------------------------------------------------------------------- check_vmap
@pytest.mark.parametrize("size", [0, 1, 4])
def test_mapped_functions_pass(size):
    args = ({"w": np.ones((3, size)), "b": np.ones(3)}, np.ones((size, 3)))
    check_vmap(lambda p, x: (p["w"] @ x, p["b"]), args, in_axes=({"w": 1, "b": None}, 0), out_axes=(0, -1))


def test_a_function_that_looks_at_the_whole_batch():
    calls = []

    def counts(x):
        calls.append(x)
        return x * len(calls)

    text = message(check_vmap, counts, (np.ones((4, 2)),))
    assert "vmap(in_axes=0, out_axes=0) of 4 elements, against a loop" in text and "in 8 of 8" in text


def test_no_axis_to_map_over():
    with pytest.raises(errors.ArgumentError, match="one size"):
        check_vmap(lambda x, y: x, (np.ones(3), np.ones(4)))


# --------------------------------------------------------------------------------------------- check_jit, check_dtypes
def test_a_function_with_state():
    check_jit(lambda x: {"y": fnp.tanh(x), "n": 2}, (X,))
    calls = []
    text = message(check_jit, lambda x: {"y": [calls.append(x) or x * len(calls)]}, (X,))
    assert "['y'][0] differs in 3 of 3 elements" in text


def test_a_function_that_loses_precision():
    check_dtypes(lambda p: {"y": fnp.exp(p["x"]) * 2.0, "n": fnp.arange(3)}, ({"x": X, "n": np.arange(3)},))
    check_dtypes(fnp.abs, (X + 1j,))
    check_dtypes(lambda x: x.astype("float64"), (X,), want=lambda dtype: "float64")
    text = message(check_dtypes, lambda x: {"y": fnp.asarray(X.astype(np.float32)) + x}, (X,))
    assert "the result at ['y'] has precision float32 for arguments of bfloat16" in text


# ------------------------------------------------------------------------------------------------------- check_leaks
def test_a_tracer_that_is_kept():
    kept = []
    with check_leaks():
        ft.grad(lambda x: fnp.sum(x * x))(X)
    text = message(_leak, kept)
    assert "1 traced value outlived" in text and "f64[3], held by list of length 1" in text


def _leak(kept):
    with check_leaks():
        ft.jit(lambda x: kept.append(x) or x)(X)


@pytest.mark.parametrize("check", [check_grads, check_vmap, check_jit, check_dtypes])
def test_arguments_are_a_tuple(check):
    """An array would be taken apart into its rows, which checks another call, or fails far away."""
    for args in (np.ones((1, 3)), fnp.ones(3), {"x": np.ones(3)}):
        with pytest.raises(errors.ArgumentError, match=f"args of {check.__name__} is of type .*, and not a tuple"):
            check(fnp.sum, args)
