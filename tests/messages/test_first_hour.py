"""Mistakes of a user's first hour: the errors name the function, the argument and the remedy."""

import numpy as np
import pytest
from support.messages import refusal, says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, lax

X = fnp.ones(4)
RETURNING_TEXT = {
    "vmap": lambda f: ft.vmap(f)(X),
    "grad": lambda f: ft.grad(f)(X),
    "vjp": lambda f: ft.vjp(f, X),
    "jvp": lambda f: ft.jvp(f, (X,), (X,)),
    "jacfwd": lambda f: ft.jacfwd(f)(X),
    "jacrev": lambda f: ft.jacrev(f)(X),
    "linearize": lambda f: ft.linearize(f, X),
}


@pytest.mark.parametrize("transform", RETURNING_TEXT)
def test_a_result_that_is_no_array(transform):
    message = refusal(lambda: RETURNING_TEXT[transform](lambda x: {"name": "done"}), errors.DtypeError, TypeError)
    says(message.head, "the function returned 'done' of type str at ['name']")
    says(message.remedy, "return arrays")


def test_auxiliary_results_may_be_anything():
    assert ft.grad(lambda x: (x.sum(), "done"), has_aux=True)(X)[1] == "done"


@pytest.mark.parametrize("transform", [ft.grad, ft.value_and_grad, ft.hessian, ft.jacrev])
def test_arguments_in_the_place_of_argnums(transform):
    message = refusal(lambda: transform(lambda x: x.sum(), X)(X), errors.ArgumentError)
    says(message.remedy, "(f)(x)")


def test_a_number_in_the_place_of_starts():
    message = refusal(lambda: lax.dynamic_slice(X, 0, 2), errors.ArgumentError, TypeError)
    says(message.head, "ft.lax.dynamic_slice: one of start_indices=0, slice_sizes=2 is not a sequence")
    says(message.remedy, "give a tuple", "dynamic_slice(operand, start_indices, slice_sizes, ")


@pytest.mark.parametrize("wrong", [{"static_argnums": "x"}, {"static_argnums": 1.0}, {"donate_argnums": ["x"]}])
def test_names_in_the_place_of_positions(wrong):
    message = refusal(lambda: ft.jit(lambda x: x, **wrong), errors.ArgumentError)
    says(message.remedy, "give ints", "argnames=")


def test_positions_in_the_place_of_names():
    says(refusal(lambda: ft.jit(lambda x: x, static_argnames=0), errors.ArgumentError).remedy, "static_argnums=")


def test_updates_that_are_spelt_otherwise():
    says(refusal(lambda: X.at(0).set(1), errors.ArgumentError, TypeError).remedy, "square brackets")
    with pytest.raises(AttributeError, match="no method 'sub'; did you mean 'subtract'"):
        X.at[0].sub(1)
    with pytest.raises(AttributeError, match="no method 'replace'; it has set, add, subtract"):
        X.at[0].replace(1)
    assert not hasattr(X.at[0], "__array__") and np.asarray(X.at[0].get()) == 1


def test_metrics_without_names(tmp_path):
    pytest.importorskip("safetensors")
    manager = ft.io.CheckpointManager(tmp_path)
    says(refusal(lambda: manager.save(1, {"w": X}, metrics=0.5), errors.ArgumentError).remedy, "dict")


def test_functions_that_scipy_alone_has():
    pytest.importorskip("scipy")
    for name in "ndimage.gaussian_filter", "signal.butter", "interpolate.interp1d", "spatial.distance":
        module, function = name.split(".")
        with pytest.raises(AttributeError, match=f"SciPy's own takes values, not traced ones: scipy.{name}"):
            getattr(getattr(ft.scipy, module), function)
    with pytest.raises(AttributeError, match=r"has no attribute 'nowhere'$"):
        _ = ft.scipy.linalg.nowhere


def test_names_of_older_versions():
    for module, name, remedy in (
        (ft, "cat", "fnp.concatenate"),
        (ft, "autograd", "ft.grad"),
        (ft, "xmap", "ft.vmap"),
        (ft.ops, "index_update", "x.at"),
        (ft.experimental, "optimizers", "optax"),
    ):
        with pytest.raises(AttributeError, match=remedy):
            getattr(module, name)
