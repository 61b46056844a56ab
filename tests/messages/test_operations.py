"""Errors of single operations, eager and under jit: the same text, with the user's line."""

import numpy as np
import pytest
from support.messages import line_of, read, refusal, says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors

X3, X2 = np.zeros(3, np.float32), np.zeros(2, np.float32)
M32 = np.zeros((3, 2), np.float32)


def add(x, y):
    return fnp.add(x, y)  # the add


def matmul(x, y):
    return fnp.matmul(x, y)  # the product


def both(fun, *args, kinds=(errors.FtError,)):
    """Return the errors of a function called eagerly and under jit; assert that their heads are equal."""
    eager = refusal(lambda: fun(*args), *kinds)
    staged = refusal(lambda: ft.jit(fun)(*args), *kinds)
    assert eager.head == staged.head
    assert eager.remedy == staged.remedy
    assert eager.under == ""
    assert f"jit({fun.__name__})" in staged.under
    return eager, staged


def test_shapes_that_do_not_fit():
    for message in both(add, X3, X2, kinds=(errors.ShapeError, ValueError, TypeError)):
        says(message.head, "add", "f32[3]", "f32[2]")
        says(message.at, line_of(add, "# the add"), "in add")


def test_shapes_of_a_product_that_do_not_fit():
    for message in both(matmul, X3, X2, kinds=(errors.ShapeError, ValueError)):
        says(message.head, "f32[3]", "f32[2]")
        says(message.at, line_of(matmul, "# the product"))


def test_operators_name_the_users_line():
    def plus(x, y):
        return x + y  # the sum

    for message in both(plus, fnp.asarray(X3), fnp.asarray(X2), kinds=(errors.ShapeError,)):
        says(message.at, line_of(plus, "# the sum"))


def test_a_primitive_called_by_hand_names_its_rule():
    from functorch_like import core

    prim = core.TABLE["add"]

    def apply(x, y):
        return prim(x, y)  # the primitive

    for fun in (apply, ft.jit(apply)):
        with pytest.raises(errors.ShapeError) as caught:  # the package's frames show, as primitives do not hide them
            fun(X3, X2)
        message = read(caught.value)
        says(message.head, "add(f32[3], f32[2])")
        assert message.rule == prim.where
        says(message.at, line_of(apply, "# the primitive"))


def test_a_dtype_that_does_not_fit():
    def invert(x):
        return fnp.bitwise_not(x)  # the inversion

    for message in both(invert, X3, kinds=(errors.DtypeError, TypeError)):
        says(message.head, "f32[3]")
        says(message.at, line_of(invert, "# the inversion"))


@pytest.mark.parametrize(
    "value", ["text", None, object(), [1, 2], {"a": 1}, b"bytes", np.array(["a"]), np.datetime64(1, "s")]
)
def test_something_that_is_no_array(value):
    message = refusal(lambda: fnp.sin(value), TypeError)
    says(message.head, type(value).__name__ if not isinstance(value, (np.ndarray, np.generic)) else "dtype")


def test_a_python_int_too_wide():
    x = np.zeros(3, np.int32)
    message = refusal(lambda: fnp.add(x, 2**31), OverflowError)
    says(message.head, str(2**31))
    message = refusal(lambda: fnp.add(x, 2**70), OverflowError)
    says(message.head, str(2**70))
    message = refusal(lambda: fnp.add(np.zeros(3, np.uint8), -1), OverflowError)
    says(message.head, "-1")
    message = refusal(lambda: ft.jit(fnp.add)(x, 2**70), OverflowError)
    says(message.head, str(2**70))


@pytest.mark.parametrize("index", [3, -4, (slice(None), 0), (0, 0)])
def test_a_static_index_out_of_bounds(index):
    def take(x):
        return x[index]  # the index

    for message in both(take, fnp.asarray(X3), kinds=(IndexError,)):
        says(message.head, "3" if np.ndim(index) == 0 else "")
        says(message.at, line_of(take, "# the index"))


def test_an_index_that_is_no_index():
    x = fnp.asarray(X3)
    for index in (1.5, "a", np.array([0.5])):
        refusal(lambda index=index: x[index], IndexError)


def test_assignment_in_place():
    x = fnp.asarray(X3)

    def assign(x):
        x[0] = 1.0  # the assignment
        return x

    eager, staged = both(assign, x, kinds=(errors.ImmutableError, TypeError))
    for message in (eager, staged):
        says(message.remedy, ".at[")
    assert np.asarray(x)[0] == 0


def test_an_unknown_device():
    message = refusal(lambda: ft.device_put(X3, "abacus"), errors.DeviceError, ValueError, RuntimeError)
    says(message.head, "abacus")
    says(str(message.error), "cpu")
    message = refusal(lambda: ft.devices("abacus"), errors.DeviceError, RuntimeError)
    says(message.head, "abacus")


def test_no_rule_says_what_to_do_instead():
    from functorch_like import core

    missing = [
        (p, c)
        for p in core.TABLE.values()
        for c in ("jvp", "transpose", "batch")
        if isinstance(getattr(p, c), core.NotDefined)
    ]
    assert missing
    for prim, column in missing:
        cell = getattr(prim, column)
        with pytest.raises(errors.UnsupportedError) as caught:
            cell()
        says(str(caught.value), cell.partition("; ")[0])
        assert caught.value.fix
        assert isinstance(caught.value, NotImplementedError)


def test_no_rule_names_the_operation_and_the_rule():
    from functorch_like import core

    prim = core.Primitive(
        "nothing_but_a_shape",
        shape=lambda x: x,
        ref=lambda x: x,
        lower=core.NotDefined("this is a primitive of the tests; do not compile it"),
        jvp=core.NotDefined("this primitive is of the tests only; use stop_gradient"),
        transpose=core.NotDefined("this primitive is of the tests only; do not transpose it"),
        batch=core.NotDefined("this primitive is of the tests only; write a loop"),
        samples=list,
    )
    try:

        def apply(x):
            return prim(x)  # the primitive

        message = refusal(lambda: ft.jvp(apply, (X3,), (X3,)), NotImplementedError)
        says(message.head, "jvp of nothing_but_a_shape(f32[3])", "this primitive is of the tests only")
        assert message.remedy == "use stop_gradient"
        assert message.under == "jvp"
        says(message.at, line_of(apply, "# the primitive"))
        assert message.rule.startswith("messages/test_operations.py:")
        message = refusal(lambda: ft.vmap(apply)(X3), NotImplementedError)
        says(message.head, "batch of nothing_but_a_shape(f32[])")
        assert message.under == "vmap(apply)"
        message = refusal(lambda: ft.jit(apply)(X3), NotImplementedError)
        says(message.head, "lowering of nothing_but_a_shape(f32[3])")
        says(message.at, line_of(apply, "# the primitive"))
    finally:
        del core.TABLE["nothing_but_a_shape"]
