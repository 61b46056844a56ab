"""Python functions that write their results into given memory."""

import numpy as np
import pytest

import functorch_like as ft
from functorch_like.experimental.buffer_callback import ExecutionStage, buffer_callback

X = np.arange(4, dtype=np.float32)
VECTOR = ft.ShapeDtypeStruct((4,), np.float32)


def plus_one(context, out, x):
    assert context.stage is ExecutionStage.EXECUTE
    np.add(x, 1, out=np.asarray(out))


def test_results_are_written_in_place():
    f = buffer_callback(plus_one, VECTOR)
    for run in (f, ft.jit(f)):
        np.testing.assert_array_equal(run(X), X + 1)
    np.testing.assert_array_equal(ft.jit(lambda x: f(x) * 2)(X), 2 * (X + 1))


def test_pytrees_and_types():
    seen = []

    def fun(context, out, tree, scale):
        seen.append((tree["a"].shape, tree["a"].dtype, tree["a"].ndim, tree["a"].writeable, out["s"].writeable))
        np.asarray(out["s"])[...] = np.asarray(tree["a"]) * np.asarray(scale)
        np.asarray(out["n"])[...] = np.from_dlpack(out["s"]).sum()

    f = buffer_callback(fun, {"s": VECTOR, "n": ft.ShapeDtypeStruct((), "int32")})
    out = ft.jit(lambda x: f({"a": x}, scale=x))(X)
    np.testing.assert_array_equal(out["s"], X * X)
    assert int(out["n"]) == 14 and seen == [((4,), np.float32, 1, False, True)]


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_vmap(method):
    fun = lambda context, out, x, y: np.copyto(np.asarray(out), np.asarray(x) + np.asarray(y))
    f = buffer_callback(fun, VECTOR, vmap_method=method)
    rows = np.stack([X, 2 * X, 3 * X])
    np.testing.assert_array_equal(ft.jit(ft.vmap(f, in_axes=(0, None)))(rows, X), rows + X)
    np.testing.assert_array_equal(ft.vmap(ft.vmap(f, in_axes=(None, 0)), in_axes=(0, None))(rows, rows)[2, 1], 5 * X)


def test_vmap_needs_a_method():
    with pytest.raises(ft.errors.UnsupportedError, match="vmap"):
        ft.vmap(buffer_callback(plus_one, VECTOR))(np.stack([X, X]))


def test_side_effects_and_aliases():
    calls = []

    def fun(context, out, x):
        calls.append(np.array(out))
        np.asarray(out)[0] = 7

    f = ft.jit(lambda x: [buffer_callback(fun, VECTOR, has_side_effect=True, input_output_aliases={0: 0})(x), x][1])
    f(X)
    ft.effects_barrier()
    np.testing.assert_array_equal(calls, [X])
    g = buffer_callback(fun, VECTOR, input_output_aliases={0: 0})
    np.testing.assert_array_equal(g(X), [7, 1, 2, 3])
    with pytest.raises(ft.errors.ShapeError, match="alias"):
        buffer_callback(fun, VECTOR, input_output_aliases={0: 0})(X[:2])
    with pytest.raises(ft.errors.ArgumentError, match="input_output_aliases has 1: 0"):
        buffer_callback(fun, VECTOR, input_output_aliases={1: 0})(X)


def test_what_is_refused():
    with pytest.raises(ft.errors.ArgumentError, match="returned 3"):
        buffer_callback(lambda context, out, x: 3, VECTOR)(X)
    with pytest.raises(ValueError, match="read-only"):
        buffer_callback(lambda context, out, x: np.asarray(x).fill(1), VECTOR)(X)
    with pytest.raises(ft.errors.UnsupportedError, match="no stream"):
        buffer_callback(lambda context, out, x: context.stream, VECTOR)(X)
    with pytest.raises(ft.errors.UnsupportedError, match="derivative"):
        ft.grad(lambda x: buffer_callback(plus_one, VECTOR)(x).sum())(X)
