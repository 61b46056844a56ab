import math

import numpy as np
import pytest
from support.compare import agrees, ours, same

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.backends.xla import counters

R = np.random.default_rng(0)
X = R.normal(size=(3, 4, 5)).astype(np.float32)
Y = R.normal(size=(4, 5)).astype(np.float32)
V = Y[0]
LARGE = np.arange(32 * 41, dtype=np.float32).reshape(32, 41) % 97

CALLS = [
    *(("reshape", X, s) for s in (-1, (4, -1), (60,), (5, 12), (3, 2, -1), (7,), (-1, -1))), ("ravel", X),
    ("transpose", X), ("transpose", X, (2, 0, 1)), ("transpose", X, (-1, 0, 1)), ("transpose", X, (0, 0, 1)),
    ("swapaxes", X, 0, -1), ("moveaxis", X, 0, -1), ("moveaxis", X, (0, 1), (2, 0)), ("rollaxis", X, 2),
    ("rollaxis", X, 0, 3), ("expand_dims", X, (0, -1)), ("expand_dims", X, 5), ("squeeze", X[:1, :, :1]),
    ("squeeze", X, 1), ("broadcast_to", Y, (2, 4, 5)), ("broadcast_to", Y, (2, 4)), ("broadcast_arrays", X, Y),
    ("broadcast_arrays", X, V[:3]), ("concatenate", [X, X], 1), ("concatenate", [X, X], None), ("concatenate", [X,
    Y], 0), ("stack", [Y, Y], -1), ("stack", [X, Y]), ("vstack", [V, V]), ("hstack", [Y, Y]), ("dstack", [V, V]),
    ("column_stack", [V, V]), ("append", X, V), *(("array_split", X, v, 1) for v in (2, 3, [1, 3], [3, 1], [0, 2,
    9])), ("split", X, 3), ("split", X, 2), ("unstack", X), ("tile", Y, 2), ("tile", Y, (2, 1, 3)), ("repeat", Y,
    3), ("repeat", Y, [1, 0, 2, 3], 0), ("repeat", Y, [1, 2], 0), ("roll", X, 2), ("roll", X, -1, 1), ("roll", X,
    (1, 2), (0, 2)), ("flip", X), ("flip", X, 1), ("fliplr", X), ("flipud", X), *(("rot90", X, k) for k in range(-1,
    4)), ("atleast_2d", V), ("atleast_3d", Y), ("atleast_3d", V), *(("pad", Y, ((1, 2), (0, 3)), m) for m in
    ("constant", "edge", "reflect", "symmetric", "wrap")), *((n, X, k) for n in ("tril", "triu", "diagonal",
    "trace") for k in (-2, 0, 1)), *(("diag", v, k) for v in (V, Y) for k in (-1, 0, 2)), ("meshgrid", np.arange(3),
    np.arange(4)), ("identity", 3), *((n, 3, 4, k) for n in ("eye", "tri") for k in (-1, 0, 2)), ("arange", 5),
    ("arange", 1, 7, 2), ("arange", 1.0, 2.0, 0.3), ("arange", 5, 1, -1), ("arange", 3, 3), ("linspace", 0, 1, 7),
    ("linspace", np.array([0.0, 1]), np.array([2.0, 5]), 4), ("logspace", 0, 2, 5), ("full", (2, 3), 7), ("zeros",
    (2,)), ("ones", 3), ("vdot", Y, Y), ("inner", X, Y), ("outer", Y, V), ("tensordot", X, Y, 2), ("tensordot", X,
    Y, ((2,), (1,))), ("kron", Y, Y), ("vecdot", X, Y), ("sort", X), ("sort", X, 0), ("argsort", X, 1), ("argsort",
    np.array([1.0, np.nan, 0, 1, 0])), ("searchsorted", np.sort(V), Y), ("searchsorted", np.sort(V), np.sort(V),
    "right"), ("take", Y, np.array([3, 0]), 0), ("searchsorted", np.array([0.0, 1, np.nan]), np.array([np.nan, 2,
    1.0])), ("lexsort", [np.array([1, 0, 1, 0]), np.array([3, 3, 1, 1])]), ("take", Y, np.array([-1, 7])),
    ("take_along_axis", X, np.argsort(X, 1), 1), ("take_along_axis", Y, np.array([[0]]), 0), ("nonzero", X > 0),
    ("flatnonzero", Y > 0), ("argwhere", Y > 0), *(("trace", A, k) for A in (LARGE, LARGE.T) for k in (-31, 0, 2, 99)),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS, ids=[f"{c[0]}-{k}" for k, c in enumerate(CALLS)])
