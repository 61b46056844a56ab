"""Errors of callbacks, printing and checks, part by part."""

import traceback

import numpy as np
import pytest
from support.messages import hidden, line_of, refusal, says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import checkify, errors

SCALAR = ft.ShapeDtypeStruct((), "float32")


def pair(x):
    return ft.pure_callback(lambda v: np.stack([v, v]), SCALAR, x)  # the call


def sine(x):
    return ft.pure_callback(np.sin, SCALAR, x)  # the sine


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_results_other_than_promised(wrap):
    message = refusal(lambda: wrap(pair)(1.0), errors.ShapeError, ValueError)
    says(message.head, "pure_callback: result 0 of the callback has shape (2,)", "f32[] was promised")
    says(message.at, line_of(pair, "# the call"), "in pair")
    says(message.remedy, "promise the shape that it returns")


def test_derivatives():
    for fun in (ft.grad(sine), ft.jit(ft.grad(sine)), ft.grad(ft.jit(sine))):
        message = refusal(lambda: fun(1.0), errors.UnsupportedError)  # noqa: B023
        says(message.head, "jvp of pure_callback(f32[]", "not known")
        says(message.at, line_of(sine, "# the sine"))
        says(message.remedy, "custom_jvp", "stop_gradient")


def test_maps():
    message = refusal(lambda: ft.vmap(sine)(fnp.ones(2)), errors.UnsupportedError)
    says(message.head, "batch of pure_callback(f32[]", "vmap of the callback sin is undefined")
    says(message.under, "vmap(sine)")
    says(message.remedy, 'vmap_method="sequential"', "expand_dims", "broadcast_all")

    def loud(x):
        return ft.io_callback(np.sin, x, x, ordered=True)  # the call

    message = refusal(lambda: ft.vmap(loud)(fnp.ones(2)), errors.UnsupportedError)
    says(message.head, "batch of io_callback(f32[]", "ordered")
    says(message.at, line_of(loud, "# the call"))
    says(message.remedy, "ordered=True", "lax.map")


def test_format_strings():
    message = refusal(lambda: ft.debug.print("{} and {}", 1), errors.ArgumentError, ValueError)
    says(message.head, "'{} and {}'", "no value for the field {1}")


def test_the_users_own_exception():
    def failing(v):
        raise LookupError("mine")  # the raise

    def calling(x):
        return ft.io_callback(failing, SCALAR, x)  # the callback

    for fun in (ft.jit(calling), calling):
        with pytest.raises(LookupError, match="mine") as caught:
            fun(1.0)
        hidden(caught.value)
        assert caught.value.__notes__ == [f"raised in the callback of io_callback at {__file__}:{_after(calling)}"]
        places = [f"{f.filename}:{f.lineno}" for f in traceback.extract_tb(caught.value.__traceback__)]
        assert places[-1].endswith(line_of(failing, "# the raise"))


def _after(fun):
    return line_of(fun, "# the callback").split(":")[1] + f" in {fun.__name__}"


def positive(x):
    checkify.check(x > 0, "{} is not positive", x)  # the check
    return x


def test_checks():
    message = refusal(lambda: ft.jit(positive)(1.0), errors.UnsupportedError)
    says(message.head, "compiled code cannot raise")
    says(message.at, line_of(positive, "# the check"))
    says(message.remedy, "jit(checkify.checkify(f))", "err.throw()")
    with pytest.raises(errors.CheckError) as caught:
        checkify.checkify(positive)(-1.0)[0].throw()
    assert str(caught.value).startswith("-1.0 is not positive\n  at: ")
    says(caught.value.at, line_of(positive, "# the check"), "in positive")
    hidden(caught.value)
