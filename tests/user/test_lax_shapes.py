"""Functions of `lax` that stack, pick and make shapes, and the shapes of windows."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, lax

R = np.random.default_rng(0)
X = R.standard_normal((3, 4)).astype(np.float32)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_stack_and_unstack(axis):
    parts = [X, 2 * X, -X]
    np.testing.assert_array_equal(lax.stack(parts, axis), np.stack(parts, axis))
    for part, again in zip(parts, lax.unstack(np.stack(parts, axis), axis), strict=True):
        np.testing.assert_array_equal(part, again)
    both = lambda x: lax.stack(lax.unstack(x, axis), axis)
    np.testing.assert_array_equal(ft.jit(ft.vmap(both))(fnp.asarray(X)[None, :, :, None]), X[None, :, :, None])
    ft.testing.check_grads(lambda x: lax.stack([x, x * x], axis), (X,), order=2)


def test_stack_refuses():
    with pytest.raises(errors.ShapeError, match="got no arrays"):
        lax.stack([])
    with pytest.raises(errors.ShapeError):
        lax.stack([X, X[0]])
    assert lax.unstack(fnp.zeros((0, 3))) == ()


def test_ranks_and_shapes():
    assert lax.broadcast_shapes((3, 1), (4,), ()) == (3, 4) and lax.broadcast_shapes() == ()
    with pytest.raises(errors.ShapeError, match="do not broadcast"):
        lax.broadcast_shapes((3,), (4,))
    assert lax.broadcast_to_rank(X, 4).shape == (1, 1, 3, 4) and lax.broadcast_to_rank(X, 2).shape == (3, 4)
    with pytest.raises(errors.ShapeError, match="more than 1"):
        lax.broadcast_to_rank(X, 1)
    for shape, like in (((4,), (3, 4)), ((3, 1), (3, 4)), ((1, 1), (2, 1)), ((), (2, 3)), ((0,), (2, 0))):
        x = R.standard_normal(shape)
        np.testing.assert_array_equal(lax.broadcast_like(x, np.zeros(like)), np.broadcast_to(x, like))
    with pytest.raises(errors.ShapeError, match="does not broadcast"):
        lax.broadcast_like(X, X[0])
    assert lax.shape_as_value((2, 3)).dtype == np.int32 and lax.empty((2, 0)).shape == (2, 0)
    assert lax.dtype("int8") == np.int8 and lax.dtype(np.float64(1)) == np.float64


def test_index_take():
    src = R.standard_normal((3, 4, 2))
    rows, columns = np.array([0, 2, 1]), np.array([1, 3, 0])
    np.testing.assert_array_equal(lax.index_take(src, [rows, columns], (0, 1)), src[rows, columns])
    np.testing.assert_array_equal(lax.index_take(src, [columns, rows], (1, 0)), src[rows, columns])
    np.testing.assert_array_equal(lax.index_take(src, [columns], (1,)), np.moveaxis(src[:, columns], 1, 0))
    ft.testing.check_grads(lambda s: lax.index_take(s, [rows, columns], (0, 1)), (src,), order=1)
    with pytest.raises(errors.ArgumentError, match="vector of positions"):
        lax.index_take(src, [rows], (0, 1))


def test_scatter_sub_and_pbroadcast():
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    got = lax.scatter_sub(fnp.zeros(3, "uint8"), np.array([[1], [1]]), np.array([1, 2], np.uint8), numbers)
    np.testing.assert_array_equal(got, [0, 253, 0])
    copied = ft.vmap(lambda x: lax.pbroadcast({"a": x, "b": x > 0}, "i", 2), axis_name="i")(X)
    np.testing.assert_array_equal(copied["a"], np.broadcast_to(X[2], X.shape))
    np.testing.assert_array_equal(copied["b"], np.broadcast_to(X[2] > 0, X.shape))
    with pytest.raises(errors.ArgumentError, match="3 positions"):
        ft.vmap(lambda x: lax.pbroadcast(x, "i", 3), axis_name="i")(X)


def test_dot_algorithms_by_name_and_by_what_they_are():
    x = fnp.asarray(X)
    text = lambda p: ft.jit(lambda a, b: lax.dot(a, b, precision=p)).lower(x, x.T).as_text()
    for name, given in (
        ("BF16_BF16_F32", lax.DotAlgorithm("bfloat16", "bfloat16", "float32")),
        ("TF32_TF32_F32_X3", lax.DotAlgorithm("tf32", "tf32", "float32", 2, 2, 3)),
        ("BF16_BF16_F32_X9", lax.DotAlgorithm("bfloat16", "bfloat16", "float32", 3, 3, 9)),
    ):
        assert given.value == name
        assert text(given) == text(name) == text(lax.DotAlgorithmPreset(name))
    assert text(lax.DotAlgorithmPreset.DEFAULT) == text("default")
    assert lax.DotAlgorithm("float64", np.float64, "float64").value == "F64_F64_F64"
    with pytest.raises(errors.ArgumentError, match="no dot algorithm"):
        lax.dot(x, x.T, precision=lax.DotAlgorithm("int8", "int8", "int32"))


def test_shapes_of_windows_are_those_that_are_computed():
    x, kernel = np.ones((4, 3, 9, 8), np.float32), np.ones((6, 3, 3, 2), np.float32)
    for padding in ("SAME", "VALID", [(1, 2), (0, 1)]):
        want = lax.conv(x, kernel, (2, 3), padding).shape
        assert lax.conv_shape_tuple(x.shape, kernel.shape, (2, 3), padding) == want
        numbers = ("HNWC", "WIOH", "CWNH")
        straight = np.transpose(x, (2, 0, 3, 1)), np.transpose(kernel, (3, 1, 0, 2))
        want = lax.conv_general_dilated(*straight, (2, 3), padding, dimension_numbers=numbers).shape
        shapes = [a.shape for a in straight]
        assert lax.conv_general_shape_tuple(*shapes, (2, 3), padding, numbers) == want
    assert lax.conv_shape_tuple(x.shape, kernel.shape, (1, 1), "VALID", batch_group_count=2)[0] == 2
    with pytest.raises(errors.ShapeError, match="3 groups"):
        lax.conv_shape_tuple(x.shape, kernel.shape, (1, 1), "VALID", batch_group_count=3)
    want = lax.reduce_window(x, 0.0, lax.add, (1, 1, 2, 3), (1, 2, 2, 1), [(0, 0), (0, 0), (1, 0), (0, 0)]).shape
    assert lax.reduce_window_shape_tuple(x.shape, (1, 1, 2, 3), (1, 2, 2, 1), [(0, 0), (0, 0), (1, 0), (0, 0)]) == want


def test_helpers_of_custom_rules():
    zero = ft.custom_derivatives.zero_from_primal
    assert zero(3).dtype == ft.float0 and zero(fnp.ones((2, 1))).shape == (2, 1)
    assert isinstance(zero(1.0, symbolic_zeros=True), ft.custom_derivatives.SymbolicZero)
    assert ft.tree.map(fnp.shape, zero((fnp.ones(2), {"a": 1.0}))) == ((2,), {"a": ()})

    @ft.custom_vjp
    def f(p):
        return p["a"] * p["b"]

    def fwd(p):
        values = ft.custom_derivatives.custom_vjp_primal_tree_values(p)
        return f(values), values

    f.defvjp(fwd, lambda p, ct: ({"a": ct * p["b"], "b": ct * p["a"]},), symbolic_zeros=True)
    got = ft.grad(f)({"a": 2.0, "b": 5.0})
    assert float(got["a"]) == 5.0 and float(got["b"]) == 2.0


@pytest.mark.parametrize(
    "work",
    [
        lambda i: lax.dynamic_slice(X, (i, 0), (1, 1)),
        lambda i: lax.dynamic_index_in_dim(X, i),
        lambda i: lax.dynamic_slice_in_dim(X, i, 1),
        lambda i: lax.dynamic_update_slice(X, X[:1], (0, i)),
    ],
)
def test_starts_that_are_no_integers_are_refused(work):
    for start in (1.5, 1.0, np.float32(1), fnp.asarray(1.0)):
        with pytest.raises(errors.DtypeError, match="is not an integer"):
            work(start)
    with pytest.raises(errors.DtypeError, match=r"the start f32\[\] is not an integer"):
        ft.jit(work)(1.0)
    work(1), work(np.uint8(1)), ft.jit(work)(1)
