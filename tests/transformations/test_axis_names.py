"""Collectives over named axes of vmap: psum, pmax, pmin, axis_index; against NumPy's reductions."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax

X = np.arange(12.0).reshape(3, 4) / 7 - 0.6


def close(got, want):
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-10, atol=1e-12)


WRAPS = {
    "plain": lambda f, **kw: ft.vmap(f, **kw),
    "jit outside": lambda f, **kw: ft.jit(ft.vmap(f, **kw)),
    "jit inside": lambda f, **kw: ft.vmap(ft.jit(f), **kw),
}


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize(("collective", "reduce"), [("psum", np.sum), ("pmax", np.max), ("pmin", np.min)])
def test_a_collective_is_a_reduction_over_the_axis(collective, reduce, wrap):
    op = getattr(lax, collective)
    got = WRAPS[wrap](lambda x: x - op(x, "rows"), axis_name="rows")(X)
    close(got, X - reduce(X, 0))


@pytest.mark.parametrize("wrap", WRAPS)
def test_out_axes_none_for_what_is_the_same_everywhere(wrap):
    got = WRAPS[wrap](lambda x: lax.psum(x, "rows"), axis_name="rows", out_axes=None)(X)
    close(got, X.sum(0))


@pytest.mark.parametrize("wrap", WRAPS)
def test_axis_index(wrap):
    got = WRAPS[wrap](lambda x: x * lax.axis_index("rows"), axis_name="rows")(X)
    close(got, X * np.arange(3)[:, None])


def test_the_size_of_an_axis():
    got = ft.vmap(lambda x: x / lax.psum(1, "rows"), axis_name="rows")(X)
    close(got, X / 3)


def test_values_that_are_not_mapped_count_once_for_each_element():
    got = ft.vmap(lambda x: lax.psum(2.0, "rows") + 0 * x[0], axis_name="rows")(X)
    close(got, np.full(3, 6.0))


def test_nested_axes_are_distinguished():
    f = lambda x: (lax.psum(x, "rows"), lax.psum(x, "columns"), lax.axis_index("rows") * 10 + lax.axis_index("columns"))
    for wrap in (lambda f: f, ft.jit):
        rows, columns, index = wrap(ft.vmap(ft.vmap(wrap(f), axis_name="columns"), axis_name="rows"))(X)
        close(rows, np.broadcast_to(X.sum(0), X.shape))
        close(columns, np.broadcast_to(X.sum(1, keepdims=True), X.shape))
        close(index, np.arange(3)[:, None] * 10 + np.arange(4))


def test_derivatives_go_through_collectives():
    def loss(x):
        return ft.vmap(lambda x: fnp.sum(lax.psum(x**2, "rows") * x), axis_name="rows")(x).sum()

    want = 2 * X * X.sum(0) + (X**2).sum(0)
    close(ft.grad(loss)(X), want)
    close(ft.jit(ft.grad(loss))(X), want)
    close(ft.jvp(loss, (X,), (X,))[1], np.sum(want * X))


def test_a_jitted_function_knows_the_size_of_its_axis():
    f = ft.jit(lambda x: x * lax.psum(1, "rows"))
    for n in (3, 2, 1, 3):
        close(ft.vmap(f, axis_name="rows")(X[:n]), X[:n] * n)


def test_a_jitted_function_is_not_reused_where_its_axis_is_unbound():
    f = ft.jit(lambda x: lax.psum(x, "rows"))
    close(ft.vmap(f, axis_name="rows", out_axes=None)(X), X.sum(0))
    with pytest.raises(ft.FtError, match="rows"):
        f(X)
    with pytest.raises(ft.FtError, match="rows"):
        ft.vmap(f)(X)
    with pytest.raises(ft.FtError, match="rows"):
        ft.vmap(f, axis_name="columns")(X)


def test_a_jitted_function_is_not_reused_under_another_axis():
    f = ft.jit(lambda x: lax.psum(x, "rows"))
    close(ft.vmap(f, axis_name="rows", out_axes=None)(X), X.sum(0))
    close(ft.vmap(f, axis_name="rows", out_axes=None)(X[:2]), X[:2].sum(0))
    close(ft.vmap(ft.vmap(f), axis_name="rows", out_axes=None)(X), X.sum(0))


def test_make_jaxpr_brings_axes_into_scope():
    jaxpr = ft.make_jaxpr(lambda x: lax.psum(x, "rows") / lax.axis_size("rows"), axis_env=[("rows", 4)])(1.0)
    assert [e.prim.name for e in jaxpr.equations] == ["psum", "div"]
    with pytest.raises(ft.errors.ArgumentError, match="no axis named 'rows'"):
        ft.make_jaxpr(lambda x: lax.psum(x, "rows"))(1.0)


def test_a_name_without_an_axis_is_a_name_error():
    with pytest.raises(NameError, match="no axis named 'i'") as caught:
        ft.vmap(lambda x: lax.psum(x, "i"))(np.ones(3))
    assert isinstance(caught.value, ft.errors.AxisNameError) and isinstance(caught.value, ft.errors.ArgumentError)


def test_extremes_of_booleans_over_a_named_axis_are_booleans():
    x = np.array([[True, False, False], [True, True, False]])
    for f, expected in ((lax.pmax, x.any(0)), (lax.pmin, x.all(0))):
        for groups in (None, [[0, 1]]):
            result = ft.vmap(lambda v, f=f, groups=groups: f(v, "i", axis_index_groups=groups), axis_name="i")(x)
            assert result.dtype == bool
            np.testing.assert_array_equal(result, np.stack([expected] * 2))