def test_as_numpy(call):
    agrees(*call)


PRODUCTS = [
    ((3, 4), (4, 5)), ((4,), (4,)), ((4,), (4, 5)), ((3, 4), (4,)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)),
    ((1, 3, 4), (6, 4, 5)), ((7, 1, 3, 4), (6, 4, 5)), ((7, 1, 3, 4), (1, 6, 4, 5)), ((4,), (2, 4, 5)), ((2, 3, 4),
    (4,)), ((3, 4), (2, 4, 5)), ((0, 4), (4, 2)), ((3, 4), (3, 4)), ((2, 7, 3, 4), (7, 4, 5)), ((), (3,)),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), PRODUCTS)
def test_products(left, right):
    a, b = R.normal(size=left), R.normal(size=right)
    agrees("matmul", a, b)
    agrees("dot", a, b)


S = Y[:, :4]
EINSUMS = [
    ("ijk->", X), ("ijk->ki", X), ("ijk,jk->i", X, Y), ("ijk,jk", X, Y), ("...jk,jk->...", X, Y), ("...,...", X, Y),
    ("i...->...", X), ("ii->i", S), ("ii", S), ("iij->j", np.stack([S] * 4)), ("ij,jk,kl->il", S, S, Y),
    ("ij,ij->ij", Y[:1], Y), ("i,j->ij", V, V), ("bij,bjk->bik", X, X.swapaxes(1, 2)), ("ij,kl,mj->ikm", Y, Y, Y),
    ("ji", Y), ("b a,a->b", Y, V), ("ij,k->k", Y, V), ("ij,kj->ki", Y, Y[:2]), ("abc,dc->dab", X, X[0]),
    ("bij,bkj->bki", X, X[:, :2]), ("ij,jk,lk->li", S, Y, Y[:2]),
]  # fmt: skip


@pytest.mark.parametrize("call", EINSUMS, ids=[c[0] for c in EINSUMS])
@pytest.mark.parametrize("optimize", ["auto", False])
def test_einsum(call, optimize):
    text, *arrays = call
    same(fnp.einsum(text, *ours(arrays), optimize=optimize), np.einsum(text, *arrays))


@pytest.mark.parametrize("call", [("ij,kj->ki", Y, Y[:2]), ("abc,dc->dab", X, X[0]), ("bij,bkj->bki", X, X[:, :2])])
def test_einsum_exchanges_operands_in_place_of_a_transposition(call):
    text, *arrays = call
    f = lambda *arrays: fnp.einsum(text, *arrays, precision=("default", "highest"))
    (product,) = ft.make_jaxpr(f)(*arrays).equations
    assert product.prim.name == "dot_general"
    assert [str(p) for p in product.params["precision"]] == ["highest", "default"]
    ft.testing.check_grads(f, arrays, order=2)


@pytest.mark.parametrize("text", ["ij->ijk", "i->i", "ij,jk", "ij->ii", "i+j->i", "ij->i->j"])
def test_einsum_refuses(text):
    with pytest.raises(ValueError, match="einsum"):
        fnp.einsum(text, ours(Y))


def test_einsum_lists_of_labels():
    x, y = ours(Y), ours(Y.T)
    same(fnp.einsum(x, ["row", "k"], y, ["k", "column"], ["column", "row"]), (Y @ Y.T).T)
    same(fnp.einsum(x, ["q", "b"], y, ["b", "a"]), (Y @ Y.T).T)  # labels in order
    same(fnp.einsum(x, [50, 2], y, [2, 1]), (Y @ Y.T).T)
    same(fnp.einsum(x, [..., "k"], y, ["k", 3], [..., 3]), Y @ Y.T)
    with pytest.raises(ft.errors.ArgumentError, match="have no order"):
        fnp.einsum(x, ["a", "b"], y, ["b", 0])
    with pytest.raises(ft.errors.ArgumentError, match="'q' of the result is of no operand"):
        fnp.einsum(x, ["a", "b"], y, ["b", "c"], ["q"])


def test_einsum_lists_of_ints():
    same(fnp.einsum(ours(Y), [0, 1], ours(Y), [2, 1], [0, 2]), Y @ Y.T)


@pytest.mark.parametrize("ord", [None, 1, 2, 3, 0, np.inf, -np.inf, "fro"])
def test_norms(ord):
    if ord != "fro":
        agrees("linalg.norm", V, ord)
        agrees("linalg.norm", X, ord, axis=1, keepdims=True)
    if ord not in (2, 3, 0):
        agrees("linalg.norm", X, ord, axis=(0, 2))


