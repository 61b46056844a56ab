"""Errors for jit's arguments (static, donated, not arrays), and calls after an error."""

import numpy as np
import pytest
from support.messages import line_of, refusal, says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors

X = np.ones(3, np.float32)
M = np.ones((3, 2), np.float32)


def loss(x):
    return fnp.sum(x * x)


def test_a_static_argument_that_cannot_be_hashed():
    def scaled(x, how):
        return x * how[0]

    message = refusal(lambda: ft.jit(scaled, static_argnums=1)(X, [2.0]), errors.ArgumentError, ValueError)
    says(message.head, "static argument 1", "scaled", "list", "[2.0]")
    says(message.remedy, "tuple")
    message = refusal(lambda: ft.jit(scaled, static_argnames="how")(X, how=[2.0]), errors.ArgumentError, ValueError)
    says(message.head, "'how'", "list")
    message = refusal(lambda: ft.jit(scaled, static_argnums=1)(X, X), errors.ArgumentError)
    says(message.head, "not hashable")


def test_a_static_argument_that_is_traced():
    power = ft.jit(lambda x, n: x**n, static_argnums=1)

    def outer(x, n):
        return power(x, n)  # the call

    for transform in (ft.jit, lambda f: ft.vmap(f, in_axes=(None, 0)), lambda f: ft.grad(lambda n, x: f(x, n).sum())):
        args = (X, X) if transform is not ft.jit else (X, 2)
        message = refusal(lambda transform=transform, args=args: transform(outer)(*args), errors.ArgumentError)
        says(message.head, "static argument 1", "not hashable")
        says(message.at, line_of(outer, "# the call"))
        says(message.remedy, "static_argnums")


def test_static_names_and_positions_that_are_not_there():
    message = refusal(lambda: ft.jit(loss, static_argnums=1), errors.ArgumentError, ValueError)
    says(message.head, "static_argnums=1", "loss", "1 positional")
    message = refusal(lambda: ft.jit(loss, static_argnames="y"), errors.ArgumentError, ValueError)
    says(message.head, "'y'", "loss")
    says(message.remedy, "x")
    message = refusal(lambda: ft.jit(loss, donate_argnums=3), errors.ArgumentError)
    says(message.head, "donate_argnums=3")
    message = refusal(lambda: ft.jit(loss, static_argnums=0, donate_argnums=0), errors.ArgumentError)
    says(message.head, "both static and donated")


@pytest.mark.parametrize("args", [("text",), ([X, "text"],), ({"a": {"b": "text"}},)])
def test_a_leaf_that_is_no_array_is_named_by_its_path(args):
    message = refusal(lambda: ft.jit(lambda p: p)(*args), TypeError)
    says(message.head, "'text'", "str")
    if isinstance(args[0], dict):
        says(message.head, "a", "b")
    if isinstance(args[0], list):
        says(message.head, "1")


def test_a_result_that_is_no_array():
    def bad(x):
        return {"good": x, "bad": "text"}

    message = refusal(lambda: ft.jit(bad)(X), TypeError)
    says(message.head, "'text'")


def test_a_donated_array_used_again():
    x = fnp.asarray(np.ones(64, np.float32))
    ft.jit(lambda x: x + 1.0, donate_argnums=0)(x)

    def use():
        return x + 1.0  # the use

    message = refusal(use, errors.DonatedError, RuntimeError, ValueError)
    says(message.head, "f32[64]")
    refusal(lambda: np.asarray(x), errors.DonatedError)
    refusal(lambda: ft.jit(fnp.sin)(x), errors.DonatedError)
    refusal(lambda: ft.vmap(fnp.sin)(x), errors.DonatedError)
    assert "float32" in repr(x) or "f32" in repr(x)


def test_a_compiled_function_called_otherwise():
    compiled = ft.jit(loss).lower(X).compile()
    message = refusal(lambda: compiled(M), errors.ArgumentError, TypeError)
    says(message.head, "loss", "f32[3]", "f32[3,2]")
    message = refusal(lambda: compiled(X, X), errors.ArgumentError, TypeError)
    says(message.head, "compiled for arguments")


def test_an_error_of_the_user_passes_through_unchanged():
    class Mine(Exception):
        pass

    def bad(x):
        raise Mine("hello")

    for transform in (ft.jit, ft.grad, ft.vmap, ft.make_jaxpr):
        with pytest.raises(Mine, match=r"^hello$"):
            transform(bad)(X)


def test_a_failed_call_poisons_nothing():
    calls = []

    @ft.jit
    def flaky(x):
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("once")
        return x + 1.0

    with pytest.raises(RuntimeError, match="once"):
        flaky(X)
    for _ in range(3):
        np.testing.assert_array_equal(flaky(X), X + 1)
    assert len(calls) == 2


def test_names_that_a_function_lacks_come_before_values_that_are_no_arrays():
    for use in (lambda: ft.jit(lambda x, rate=1.0: x)(1.0, rat="fast"), lambda: ft.scipy.linalg.svd(X, driver="gesdd")):
        with pytest.raises(TypeError, match=r"got an unexpected keyword argument '(rat|driver)'"):
            use()
    with pytest.raises(ft.errors.DtypeError, match="rate"):
        ft.jit(lambda x, rate=1.0: x)(1.0, rate="fast")
