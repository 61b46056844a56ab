"""vmap: axes of arguments and results, trees, nesting; against loops in NumPy."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp

X = np.arange(24.0).reshape(2, 3, 4) / 10


def close(got, want):
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("out", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_every_axis_in_and_out(axis, out, wrap):
    fun = wrap(lambda x: fnp.cumsum(x, axis=0) * 2)
    want = np.stack([np.cumsum(np.take(X, k, axis), 0) * 2 for k in range(X.shape[axis])], out)
    close(ft.vmap(fun, in_axes=axis, out_axes=out)(X), want)
    close(wrap(ft.vmap(fun, in_axes=axis, out_axes=out))(X), want)


def test_arguments_that_are_not_mapped():
    w = np.arange(4.0)
    close(ft.vmap(fnp.dot, in_axes=(0, None))(X[0], w), X[0] @ w)
    close(ft.vmap(fnp.dot, in_axes=(None, 0))(w, X[0]), X[0] @ w)
    close(ft.vmap(lambda x, y: y, in_axes=(0, None))(X, w), np.stack([w, w]))
    close(ft.vmap(lambda x: 3.0)(X), [3.0, 3.0])
    close(ft.vmap(lambda x, y: (x, y), in_axes=(0, None), out_axes=(0, None))(X, w)[1], w)


def test_trees_and_prefixes():
    p = {"w": X, "b": X[:, 0]}
    f = lambda p, s: {"y": p["w"] @ p["b"] * s, "b": p["b"]}
    out = ft.vmap(f, in_axes=(0, None), out_axes={"y": -1, "b": 0})(p, 2.0)
    close(out["y"], np.stack([X[k] @ X[k, 0] * 2 for k in range(2)], -1))
    close(out["b"], X[:, 0])
    out = ft.vmap(f, in_axes=({"w": 0, "b": None}, None))({"w": X, "b": X[0, 0]}, 1.0)
    close(out["y"], X @ X[0, 0])
    out = ft.vmap(lambda t: t[0] + t[1][0], in_axes=((0, None),))((X[:, 0], [X[0, 0]]))
    close(out, X[:, 0] + X[0, 0])
    out = ft.vmap(lambda t: t["a"], in_axes=[{"a": 1}])({"a": X})
    close(out, np.moveaxis(X, 1, 0))


@ft.tree.register_pytree_node_class
class Vectors:
    """A node that checks the last size of its array."""

    def __init__(self, array):
        assert getattr(array, "shape", (3,))[-1] == 3
        self.array = array

    def tree_flatten(self):
        return (self.array,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


@pytest.mark.parametrize("out_axes", [0, (0,), [0]])
def test_nodes_that_check_shapes_get_results_with_the_axis_in_its_place(out_axes):
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    mapped = ft.vmap(lambda column: type(out_axes)([Vectors(column)]) if out_axes else Vectors(column), 1, out_axes)(x)
    found = mapped[0] if out_axes else mapped
    np.testing.assert_array_equal(found.array, x.T)


def test_keyword_arguments_are_mapped_over_axis_0():
    close(ft.vmap(lambda x, *, y: x + y)(X, y=X * 2), X * 3)
    close(ft.vmap(lambda x, *, y: x + y, in_axes=None)(X[0], y=X), X[0] + X)


def test_axis_size():
    close(ft.vmap(lambda: 1.0, axis_size=3)(), np.ones(3))
    close(ft.vmap(lambda x: x * 2, in_axes=None, axis_size=2)(X), np.stack([X * 2, X * 2]))
    close(ft.vmap(lambda x: x, axis_size=2)(X), X)


def test_sizes_zero_and_one():
    assert ft.vmap(lambda x: fnp.sin(x).sum())(np.zeros((0, 3))).shape == (0,)
    close(ft.vmap(lambda x: fnp.sin(x).sum())(X[:1, 0]), [np.sin(X[0, 0]).sum()])


def test_nested():
    outer = lambda a, b: a[:, None] * b[None, :]
    a, b = np.arange(3.0), np.arange(4.0) + 1
    table = ft.vmap(ft.vmap(fnp.multiply, in_axes=(None, 0)), in_axes=(0, None))
    close(table(a, b), outer(a, b))
    close(ft.jit(table)(a, b), outer(a, b))
    table = ft.vmap(ft.vmap(fnp.multiply, in_axes=(0, None)), in_axes=(None, 0), out_axes=1)
    close(table(a, b), outer(a, b))
    three = ft.vmap(ft.vmap(ft.vmap(lambda x, y: x * y, (None, 0)), (0, None), out_axes=-1), (0, 1), out_axes=1)
    y = np.arange(10.0).reshape(5, 2)
    close(three(X, y), np.einsum("ai,ijl->ailj", y, X))


def test_closing_over_mapped_values():
    """In the inner map, values from outside carry the hidden axis of the outer map."""
    got = ft.vmap(lambda row: ft.vmap(lambda x: x * row.sum() + row[0])(row))(X[0])
    close(got, X[0] * X[0].sum(1, keepdims=True) + X[0][:, :1])
    got = ft.vmap(lambda x: ft.vmap(lambda y: fnp.dot(x, y), in_axes=1)(X[0].T))(X[0])
    close(got, X[0] @ X[0].T)


def test_per_example_gradients():
    loss = lambda w, x: fnp.sum(fnp.tanh(x @ w) ** 2)
    w = np.linspace(-1, 1, 8).reshape(4, 2)
    t = np.tanh(X[0] @ w)
    each = np.einsum("ni,nj->nij", X[0], 2 * t * (1 - t**2))
    mapped = lambda f: ft.vmap(f, (None, 0))
    slope = ft.grad(loss)
    for f in (mapped(slope), ft.jit(mapped(slope)), mapped(ft.jit(slope)), mapped(ft.grad(ft.jit(loss)))):
        close(f(w, X[0]), each)
    close(ft.grad(lambda w: ft.vmap(loss, (None, 0))(w, X[0]).sum())(w), each.sum(0))


def test_indexing_with_mapped_indices():
    table, index = X[0], np.array([2, 0, 1, 1])
    close(ft.vmap(lambda i: table_at(table, i))(index), table[index])
    close(ft.vmap(lambda row, i: row[i], in_axes=(0, 0))(X[0], index[:3]), X[0][np.arange(3), index[:3]])
    close(ft.vmap(lambda row, i: row.at[i].set(-1.0))(fnp.asarray(X[0]), index[:3]), replaced(X[0], index[:3]))


def table_at(table, i):
    return fnp.asarray(table)[i]


def replaced(x, index):
    out = x.copy()
    out[np.arange(len(index)), index] = -1
    return out


def test_branches_by_where_and_reductions():
    f = lambda x: fnp.where(x.sum() > 2, fnp.max(x), -fnp.min(x))
    close(ft.vmap(f)(X[0]), np.where(X[0].sum(1) > 2, X[0].max(1), -X[0].min(1)))


def test_dtypes_pass_unchanged():
    for dtype in ("int8", "uint64", "bool", "float16", "complex64"):
        x = X[0].astype(dtype)
        out = ft.vmap(lambda x: (x, fnp.sort(x) if x.dtype.kind != "c" else x))(x)
        assert out[0].dtype == dtype and out[1].dtype == dtype


def test_the_name_and_docs_are_kept():
    def fun(x):
        """Docs."""

    assert (ft.vmap(fun).__name__, ft.vmap(fun).__doc__) == ("fun", "Docs.")


@pytest.mark.parametrize("within", [lambda f: f, ft.jit])
def test_numbers_in_inner_functions_stay_weak(within):
    """A mapped or differentiated inner program has the dtypes of the plain one: `where(c, 1, -1)` is a weak int."""
    seen = []

    def f(x):
        sign = ft.jit(lambda x: fnp.where(x < 1, 1, -1))(x)
        seen.append(sign.weak_type)
        return sign * x

    x = fnp.asarray([0.5, 2.0], "float16")
    for g in (ft.vmap(f), lambda x: ft.jvp(ft.vmap(f), (x,), (x,))[1], lambda x: ft.lax.map(f, x), ft.vmap(ft.grad(f))):
        seen.clear()
        with ft.numpy_dtype_promotion("standard"):
            assert within(g)(x).dtype == "float16" and seen and all(seen)
