"""Sparse matrices in the formats COO, CSR and CSC against SciPy, NumPy in float64 and finite differences."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors
from functorch_like.experimental import sparse

FORMATS = {"coo": sparse.COO, "csr": sparse.CSR, "csc": sparse.CSC}
SHAPE, NSE = (7, 5), 12


@pytest.fixture(params=FORMATS)
def kind(request):
    return request.param


def close(found, want, tol=2e-5):
    found = found.todense() if isinstance(found, sparse.JAXSparse) else found
    np.testing.assert_allclose(np.asarray(found, np.float64), want, rtol=tol, atol=tol)


def parts(kind, rows, columns, values, shape, nse):
    """Return the leaves of a matrix with `nse` elements, duplicates included, and wild values in the padding."""
    rows, columns = (np.asarray(x, np.int32) for x in (rows, columns))
    fill = nse - len(rows)
    data = np.append(np.asarray(values, np.float32), np.full(fill, np.nan, np.float32))
    pad = lambda x, value: np.append(x, np.full(fill, value, np.int32)).astype(np.int32)
    if kind == "coo":
        return data, pad(rows, shape[0]), pad(columns, shape[1])
    lines, others, count = (rows, columns, shape[0]) if kind == "csr" else (columns, rows, shape[1])
    order = np.argsort(lines, kind="stable")
    starts = np.searchsorted(lines[order], np.arange(count + 1)).astype(np.int32)
    data[: len(rows)] = data[: len(rows)][order]
    return data, pad(others[order], 0), starts


def dense(rows, columns, values, shape):
    """Return the dense matrix, by the definition of the formats."""
    out = np.zeros(shape)
    np.add.at(out, (np.asarray(rows, int), np.asarray(columns, int)), values)
    return out


def draw(kind, seed=0, shape=SHAPE, nse=NSE, count=10):
    rng = np.random.default_rng(seed)
    rows, columns = (rng.integers(0, n, count) for n in shape)
    values = rng.normal(size=count)
    mat = FORMATS[kind](tuple(map(fnp.asarray, parts(kind, rows, columns, values, shape, nse))), shape=shape)
    return mat, dense(rows, columns, values, shape)


_v, _w = np.linspace(-1, 2, SHAPE[1], dtype="float32"), np.linspace(3, 1, SHAPE[0], dtype="float32")
_tall = np.random.default_rng(2).normal(size=(SHAPE[0], 3)).astype("float32")
_wide = np.random.default_rng(1).normal(size=(SHAPE[1], 4)).astype("float32")
_products = ft.jit(lambda m: [
    m.todense(), m @ _v, _w @ m, m @ _wide, m.T @ _w, m.T.todense(), (m * 2).todense(), m.sum(1).todense(),
    m[1:4].todense(),
])  # fmt: skip
_elements = st.lists(
    st.tuples(st.integers(0, SHAPE[0] - 1), st.integers(0, SHAPE[1] - 1), st.integers(-8, 8)), max_size=NSE
)


@given(st.sampled_from(sorted(FORMATS)), _elements)
def test_any_matrix_means_its_elements(kind, elements):
    rows, columns, values = zip(*elements, strict=True) if elements else ((), (), ())
    want = dense(rows, columns, values, SHAPE)
    mat = FORMATS[kind](parts(kind, rows, columns, values, SHAPE, NSE), shape=SHAPE)
    wanted = [want, want @ _v, _w @ want, want @ _wide, want.T @ _w, want.T, 2 * want, want.sum(1), want[1:4]]
    for found, value in zip(_products(mat), wanted, strict=True):
        close(found, value)


def test_from_dense_to_each_format(kind):
    a = sp.random(*SHAPE, 0.3, dtype=np.float32, random_state=0)
    for x, nse in ((a.toarray(), None), (a.toarray(), a.nnz + 3), (np.zeros(SHAPE, "float32"), None)):
        m = FORMATS[kind].fromdense(x, nse=nse)
        assert m.shape == SHAPE and m.dtype == np.float32 and m.size == 35 and m.ndim == 2 and m.n_dense == 0
        assert m.nse == (np.count_nonzero(x) if nse is None else nse)
        assert repr(m) == f"{kind.upper()}(float32[7, 5], nse={m.nse})"
        close(m, x)
    m = FORMATS[kind].fromdense(a.toarray())
    want = getattr(a, f"to{kind}")()
    if kind == "coo":
        want = a.tocsr().tocoo()
        found = (m.data, m.row, m.col)
        wanted = (want.data, want.row, want.col)
    else:
        found, wanted = (m.data, m.indices, m.indptr), (want.data, want.indices, want.indptr)
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(x, y)
    close(ft.jit(lambda x: FORMATS[kind].fromdense(x, nse=20) @ _v)(a.toarray()), a @ _v)
    close(ft.vmap(lambda x: FORMATS[kind].fromdense(x, nse=20) @ _v)(np.stack([a.toarray(), -a.toarray()])),
          np.stack([a @ _v, -(a @ _v)]))  # fmt: skip


def test_functions_of_each_format():
    for name, cls in (("coo", sparse.COO), ("csr", sparse.CSR)):
        m, want = draw(name)
        of = lambda what, name=name: getattr(sparse, f"{name}_{what}")
        close(of("todense")(m), want)
        close(of("matvec")(m, _v), want @ _v)
        close(of("matvec")(m, _w, transpose=True), want.T @ _w)
        close(of("matvec")(m, _w, True), want.T @ _w)
        close(of("matmat")(m, _wide), want @ _wide)
        close(of("matmat")(m, _tall, transpose=True), want.T @ _tall)
        assert isinstance(of("fromdense")(want), cls) and of("fromdense")(want, index_dtype="int16").dtype == "float64"
        for bad in (_w, _wide):
            with pytest.raises(errors.ShapeError, match=r"give an operand of shape \(5,\)"):
                of("matvec")(m, bad)
        with pytest.raises(errors.ShapeError, match=r"(?s)transposed, .*give an operand of shape \(7, n\)"):
            of("matmat")(m, _wide, transpose=True)
        with pytest.raises(errors.DtypeError, match=f"takes a {name.upper()}"):
            of("matvec")(sparse.eye(3), fnp.ones(3))


def test_transposes_share_their_arrays(kind):
    m, want = draw(kind)
    turned = {"coo": "coo", "csr": "csc", "csc": "csr"}[kind]
    assert type(m.T) is FORMATS[turned] and type(m.T.T) is type(m) and m.T.data is m.data and m.T.shape == SHAPE[::-1]
    close(m.transpose((1, 0)), want.T)
    assert m.transpose((0, -1)) is m
    with pytest.raises(errors.AxisError, match="give"):
        m.transpose((0, 0))
    x = sparse.COO((fnp.ones(2), fnp.asarray([0, 1]), fnp.asarray([1, 0])), shape=(2, 2), rows_sorted=True)
    assert x.T.cols_sorted and not x.T.rows_sorted and x.T.T.rows_sorted


@pytest.mark.parametrize("dtype", ["int32", "bool", "complex64", "float16", "uint8"])
def test_other_dtypes(kind, dtype):
    want = (np.random.default_rng(0).integers(0, 3, SHAPE) * (2 + 1j if dtype == "complex64" else 1)).astype(dtype)
    x = np.arange(SHAPE[1]).astype(dtype)
    m = FORMATS[kind].fromdense(want, index_dtype="uint8" if dtype == "int32" else "int64")
    assert m.dtype == dtype
    np.testing.assert_array_equal(m.todense(), want)
    np.testing.assert_array_equal(m @ x, want @ x)
    assert (m @ fnp.ones(SHAPE[1], "float32")).dtype == ("complex64" if dtype == "complex64" else
                                                         "float16" if dtype == "float32" else "float32")  # fmt: skip


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (1, 1)])
def test_empty_matrices(kind, shape):
    x = np.zeros(shape, "float32")
    for m in (FORMATS[kind].fromdense(x), FORMATS[kind].fromdense(x, nse=2), sparse.empty(shape, sparse_format=kind)):
        close(m @ fnp.ones(shape[1]), np.zeros(shape[0]))
        close(fnp.ones(shape[0]) @ m, np.zeros(shape[1]))
        close(m @ fnp.ones((shape[1], 9)), np.zeros((shape[0], 9)))
        close(m.T, x.T)


def test_new_matrices(kind):
    for n, m, k in ((4, 3, 0), (3, 5, 2), (5, 3, -2), (3, 3, 4)):
        made = sparse.eye(n, m, k, dtype="int32", index_dtype="int64", sparse_format=kind)
        assert type(made) is FORMATS[kind] and made.dtype == np.int32
        assert all(x.dtype == np.int64 for x in ft.tree.leaves(made)[1:])
        np.testing.assert_array_equal(made.todense(), np.eye(n, m, k))
    assert sparse.empty((2, 3), sparse_format=kind).nse == 0
    with pytest.raises(errors.ShapeError, match="one matrix"):
        sparse.empty((2, 3), sparse_format=kind, n_batch=1)
    with pytest.raises(errors.ShapeError, match="one matrix"):
        sparse.empty((2,), sparse_format=kind)


# ----------------------------------------------------------------------------------------------------- transformations
def test_derivatives_of_products(kind):
    m, _ = draw(kind)
    data = np.where(np.isnan(m.data), 0, m.data).astype("float64")
    leaves, structure = ft.tree.flatten(m)
    rebuilt = lambda d: ft.tree.unflatten(structure, [d, *leaves[1:]])
    wide = _wide.astype("float64")
    f = lambda d, v, x: ((rebuilt(d) @ v) * (rebuilt(d).T @ _w.astype("float64"))[:1], rebuilt(d) @ x)
    ft.testing.check_grads(f, (data, _v.astype("float64"), wide), order=2, modes=("fwd", "rev"))


def test_gradients_keep_the_format(kind):
    m, want = draw(kind)
    f = lambda m, x: fnp.sum(fnp.tanh(m @ x))
    value, (dm, dx) = ft.jit(sparse.value_and_grad(f, (0, 1)))(m, _v)
    slope = 1 - np.tanh(want @ _v) ** 2
    close(value, np.tanh(want @ _v).sum())
    close(dx, slope @ want)
    assert type(dm) is type(m)
    mask = want != 0
    sums = sparse.COO if kind == "coo" else type(m)
    assert isinstance(dm, sums)
    ones = ft.tree.unflatten(ft.tree.structure(m), [fnp.ones(NSE), *ft.tree.leaves(m)[1:]])
    close(dm, np.outer(slope, _v) * np.where(mask, np.asarray(ones.todense()), 0))
    for jac in (sparse.jacfwd, sparse.jacrev):
        j = jac(lambda m: m @ _v)(m)
        assert type(j) is type(m) and j.shape == (7, 7, 5) and j.n_batch == 1
        close(j, np.einsum("ij,j,ij,ik->kij", np.asarray(ones.todense()), _v, mask, np.eye(7)))


def test_batches_of_matrices(kind):
    stack = np.stack([draw(kind, seed)[1] for seed in range(3)]).astype("float32")
    many = ft.vmap(lambda x: FORMATS[kind].fromdense(x, nse=11))(stack)
    assert many.shape == (3, *SHAPE) and many.nse == 11 and repr(many).endswith("nse=11, n_batch=1)")
    close(many, stack)
    close(ft.vmap(lambda m, v: m @ v)(many, stack[:, 0]), np.einsum("bij,bj->bi", stack, stack[:, 0]))
    close(ft.vmap(lambda m: m.T @ _w)(many), np.einsum("bij,i->bj", stack, _w))
    m, want = draw(kind)
    close(ft.vmap(lambda x: m @ x, in_axes=1, out_axes=1)(_wide), want @ _wide)
    close(ft.vmap(lambda x: m @ x)(np.stack([_wide, -_wide])), np.stack([want @ _wide, -want @ _wide]))
    close(many.transpose((0, 1, 2)), stack)
    if kind == "coo":
        with pytest.raises(errors.ShapeError, match="batch dimensions"):
            sparse.coo_matvec(many, _v)


def test_they_are_pytrees(kind):
    m, _ = draw(kind)
    names = [".data", ".row", ".col"] if kind == "coo" else [".data", ".indices", ".indptr"]
    assert ft.tree.leaf_paths(ft.tree.structure(m)) == names
    children, static = m.tree_flatten()
    assert repr(type(m).tree_unflatten(static, children)) == repr(m)
    assert repr(type(m).tree_unflatten(static, ("a", "b", "c"))) == f"{kind.upper()}('a', ...)"


def test_sparsify_and_other_operations(kind):
    m, want = draw(kind)
    other, also = draw("csr", 5)
    f = ft.jit(sparse.sparsify(lambda m, x: fnp.tanh(m @ x) + fnp.sum(m * m, axis=1)))
    close(f(m, _v), np.tanh(want @ _v) + (want * want).sum(1))
    close(m @ other.T, want @ also.T)
    close(ft.jit(lambda m, other: (m + other) * 2.0)(m, other), 2 * (want + also))
    close(m[2], want[2])
    close(sparse.todense({"m": m})["m"], want)
    outer = sparse.bcsr_dot_general if kind == "csr" else sparse.sparsify(ft.lax.dot_general)
    if kind != "csr":
        close(outer(m, _v, (((), ()), ((), ()))), np.einsum("ij,k->ijk", want, _v))
        close(outer(_w, m, (((0,), (0,)), ((), ()))), _w @ want)


def test_iterative_solvers_take_them(kind):
    a = np.diag(np.arange(3.0, 33.0)) + np.diag(np.ones(29), 1) + np.diag(np.ones(29), -1)
    m = FORMATS[kind].fromdense(a.astype("float32"))
    b = np.ones(30, "float32")
    close(ft.scipy.sparse.linalg.cg(lambda x: m @ x, b)[0], np.linalg.solve(a, b), 1e-4)
    for method in (ft.scipy.sparse.linalg.cg, ft.scipy.sparse.linalg.gmres, ft.scipy.sparse.linalg.bicgstab):
        close(method(m, b, M=FORMATS[kind].fromdense(np.diag(1 / np.diag(a)).astype("float32")))[0],
              np.linalg.solve(a, b), 1e-4)  # fmt: skip
    first = np.random.default_rng(0).normal(size=(30, 2)).astype("float32")
    close(sparse.linalg.lobpcg_standard(m, first)[0], np.sort(np.linalg.eigvalsh(a))[::-1][:2], 1e-3)


def test_large_products_take_a_kernel(kind):
    a = sp.random(300, 200, 0.05, format="csr", dtype=np.float32, random_state=0)
    rng = np.random.default_rng(0)
    m = FORMATS[kind].fromdense(a.toarray(), nse=a.nnz + 10)
    x, v = rng.normal(size=(200, 16)).astype("float32"), rng.normal(size=200).astype("float32")
    program = ft.jit(lambda m, x: m @ x)
    if kind != "csc":
        assert ("cpu_csr" in program.lower(m, x).as_text()) == (ft.devices()[0].platform == "cpu")
    close(program(m, x), a @ x, 1e-4)
    close(program(m, v), a @ v, 1e-4)
    close(ft.jit(lambda m, x: x @ m)(m.T, x.T), (a @ x).T, 1e-4)
    ct = rng.normal(size=(300, 16)).astype("float32")
    dm, dx = ft.jit(sparse.grad(lambda m, x: fnp.sum((m @ x) * ct), (0, 1)))(m, x)
    close(dx, a.T @ ct, 1e-3)
    close(dm, (ct @ x.T) * (a.toarray() != 0), 1e-3)


def test_long_compressed_matrices():
    """Rows of many elements are numbered by blocks; their number here is no multiple of a block's."""
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, 900, 40003) // 3 * 3, rng.integers(0, 700, 40003)
    a = sp.csr_array((rng.integers(-3, 4, 40003).astype("float32"), (rows, columns)), shape=(1000, 700))
    a.sum_duplicates()
    pad = lambda x: np.append(x, np.zeros(9, x.dtype))
    m = sparse.CSR((pad(a.data), pad(a.indices), a.indptr), shape=a.shape)
    assert m.nse > 2**15 and m.nse % 8
    v, w = (rng.integers(-3, 4, n).astype("float32") for n in (700, 1000))
    f = ft.jit(lambda m, v, w: (m @ v, w @ m, m.T @ w))
    for found, want in zip(f(m, v, w), (a @ v, w @ a, a.T @ w), strict=True):
        np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(m.todense(), a.toarray())
    rows = np.repeat(np.arange(1000), np.diff(a.indptr))
    dm = ft.jit(sparse.grad(lambda m: w @ (m @ v)))(m)
    np.testing.assert_array_equal(dm.data, pad(w[rows] * v[a.indices]))


