"""Errors for arguments of transformations: values that cannot be differentiated or mapped."""

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


# -------------------------------------------------------------------------------------------------------------- grad
def test_the_result_is_no_scalar():
    def identity(x):
        return x * 2.0

    def call():
        return ft.grad(identity)(X)  # the call

    message = refusal(call, errors.DifferentiationError, TypeError)
    says(message.head, "grad", "scalar", "identity", "f32[3]")
    says(message.at, line_of(call, "# the call"), "in call")
    says(message.remedy, "sum", "vjp")


def test_the_result_is_a_tree():
    message = refusal(lambda: ft.grad(lambda x: (loss(x), x))(X), errors.DifferentiationError)
    says(message.remedy, "has_aux")


def test_the_result_is_no_float():
    message = refusal(lambda: ft.grad(lambda x: fnp.sum(x).astype("int32"))(X), errors.DifferentiationError)
    says(message.head, "i32[]")
    message = refusal(lambda: ft.grad(lambda x: fnp.sum(x * 1j))(X), errors.DifferentiationError)
    says(message.head, "c64[]")
    says(message.remedy, "holomorphic")


def test_the_argument_is_an_integer():
    def call():
        return ft.grad(loss)(np.arange(3))  # the call

    message = refusal(call, errors.DifferentiationError, TypeError)
    says(message.head, "grad", "i64[3]")
    says(message.at, line_of(call, "# the call"))
    says(message.remedy, "allow_int")
    message = refusal(lambda: ft.grad(loss)(2), errors.DifferentiationError)
    says(message.head, "i32[]")
    says(message.remedy, "2.0, not 2")


def test_the_argument_is_no_array():
    message = refusal(lambda: ft.grad(loss)("text"), TypeError)
    says(message.head, "grad", "'text'", "str")


def test_holomorphic_requires_complex():
    message = refusal(lambda: ft.grad(loss, holomorphic=True)(X), errors.DifferentiationError)
    says(message.head, "holomorphic", "f32[3]")


@pytest.mark.parametrize("argnums", [1, -2, (0, 1)])
def test_argnums_beyond_the_arguments(argnums):
    message = refusal(lambda: ft.grad(loss, argnums=argnums)(X), errors.ArgumentError, ValueError, TypeError)
    says(message.head, f"argnums={argnums}", "1 positional")


def test_argnums_may_be_a_range():
    x, y = fnp.asarray([1.0, 2.0]), fnp.asarray([3.0, 4.0])
    for transform in (ft.grad, ft.jacrev, ft.jacfwd):
        first, second = transform(lambda x, y: (x * y).sum(), argnums=range(2))(x, y)
        assert first.tolist() == y.tolist() and second.tolist() == x.tolist()


@pytest.mark.parametrize("argnums", ["x", 1.0, (0, "y")])
def test_argnums_of_a_wrong_type(argnums):
    message = refusal(lambda: ft.grad(loss, argnums=argnums)(X), errors.ArgumentError, TypeError)
    says(message.head, repr(argnums))


@pytest.mark.parametrize(
    "transform", [ft.jit, ft.grad, ft.value_and_grad, ft.vmap, ft.make_jaxpr], ids=lambda f: f.__name__
)
def test_not_a_function(transform):
    message = refusal(lambda: transform(3.0), errors.ArgumentError, TypeError)
    says(message.head, transform.__name__ if transform is not ft.value_and_grad else "value_and_grad", "float")


def test_has_aux_requires_a_pair():
    message = refusal(lambda: ft.grad(loss, has_aux=True)(X), errors.DifferentiationError)
    says(message.head, "has_aux", "pair", "it returned f32[]")
    message = refusal(lambda: ft.vjp(lambda x: (x, x, x), X, has_aux=True), errors.DifferentiationError)
    says(message.head, "it returned a tuple of 3")


def test_a_result_that_is_no_array():
    message = refusal(lambda: ft.jit(lambda x: "text")(X), errors.DtypeError)
    says(message.head, "the function returned 'text' of type str")
    assert not message.head.endswith(" at ")
    message = refusal(lambda: ft.jit(lambda x: {"a": (x, "text")})(X), errors.DtypeError)
    says(message.head, "of type str at ['a'][1]")


# ---------------------------------------------------------------------------------------------------------- jvp, vjp
def test_tangents_unlike_primals():
    message = refusal(lambda: ft.jvp(loss, (X,), (M,)), errors.DifferentiationError)
    says(message.head, "f32[3]", "f32[3,2]")
    message = refusal(lambda: ft.jvp(loss, (X,), (X.astype("f8"),)), errors.DifferentiationError)
    says(message.head, "f32[3]", "f64[3]")
    message = refusal(lambda: ft.jvp(lambda p: loss(p["w"]), ({"w": X},), ({"v": X},)), errors.TreeError)
    says(message.head, "'w'", "'v'")
    message = refusal(lambda: ft.jvp(loss, X, X), errors.ArgumentError, TypeError)
    says(message.head, "tuples", "ndarray")