def test_arrays_from_anything():
    x = fnp.ones(2)
    assert fnp.asarray([x, x * 2]).tolist() == [[1, 1], [2, 2]]
    assert ft.jit(lambda a: fnp.asarray([a, 2.0, a]))(3.0).tolist() == [3, 2, 3]
    assert fnp.asarray(np.ones(2)).dtype == np.float64
    assert fnp.asarray([1, 2.5]).dtype == np.float32
    assert fnp.asarray([True]).dtype == np.bool_
    assert fnp.asarray([]).dtype == np.float32
    assert fnp.array([1.0], ndmin=3).shape == (1, 1, 1)
    assert fnp.asarray(x) is x
    host = np.zeros(64, np.float32)
    kept = fnp.asarray(host)
    host[:] = 1
    assert not kept.any()
    for bad in ("abc", [object()], [[1], [1, 2]], {"a": 1}):
        with pytest.raises((TypeError, ValueError)):
            fnp.asarray(bad)


class OfAnotherLibrary:
    """An iterable shape that is not a sequence, like those of TensorFlow Probability."""

    def __init__(self, sizes):
        self.sizes = sizes

    def __iter__(self):
        return iter(self.sizes)


@pytest.mark.parametrize("of", [np.array, fnp.array, OfAnotherLibrary])
def test_sizes_from_anything_that_holds_ints(of):
    x = np.arange(2.0)
    assert fnp.reshape(x, of([1, 2])).shape == fnp.broadcast_to(x, of([1, 2])).shape == fnp.zeros(of([1, 2])).shape
    np.testing.assert_array_equal(fnp.tile(x, of([3, 2])), np.tile(x, (3, 2)))
    np.testing.assert_array_equal(fnp.partition(x[::-1], of([0, 1])), x)
    assert fnp.reshape(x, np.array(2)).shape == (2,)


def test_traced_shapes_are_refused():
    for f in (lambda n: fnp.zeros(n), lambda n: fnp.arange(n), lambda n: fnp.ones(4).reshape(n, 2)):
        with pytest.raises(TypeError, match="static_argnums"):
            ft.jit(f)(2)


def test_staged_sequences_equal_eager_ones():
    for f in (
        lambda: fnp.arange(3, 100, 7),
        lambda: fnp.arange(40),
        lambda: fnp.eye(20, k=2),
        lambda: fnp.linspace(0, 1, 33),
        lambda: fnp.full((30,), 2.5),
    ):
        assert np.array_equal(np.asarray(ft.jit(f)()), np.asarray(f()))


def test_linspace_ends_at_the_given_end():
    """XLA divides by a constant n by multiplying with its rounded reciprocal, and n * (1 / n) may differ from 1."""
    for n in (2, 10, 14, 199):
        assert float(fnp.linspace(np.float64(0.1), np.float64(1.9), n)[-1]) == 1.9


def test_nonzero_of_known_size():
    x = fnp.asarray([0, 3, 0, 5])
    assert ft.jit(lambda x: fnp.nonzero(x, size=3, fill_value=-1))(x)[0].tolist() == [1, 3, -1]
    for fill, kind in ((1, "int32"), (1.0, "float32"), (True, "int32"), (np.nan, "float32"), (2.5, "float32")):
        got = fnp.nonzero(x, size=3, fill_value=fill)[0]
        np.testing.assert_array_equal(got, [1, 3, fill])
        assert got.dtype == kind and got.weak_type == (kind == "float32")
    rows, columns = fnp.nonzero(fnp.eye(1), size=2, fill_value=(-1, 0.5))
    assert (rows.dtype, columns.dtype) == ("int32", "float32") and columns.tolist() == [0, 0.5]
    with pytest.raises(TypeError, match="size="):
        ft.jit(fnp.nonzero)(x)


@pytest.mark.parametrize("parts", [lambda x: fnp.split(x, 4), fnp.unstack, lambda x: fnp.array_split(x, [1, 1, 3])])
def test_derivatives_of_parts_are_joined_not_added_up(parts):
    x = fnp.arange(4.0)
    f = lambda x: sum(fnp.sum(p) * k for k, p in enumerate(parts(x)))
    assert ft.grad(f)(x).tolist() == [sum(k for k, p in enumerate(parts(x)) if v in np.ravel(p)) for v in range(4)]
    text = str(ft.make_jaxpr(ft.grad(f))(x))
    assert "concatenate" in text and "pad(" not in text