def test_traced_positions_out_of_bounds_count_as_padding():
    wild = np.array([0, 10**9, 1, -1], np.int32)
    made = ft.jit(lambda row, col: sparse.COO((fnp.ones(4), row, col), shape=(2, 2)))
    close(made(wild, np.zeros(4, np.int32)), [[1, 0], [1, 0]])
    close(ft.jit(lambda row, col: made(row, col) @ fnp.ones(2))(wild, np.zeros(4, np.int32)), [1, 1])
    data, x = np.ones(2**14, "float32"), np.ones((2, 8), "float32")
    columns = np.zeros(2**14, np.int32)
    columns[[0, 7]] = 10**9, -5
    starts = np.array([0, 2**13, 2**14], np.int32)
    product = ft.jit(lambda d, i, p, x: sparse.CSR((d, i, p), shape=(2, 2)) @ x)
    close(product(data, columns, starts, x), np.full((2, 8), [[2**13 - 2], [2**13]]))
    close(product(data, columns, starts, x[:, 0]), [2**13 - 2, 2**13])


# -------------------------------------------------------------------------------------------------------------- errors
def three(*values):
    return tuple(fnp.asarray(v) for v in values)


@pytest.mark.parametrize(
    ("error", "text", "make"),
    [
        (errors.BoundsError, r"indices\[1\] of COO are \[0, 9\], out of bounds of \(2, 3\)",
         lambda: sparse.COO(three([1.0, 2.0], [0, 0], [0, 9]), shape=(2, 3))),
        (errors.ArgumentError, "rows of COO are not in order",
         lambda: sparse.COO(three([1.0, 2.0], [1, 0], [0, 0]), shape=(2, 3), rows_sorted=True)),
        (errors.ArgumentError, "cols of COO are not in order",
         lambda: sparse.COO(three([1.0, 2.0], [1, 0], [1, 0]), shape=(2, 3), cols_sorted=True)),
        (errors.ShapeError, "three vectors", lambda: sparse.COO(three([1.0], [1, 0], [0, 0]), shape=(2, 3))),
        (errors.ShapeError, "is not a matrix", lambda: sparse.COO(three([1.0], [1], [0]), shape=(2, 3, 4))),
        (errors.DtypeError, "row of COO", lambda: sparse.COO(three([1.0], [1.0], [0]), shape=(2, 3))),
        (errors.TreeError, "CSR takes", lambda: sparse.CSR(three([1.0], [1]), shape=(2, 3))),
        (errors.ShapeError, r"fit a CSR of shape \(2, 3\)",
         lambda: sparse.CSR(three([1.0], [1], [0, 1]), shape=(2, 3))),
        (errors.ShapeError, r"(?s)fit a CSC of shape \(2, 3\).*columns \+ 1",
         lambda: sparse.CSC(three([1.0], [1], [0, 1, 1]), shape=(2, 3))),
        (errors.BoundsError, "out of bounds of 3 columns",
         lambda: sparse.CSR(three([1.0], [3], [0, 1, 1]), shape=(2, 3))),
        (errors.BoundsError, "out of bounds of 2 rows",
         lambda: sparse.CSC(three([1.0], [2], [0, 1, 1, 1]), shape=(2, 3))),
        (errors.BoundsError, "column i has", lambda: sparse.CSC(three([1.0], [1], [0, 1, 0, 1]), shape=(2, 3))),
        (errors.ShapeError, "coo_fromdense takes a matrix", lambda: sparse.COO.fromdense(fnp.ones(3))),
        (errors.ShapeError, "csr_fromdense takes a matrix", lambda: sparse.CSR.fromdense(fnp.ones((1, 1, 1)))),
        (errors.ShapeError, "CSC.fromdense takes a matrix", lambda: sparse.CSC.fromdense(fnp.ones(3))),
        (errors.ArgumentError, "too small", lambda: sparse.CSC.fromdense(fnp.ones((2, 2)), nse=3)),
        (errors.ConcretizationError, "pass nse=", lambda: ft.jit(lambda x: sparse.COO.fromdense(x).data)(fnp.eye(3))),
    ],
)  # fmt: skip
def test_bad_input(error, text, make):
    with pytest.raises(error, match=text):
        make()