def test_tangents_of_integers():
    message = refusal(lambda: ft.jvp(lambda n, x: x * n, (3, X), (1.0, X)), errors.DifferentiationError)
    says(message.head, "i32[]", "float0")


def test_the_path_of_a_wrong_tangent_is_named():
    primal = {"layers": [{"w": X, "b": X}]}
    tangent = {"layers": [{"w": X, "b": M}]}
    message = refusal(lambda: ft.jvp(lambda p: loss(p["layers"][0]["b"]), (primal,), (tangent,)), errors.FtError)
    says(message.head, "layers", "b", "f32[3,2]")


def test_cotangents_unlike_the_result():
    _, pull = ft.vjp(loss, X)
    message = refusal(lambda: pull(X), errors.DifferentiationError)
    says(message.head, "f32[]", "f32[3]")
    message = refusal(lambda: pull((1.0, 2.0)), errors.TreeError)
    says(message.head, "structure")


# -------------------------------------------------------------------------------------------------------------- vmap
def test_mapped_sizes_differ():
    def call():
        return ft.vmap(lambda x, p: x + p["w"])(X, {"w": np.ones(4, np.float32)})  # the call

    message = refusal(call, errors.ShapeError, ValueError)
    says(message.head, "vmap(<lambda>)", "f32[3] has 3 along axis 0", "f32[4] has 4 along axis 0", "w")
    says(message.at, line_of(call, "# the call"))
    says(message.remedy, "None")


def test_axis_size_differs():
    message = refusal(lambda: ft.vmap(loss, axis_size=5)(M), errors.ShapeError)
    says(message.head, "axis_size=5", "3 along axis 0")


def test_too_many_in_axes():
    message = refusal(lambda: ft.vmap(loss, in_axes=(0, 0))(X), errors.ArgumentError, ValueError)
    says(message.head, "in_axes=(0, 0)", "2 entries", "1 positional")


@pytest.mark.parametrize("axes", ["0", 1.5, {"x": 0}])
def test_in_axes_of_a_wrong_type(axes):
    message = refusal(lambda: ft.vmap(loss, in_axes=axes)(X), errors.ArgumentError, TypeError)
    says(message.head, "in_axes", repr(axes))


def test_an_entry_of_in_axes_of_a_wrong_type():
    message = refusal(lambda: ft.vmap(loss, in_axes=("a",))(X), errors.FtError, TypeError)
    says(message.head, "in_axes", "'a'")


def test_an_axis_the_argument_does_not_have():
    message = refusal(lambda: ft.vmap(loss, in_axes=1)(X), errors.ShapeError, ValueError)
    says(message.head, "axis 1", "f32[3]", "1 axes")
    message = refusal(lambda: ft.vmap(loss)(np.float32(1)), errors.ShapeError)
    says(message.head, "f32[]")


def test_in_axes_that_are_no_prefix():
    message = refusal(lambda: ft.vmap(lambda p: p["w"], in_axes=({"v": 0},))({"w": X}), errors.FtError, ValueError)
    says(str(message.error), "in_axes", "w")


def test_nothing_to_map_over():
    message = refusal(lambda: ft.vmap(loss, in_axes=None)(X), errors.ArgumentError, ValueError)
    says(message.head, "nothing to map over")
    says(message.remedy, "axis_size")


def test_out_axes_that_do_not_fit():
    message = refusal(lambda: ft.vmap(loss, out_axes=2)(M), errors.ArgumentError, ValueError)
    says(message.head, "out_axes", "2", "1 axes")
    message = refusal(lambda: ft.vmap(loss, out_axes=None)(M), errors.ArgumentError, ValueError)
    says(message.head, "out_axes", "None")


def test_a_mapped_argument_that_is_no_array():
    message = refusal(lambda: ft.vmap(lambda p: p["w"])({"w": "text"}), TypeError)
    says(message.head, "w", "'text'")


UNSORTED = {1: X, "a": X}


@pytest.mark.parametrize(
    "call",
    [
        lambda d: ft.grad(lambda d: d[1].sum())(d),
        lambda d: ft.vmap(lambda d: d[1])(d),
        lambda d: ft.jit(lambda x: {1: x, "a": x})(1.0),
        lambda d: ft.jit(lambda d: d[1])(d),
        lambda d: ft.jit(lambda d: d[1], donate_argnums=0)({"d": d}),
        lambda d: ft.jit(lambda x, d: d[1])(1.0, d=d),
        lambda d: ft.jit(lambda d, n: d[1], static_argnums=1)(d, 1),
        lambda d: ft.lax.scan(lambda c, x: (c, x), 1.0, d),
        lambda d: ft.device_put(d),
        lambda d: ft.tree.leaves(d),
        lambda d: ft.make_jaxpr(lambda d: d[1])(d),
    ],
)
def test_keys_that_cannot_be_sorted(call):
    with pytest.raises(errors.TreeError, match="keys that cannot be sorted") as caught:
        call(UNSORTED)
    assert "use keys of one type" in str(caught.value) and "at: " in str(caught.value)
    assert caught.value.__cause__ is None