@pytest.mark.parametrize(
    "same",
    [
        lambda x: fnp.broadcast_to(x, x.shape), lambda x: fnp.broadcast_arrays(x, x)[0],
        lambda x: fnp.moveaxis(x, 0, 0), lambda x: fnp.swapaxes(x, 1, 1), lambda x: ft.lax.reshape(x, x.shape),
        lambda x: ft.lax.expand_dims(x, ()), lambda x: ft.lax.convert_element_type(x, x.dtype),
    ],
)  # fmt: skip
def test_functions_with_nothing_to_do_return_arrays(same):
    x = np.ones((2, 3), np.float32)
    out = same(x)
    assert isinstance(out, ft.Array) and (out == x).all()
    x[0, 0] = 2  # does not change the array
    assert out[0, 0] == 1


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 9])
def test_parts_that_differ_in_size(parts):
    x = np.arange(14, dtype=np.float32).reshape(2, 7)
    f = lambda x: fnp.array_split(x, parts, axis=1)
    before = counters.misses
    ft.jit(f).trace(x)
    assert counters.misses == before  # C++ is not called for a tracer
    for got in (f(x), ft.jit(f)(x)):
        for a, b in zip(got, np.array_split(x, parts, axis=1), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "places", [0, -1, 5, slice(2, 9, 3), slice(0, 40), [1, 2, 3, 20, 21], list(range(0, 40, 2)), []]
)
@pytest.mark.parametrize(("shape", "axis"), [((40,), 0), ((3, 40, 2), 1), ((4, 10), None)])
def test_traced_arrays_lose_and_gain_elements_at_known_positions(places, shape, axis):
    x = np.arange(math.prod(shape), dtype="float32").reshape(shape)
    got = ft.jit(lambda x: fnp.delete(x, places, axis))(x)
    np.testing.assert_array_equal(got, np.delete(x, places, axis))
    slope = ft.grad(lambda x: fnp.sum(fnp.delete(x, places, axis) ** 2))(x)
    kept = np.isin(x, np.delete(x, places, axis))
    np.testing.assert_array_equal(slope, np.where(kept, 2 * x, 0))
    got = ft.jit(lambda x: fnp.insert(x, places, -1, axis))(x)
    np.testing.assert_array_equal(got, np.insert(x, places, -1, axis))


@pytest.mark.parametrize("dtype", ["float32", "bool", "int64", "complex64"])
@pytest.mark.parametrize(
    ("shape", "reps"),
    [((50,), 100), ((50,), 17), ((3, 40), (2, 33)), ((40,), (3, 2, 5)), ((64, 1), (2, 64)), ((0, 50), 90)],
)
def test_many_copies_side_by_side(shape, reps, dtype):
    x = (np.arange(math.prod(shape)).reshape(shape) % 7 - 2).astype(dtype)
    f = ft.jit(lambda x: fnp.tile(x, reps))
    np.testing.assert_array_equal(f(x), np.tile(x, reps))
    f.optimised()
    np.testing.assert_array_equal(f(x), np.tile(x, reps))
    rows = np.stack([x, x[::-1]])
    want = [np.tile(x, reps), np.tile(x[::-1], reps)]
    for axis in (0, x.ndim):
        np.testing.assert_array_equal(ft.vmap(f, in_axes=axis)(np.moveaxis(rows, 0, axis)), want)


def test_the_trace_of_a_large_matrix_reads_its_diagonal():
    stack = np.stack([LARGE, -LARGE]).astype(np.float64)
    same(fnp.trace(stack, 3, -1, 1), np.trace(stack, 3, 2, 1))
    gradient = ft.grad(lambda x: fnp.sum(fnp.square(fnp.trace(x, 2, 1, 2))))(stack)
    same(gradient, 2 * np.trace(stack, 2, 1, 2)[:, None, None] * np.eye(32, 41, 2))
    assert "select" not in str(ft.make_jaxpr(fnp.trace)(LARGE))


def test_questions_about_shapes_take_a_shape_without_data():
    """As in JAX; libraries print tables of what `eval_shape` returns."""
    for made in (ft.eval_shape(lambda: fnp.ones((2, 3), "int8")), ft.ShapeDtypeStruct((2, 3), "int8")):
        assert (fnp.shape(made), fnp.ndim(made), fnp.size(made), fnp.size(made, 1)) == ((2, 3), 2, 6, 3)
