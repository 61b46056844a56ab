"""Sparse arrays against SciPy and against dense NumPy arrays in float64."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, lax
from functorch_like.experimental import sparse

SHAPES = [(5,), (4, 6), (3, 4, 5), (2, 3, 4, 3)]


def meaning(mat):
    """Return the dense array, by the definition of the format."""
    data, indices = np.asarray(mat.data, np.float64), np.asarray(mat.indices)
    shape, n = mat.shape, mat.n_batch
    out = np.zeros(shape)
    data = np.broadcast_to(data, (*shape[:n], *data.shape[n:]))
    indices = np.broadcast_to(indices, (*shape[:n], *indices.shape[n:]))
    sizes = shape[n : n + indices.shape[-1]]
    for at in np.ndindex(*shape[:n]):
        for value, index in zip(data[at], indices[at], strict=True):
            if all(i < k for i, k in zip(index, sizes, strict=True)):
                out[at][tuple(index)] += value
    return out


def draw(rng, shape, n_batch=0, n_dense=0, nse=5, shared=None):
    """Return a BCOO with duplicates and padding; all batches share the part named by `shared`, "data" or "indices"."""
    n_sparse = len(shape) - n_batch - n_dense
    batch, dense, sizes = shape[:n_batch], shape[len(shape) - n_dense :], shape[n_batch : n_batch + n_sparse]
    ones = (1,) * n_batch
    data = rng.normal(size=(*(ones if shared == "data" else batch), nse, *dense)).astype("float32")
    index_batch = ones if shared == "indices" else batch
    indices = np.stack([rng.integers(0, k, (*index_batch, nse)) for k in sizes], -1).astype("int32")
    indices[..., -1, :] = sizes  # padding, whose values are not zeros
    return sparse.BCOO((fnp.asarray(data), fnp.asarray(indices)), shape=shape)


def close(found, want):
    found = found.todense() if isinstance(found, sparse.JAXSparse) else found
    np.testing.assert_allclose(np.asarray(found, np.float64), want, rtol=2e-5, atol=2e-5)


LAYOUTS = [
    ((4, 6), 0, 0, None), ((3, 4, 5), 0, 1, None), ((2, 3, 4, 3), 1, 1, None),
    ((3, 4, 5), 1, 0, "indices"), ((2, 3, 4), 2, 0, "data"),
]  # fmt: skip


@pytest.fixture(params=LAYOUTS, ids=lambda p: f"{p[0]}-{p[1]}-{p[2]}-{p[3]}".replace(" ", ""))
def mat(request):
    shape, n_batch, n_dense, shared = request.param
    return draw(np.random.default_rng(0), shape, n_batch, n_dense, shared=shared)


def check(mat, cases):
    """Compare functions of a sparse array, in one compiled program, with functions of the dense one."""
    found = ft.jit(lambda m: [sparse.todense(f(m)) for f, _ in cases])(mat)
    want = meaning(mat)
    for k, ((_, g), out) in enumerate(zip(cases, found, strict=True)):
        np.testing.assert_allclose(np.asarray(out, np.float64), g(want), rtol=2e-5, atol=2e-5, err_msg=f"case {k}")


def test_elements(mat):
    rows = np.random.default_rng(1).normal(size=mat.shape[1:]).astype("float32")
    whole = np.random.default_rng(2).normal(size=mat.shape).astype("float32")
    same = lambda w: w
    cases = [(lambda m: m, same), (lambda m: m.sort_indices(), same), (lambda m: m.sum_duplicates(), same)]
    cases += [(f, f) for f in (
        abs, lambda m: -m * 2.0, lambda m: m / 4, lambda m: m**2, lambda m: m + m, lambda m: m * m, lambda m: m.sum(),
        lambda m: m * rows, lambda m: rows * m, lambda m: m + whole, lambda m: whole - m,
    )]  # fmt: skip
    check(mat, cases)


def test_sums_over_every_set_of_axes(mat):
    axes = [c for n in range(1, mat.ndim + 1) for c in itertools.combinations(range(mat.ndim), n)]
    check(mat, [(f, f) for f in (lambda m, a=a: m.sum(a) for a in axes)])


def test_slices(mat):
    items = [
        (slice(1, 3),), (..., slice(None, None, 2)), (slice(None, None, -1),), (1,), (..., -1), (slice(2, 2),),
        (None,), (slice(None), 1, None),
    ]  # fmt: skip
    cases = [(f, f) for f in (lambda m, i=i: m[i] for i in items)]
    starts, sizes = fnp.asarray([1] * mat.ndim), [2] * mat.ndim
    at = tuple(slice(min(1, n - 2), min(1, n - 2) + 2) for n in mat.shape)
    check(mat, [*cases, (lambda m: sparse.bcoo_dynamic_slice(m, starts, sizes), lambda w: w[at])])


def test_axes_moved_added_and_joined(mat):
    kinds = [mat.layout.kind(a) for a in range(mat.ndim)]
    orders = [o for o in itertools.permutations(range(mat.ndim)) if [kinds[a] for a in o] == kinds]
    cases = [(f, f) for f in (lambda m, o=o: m.transpose(o) for o in orders)]
    for axis in range(mat.ndim):
        places = [k + (k >= axis) for k in range(mat.ndim)]
        shape, one = ((*mat.shape[:axis], n, *mat.shape[axis:]) for n in (3, 1))
        widen = lambda m, shape=shape, places=places: sparse.bcoo_broadcast_in_dim(
            m, shape=shape, broadcast_dimensions=places)  # fmt: skip
        cases += [
            (lambda m, a=axis: sparse.bcoo_rev(m, (a,)), lambda w, a=axis: np.flip(w, a)),
            (lambda m, a=axis: sparse.bcoo_concatenate([m, m * 2], dimension=a),
             lambda w, a=axis: np.concatenate([w, 2 * w], a)),
            (widen, lambda w, a=axis, s=shape: np.broadcast_to(np.expand_dims(w, a), s)),
            (lambda m, a=axis, s=one, f=widen: sparse.bcoo_squeeze(f(m, s), dimensions=(a,)), lambda w: w),
        ]  # fmt: skip
    check(mat, cases)


def test_layouts_change_without_changing_the_array(mat):
    layouts = [(b, d) for b in range(mat.ndim) for d in range(mat.ndim - b)]
    changed = lambda m, b, d: m.update_layout(n_batch=b, n_dense=d, on_inefficient=None)
    assert [changed(mat, *x).layout[::2] for x in layouts[-2:]] == layouts[-2:]
    check(mat, [(lambda m, x=x: changed(m, *x), lambda w: w) for x in layouts])
    if mat.n_batch + mat.n_dense < mat.ndim - 1:
        with pytest.raises(sparse.SparseEfficiencyError, match="may store many zeros"):
            mat.update_layout(n_batch=mat.n_batch + 1)
        with pytest.warns(sparse.SparseEfficiencyWarning):
            mat.update_layout(n_dense=mat.n_dense + 1, on_inefficient="warn")


def test_products_over_every_pair_of_axes(mat):
    """Contracting an axis of each kind, with and without a batch axis of the product, on either side."""
    rng, cases = np.random.default_rng(2), []
    left = "abcd"[: mat.ndim]
    sizes = dict(zip(left, mat.shape, strict=True)) | {"x": 2}
    for axis in range(mat.ndim):
        for batch in [None, *(a for a in range(mat.ndim) if a != axis)]:
            lead = "" if batch is None else left[batch]
            other = "x" + left[axis] + lead
            dense = rng.normal(size=[sizes[c] for c in other]).astype("float32")
            pairs = ([axis], [1]), ([] if batch is None else [batch], [] if batch is None else [2])
            swapped = tuple((b, a) for a, b in pairs)
            rest = "".join(c for c in left if c not in (left[axis], lead))
            of = lambda out, other=other, d=dense: lambda w: np.einsum(f"{left},{other}->{out}", w, d)
            cases += [
                (lambda m, d=dense, n=pairs: sparse.bcoo_dot_general(m, d, dimension_numbers=n), of(lead + rest + "x")),
                (lambda m, d=dense, n=swapped: sparse.bcoo_dot_general(d, m, dimension_numbers=n),
                 of(lead + "x" + rest)),
            ]  # fmt: skip
    check(mat, cases)


def test_products_over_two_axes_and_over_none():
    mat = draw(np.random.default_rng(3), (3, 4, 5), n_dense=1)
    want = meaning(mat)
    dense = np.random.default_rng(4).normal(size=(5, 2, 4)).astype("float32")
    close(sparse.bcoo_dot_general(mat, dense, dimension_numbers=(((1, 2), (2, 0)), ((), ()))),
          np.einsum("abc,cxb->ax", want, dense))  # fmt: skip
    close(sparse.bcoo_dot_general(mat, dense, dimension_numbers=(((), ()), ((), ()))),
          np.einsum("abc,xyz->abcxyz", want, dense))  # fmt: skip


def test_dot_general_promotes_and_takes_a_dtype():
    m = sparse.BCOO.fromdense(fnp.asarray([[1, 0], [0, 3]]))
    assert (m @ fnp.ones(2)).dtype == np.float32
    out = sparse.bcoo_dot_general(m, fnp.ones(2, "int32"), dimension_numbers=(((1,), (0,)), ((), ())),
                                  preferred_element_type="float64")  # fmt: skip
    assert out.dtype == np.float64 and out.tolist() == [1, 3]


# ------------------------------------------------------------------------------------------------------------- SciPy
def pair(seed, n=40, m=30, density=0.1):
    return sp.random(n, m, density, format="csr", dtype=np.float32, random_state=seed)


@pytest.mark.parametrize("cls", [sparse.BCOO, sparse.BCSR])
def test_matrices_of_scipy(cls):
    a, b = pair(0), pair(1, 30, 20)
    x, y = cls.from_scipy_sparse(a), cls.from_scipy_sparse(b)
    rng = np.random.default_rng(0)
    v, w, big = (rng.normal(size=s).astype("float32") for s in (30, 40, (30, 7)))
    cases = [
        (lambda m: m @ v, a @ v), (lambda m: w @ m, w @ a), (lambda m: m @ big, a @ big),
        (lambda m: big.T @ m.T, (a @ big).T), (lambda m: m.T, a.T.toarray()),
        (lambda m: m.sum(0), np.asarray(a.sum(0)).ravel()), (lambda m: m * 3 - m, 2 * a.toarray()),
        (lambda m: m[5:9, ::2], a[5:9, ::2].toarray()),
    ]  # fmt: skip
    outs = ft.jit(lambda m: [sparse.todense(f(m)) for f, _ in cases])(x)
    for (f, want), out in zip(cases, outs, strict=True):
        close(out, want)
        close(f(x), want)
    close(x @ y, (a @ b).toarray())
    close(ft.jit(lambda p, q: p @ q)(x[:5].sum_duplicates(), y), (a[:5] @ b).toarray())
    back = x.to_scipy_sparse()
    assert back.format == ("coo" if cls is sparse.BCOO else "csr") and (abs(back - a)).max() == 0
    assert abs(cls.from_scipy_sparse(a.tocsc()).to_scipy_sparse() - a).max() == 0


def test_bcsr():
    a = pair(2)
    m = sparse.BCSR((fnp.asarray(a.data), fnp.asarray(a.indices), fnp.asarray(a.indptr)), shape=a.shape)
    close(m, a.toarray())
    close(sparse.BCSR.from_bcoo(m.to_bcoo()), a.toarray())
    close(sparse.BCSR.fromdense(fnp.asarray(a.toarray()), nse=a.nnz + 3), a.toarray())
    close(sparse.bcsr_concatenate([m, m], dimension=1), np.concatenate([a.toarray()] * 2, 1))
    close(sparse.bcsr_extract(m.indices, m.indptr, a.toarray()), a.data)
    stack = np.stack([a.toarray(), 2 * a.toarray(), 0 * a.toarray()])
    many = sparse.BCSR.fromdense(fnp.asarray(stack), n_batch=1)
    close(many, stack)
    close(many.to_bcoo(), stack)
    v = np.random.default_rng(0).normal(size=30).astype("float32")
    close(ft.vmap(lambda m: m @ v)(many), stack @ v)
    wide = sparse.bcsr_broadcast_in_dim(m, shape=(4, *m.shape), broadcast_dimensions=(1, 2))
    close(wide, np.broadcast_to(a.toarray(), (4, *a.shape)))


# -------------------------------------------------------------------------------------------------- transformations
def test_they_are_pytrees():
    m = sparse.BCOO.fromdense(fnp.asarray([[0.0, 1.0], [2.0, 0.0]]))
    assert ft.tree.leaf_paths(ft.tree.structure(m)) == [".data", ".indices"]
    close(ft.jit(lambda m: m)(m), np.asarray(m.todense()))
    assert m.block_until_ready() is m


def test_vmap_and_scan_take_batches():
    rng = np.random.default_rng(0)
    stack = rng.normal(size=(4, 3, 5)) * (rng.random((4, 3, 5)) < 0.4)
    m = sparse.BCOO.fromdense(fnp.asarray(stack.astype("float32")), n_batch=1)
    v = rng.normal(size=(4, 5)).astype("float32")
    close(ft.vmap(lambda m, v: m @ v)(m, v), np.einsum("bij,bj->bi", stack, v))
    out = ft.vmap(lambda m: m * 2)(m)
    assert out.shape == (4, 3, 5) and out.n_batch == 1
    close(out, 2 * stack)
    last, _ = lax.scan(lambda c, m: (c + m @ v[0], None), fnp.zeros(3), m)
    close(last, np.einsum("bij,j->i", stack, v[0]))


def test_gradients_by_values():
    rng = np.random.default_rng(0)
    m, x = draw(rng, (4, 3), nse=6), rng.normal(size=3).astype("float32")
    f = lambda m, x: fnp.sum(fnp.tanh(m @ x))
    value, (dm, dx) = sparse.value_and_grad(f, (0, 1))(m, x)
    dense, rows = meaning(m), np.asarray(m.indices)
    slope = 1 - np.tanh(dense @ x) ** 2
    want = np.append(slope[rows[:-1, 0]] * x[rows[:-1, 1]], 0)  # none for padding
    close(value, np.tanh(dense @ x).sum())
    assert isinstance(dm, sparse.BCOO) and dm.indices is m.indices
    close(dm.data, want)
    close(dx, slope @ dense)
    close(ft.jit(sparse.grad(f))(m, x).data, want)
    close(ft.grad(lambda d: f(m._with(d), x))(m.data), want)
    close(sparse.grad(lambda tree: f(tree["m"], x))({"m": m})["m"].data, want)
    for jac in (sparse.jacfwd, sparse.jacrev):
        j = jac(lambda m: m @ x)(m)
        assert j.shape == (4, 4, 3) and j.n_batch == 1
        expected = np.zeros((4, 6))
        for k, (i, c) in enumerate(rows[:-1]):
            expected[i, k] = x[c]
        close(j.data, expected)


def test_derivatives_of_products_by_finite_differences():
    rng = np.random.default_rng(1)
    for swapped in (False, True):
        m = draw(rng, (4, 3, 2), n_dense=1, nse=5).astype("float64")
        x = rng.normal(size=(3, 2, 2))
        pairs = ((1, 2), (0, 1)), ((), ())

        def f(d, x, m=m, swapped=swapped, pairs=pairs):
            a, b = (x, m._with(d)) if swapped else (m._with(d), x)
            numbers = ((pairs[0][1], pairs[0][0]), pairs[1]) if swapped else pairs
            return sparse.bcoo_dot_general(a, b, dimension_numbers=numbers)

        ft.testing.check_grads(f, (m.data, fnp.asarray(x)), order=2, modes=("fwd", "rev"))


def test_large_products_take_a_kernel_and_keep_its_reads_in_bounds():
    a, rng = pair(3, 200, 100), np.random.default_rng(0)
    x = rng.normal(size=(100, 16)).astype("float32")
    m = sparse.BCOO.from_scipy_sparse(a)
    program = ft.jit(lambda m, x: m @ x)
    assert ("cpu_csr" in program.lower(m, x).as_text()) == (ft.devices()[0].platform == "cpu")
    close(program(m, x), a @ x)
    close(program(sparse.BCSR.from_scipy_sparse(a), x), a @ x)
    ct = rng.normal(size=(200, 16)).astype("float32")
    dm, dx = ft.jit(sparse.grad(lambda m, x: fnp.sum((m @ x) * ct), (0, 1)))(m, x)
    rows, columns = np.asarray(m.indices).T
    close(dm.data, (ct[rows] * x[columns]).sum(1))
    close(dx, a.T @ ct)
    close(ft.vmap(lambda x: m @ x)(np.stack([x, 2 * x])), np.stack([a @ x, 2 * (a @ x)]))
    # Traced indices are not checked: those out of bounds count as padding.
    wild = ft.jit(lambda d, i: sparse.BCOO((d, i), shape=a.shape, indices_sorted=True) @ x)
    indices = np.asarray(m.indices).copy()
    indices[-5:] = [[199, 10**9], [199, -(10**9)], [10**9, 0], [10**9, 10**9], [-1, -1]]
    want = sp.coo_array((a.data[:-5], indices[:-5].T), a.shape) @ x
    close(wild(np.append(a.data[:-1], np.float32(np.nan)), indices), want)


# ------------------------------------------------------------------------------------------------------------ sparsify
def test_sparsify_follows_control_flow():
    rng = np.random.default_rng(0)
    m, x = draw(rng, (4, 4)), rng.normal(size=4).astype("float32")
    want = meaning(m)

    def power(m, x):
        return lax.fori_loop(0, 3, lambda i, v: m @ v, x)

    def scanned(m, x):
        return lax.scan(lambda v, s: (m @ v * s, fnp.sum(v)), x, fnp.asarray([1.0, 2.0]))[0]

    def chosen(m, flag):
        return lax.cond(flag, lambda m: m * 2, lambda m: -m, m)

    cube = np.linalg.matrix_power(want, 3) @ x
    for wrap in (lambda f: f, ft.jit):
        close(wrap(sparse.sparsify(power))(m, x), cube)
        close(wrap(sparse.sparsify(ft.jit(power)))(m, x), cube)
        close(wrap(sparse.sparsify(scanned))(m, x), 2 * want @ want @ x)
        close(wrap(sparse.sparsify(chosen))(m, True), 2 * want)
        close(wrap(sparse.sparsify(chosen))(m, False), -want)
    close(ft.grad(lambda x: fnp.sum(sparse.sparsify(scanned)(m, x)))(x), (2 * want @ want).sum(0))
    close(sparse.sparsify(ft.grad(lambda x, m: fnp.sum(power(m, x))))(x, m), np.linalg.matrix_power(want, 3).sum(0))
    close(sparse.sparsify(ft.vmap(lambda v, m: m @ v, in_axes=(0, None)))(np.stack([x, 2 * x]), m),
          np.stack([want @ x, 2 * want @ x]))  # fmt: skip


def test_sparsify_keeps_functions_that_keep_zero():
    m = draw(np.random.default_rng(0), (4, 5))
    want = meaning(m)
    functions = [
        (fnp.sin, np.sin), (fnp.expm1, np.expm1), (fnp.sign, np.sign),
        (lambda x: fnp.maximum(x, 0.0), lambda x: np.maximum(x, 0)),
        (lambda x: x > 0, lambda x: x > 0), (fnp.square, np.square),
    ]  # fmt: skip
    for f, g in functions:
        out = sparse.sparsify(f)(m)
        assert isinstance(out, sparse.BCOO)
        close(out, g(want))
    for f in (fnp.cos, fnp.exp, lambda x: x + 1.0, lambda x: x == 0, lambda x: 1 / x, lambda x: fnp.maximum(x, 1.0)):
        with pytest.raises(errors.UnsupportedError, match="dense"):
            sparse.sparsify(f)(m)
    with pytest.raises(errors.UnsupportedError, match="sort has no rule for BCOO"):
        sparse.sparsify(fnp.sort)(m)


def test_broadcast_factors_are_not_made():
    """Factors of a matrix of 10**12 elements are not broadcast to its shape."""
    m = sparse.BCOO((fnp.asarray([2.0, 3.0]), fnp.asarray([[5, 7], [10**6 - 1, 0]])), shape=(10**6, 10**6))
    row = fnp.arange(10**6, dtype="float32")
    close((m * 3 / 2).data, [3.0, 4.5])
    close((m * row).data, [14.0, 0.0])
    close((m * row[:, None]).data, [10.0, 3.0 * (10**6 - 1)])
    close(m.reshape(10**12)[5 * 10**6 + 7 : 5 * 10**6 + 8].todense(), [2.0])


# ------------------------------------------------------------------------------------------------------------ creation
def test_new_arrays():
    close(sparse.eye(3, 4, k=-1), np.eye(3, 4, k=-1))
    close(sparse.eye(3, 4, k=5), np.eye(3, 4, k=5))
    close(sparse.eye(3, sparse_format="bcsr", dtype="float64"), np.eye(3))
    close(sparse.empty((2, 3), nse=2), np.zeros((2, 3)))
    m = sparse.random_bcoo(ft.random.key(0), (3, 4, 5), nse=0.5, n_batch=1, sorted_indices=True)
    sparse.BCOO((m.data, m.indices), shape=m.shape, indices_sorted=True, unique_indices=True)  # the promises hold
    assert m.nse == 10
    dense = np.asarray(m.todense()) + 1
    close(sparse.bcoo_extract(m, dense).data, np.ones((3, 10)) + np.asarray(m.data))
    a, b = np.random.default_rng(0).normal(size=(2, 4, 4)).astype("float32")
    at = np.array([[0, 1], [3, 2], [4, 4]], np.int32)
    close(sparse.bcoo_dot_general_sampled(a, b, at, dimension_numbers=(((1,), (0,)), ((), ()))),
          [(a @ b)[0, 1], (a @ b)[3, 2], 0])  # fmt: skip


# -------------------------------------------------------------------------------------------------------------- errors
def bcoo(count, indices, shape, **promises):
    return sparse.BCOO((fnp.ones(count), fnp.asarray(indices)), shape=shape, **promises)


@pytest.mark.parametrize(
    ("error", "text", "make"),
    [
        (errors.BoundsError, r"indices\[1\] of BCOO are \[0, 9\], out of bounds of \(2, 3\)",
         lambda: bcoo(2, [[0, 0], [0, 9]], (2, 3))),
        (errors.BoundsError, "padding has the indices", lambda: bcoo(1, [[-1]], (3,))),
        (errors.ArgumentError, r"indices \[1\] of BCOO are stored twice",
         lambda: bcoo(2, [[1], [1]], (3,), unique_indices=True)),
        (errors.ArgumentError, "not in order",
         lambda: bcoo(2, [[1, 0], [0, 2]], (3, 3), indices_sorted=True)),
        (errors.ShapeError, "do not fit a BCOO", lambda: bcoo(3, [[1], [1]], (3,))),
        (errors.ShapeError, "batches",
         lambda: sparse.BCOO((fnp.ones((2, 1)), fnp.zeros((3, 1, 1), int)), shape=(3, 4))),
        (errors.DtypeError, "not integers", lambda: sparse.BCOO((fnp.ones(1), fnp.ones((1, 1))), shape=(3,))),
        (errors.TreeError, "takes", lambda: sparse.BCOO(fnp.ones(1), shape=(3,))),
        (errors.BoundsError, "column",
         lambda: sparse.BCSR((fnp.ones(1), fnp.asarray([3]), fnp.asarray([0, 1])), shape=(1, 3))),
        (errors.BoundsError, "must begin with 0",
         lambda: sparse.BCSR((fnp.ones(1), fnp.asarray([0]), fnp.asarray([0, 2, 1])), shape=(2, 3))),
        (errors.ArgumentError, "too small", lambda: sparse.BCOO.fromdense(fnp.ones(3), nse=2)),
        (errors.ConcretizationError, "pass nse=", lambda: ft.jit(lambda x: sparse.BCOO.fromdense(x).data)(fnp.ones(3))),
        (errors.UnsupportedError, "mixes batch, sparse and dense",
         lambda: sparse.BCOO.fromdense(fnp.ones((2, 2)), n_batch=1).T),
        (errors.ShapeError, "do not broadcast", lambda: sparse.eye(3) * fnp.ones((2, 3))),
        (errors.DtypeError, "NumPy has dense arrays only", lambda: np.asarray(sparse.eye(3))),
        (errors.UnsupportedError, "ints, slices and arrays", lambda: sparse.eye(3)[[0, 1]]),
        (errors.BoundsError, "out of bounds for axis 0", lambda: sparse.eye(3)[3]),
        (errors.ShapeError, "sizes must be equal",
         lambda: sparse.bcoo_dot_general(sparse.eye(3), fnp.ones(2), dimension_numbers=(((1,), (0,)), ((), ())))),
        (errors.ArgumentError, "sparse_format", lambda: sparse.eye(3, sparse_format="lil")),
        (errors.ArgumentError, "random_bcoo", lambda: sparse.random_bcoo(ft.random.key(0), (2, 2), nse=5)),
        (errors.ArgumentError, "scipy.sparse", lambda: sparse.BCOO.from_scipy_sparse(np.ones((2, 2)))),
    ],
)  # fmt: skip
def test_bad_input(error, text, make):
    with pytest.raises(error, match=text):
        make()


def test_values_out_of_reach():
    """Infinite rows that no element reads, and values of padding, do not change the results."""
    m = sparse.BCOO((fnp.asarray([1.0, np.nan]), fnp.asarray([[0, 0], [2, 2]])), shape=(2, 2))
    x = fnp.asarray([1.0, np.inf])
    close(m @ x, [1.0, 0.0])
    wild = np.array([[0, 0], [-1, -1]], np.int32)
    made = ft.jit(lambda i: sparse.BCOO((fnp.ones(2), i), shape=(2, 2)))
    close(made(wild), [[1, 0], [0, 0]])
    close(ft.jit(lambda i: made(i) @ fnp.ones(2))(wild), [1, 0])
    close(ft.jit(lambda i: fnp.ones(2) @ made(i))(wild), [1, 0])
    close(x[:1] @ m[:1], [1.0, 0.0])
    close(m.sum(), 1.0)
    close(m.sum(0), [1.0, 0.0])
    close(sparse.bcoo_dot_general(m, fnp.ones((2, 2)), dimension_numbers=(((0, 1), (0, 1)), ((), ()))), 1.0)


def test_positions_may_be_numbers_of_numpy():
    m = sparse.BCOO.fromdense(fnp.eye(2))
    f = lambda m, x: (m @ x).sum()
    for position in (1, np.int64(1)):
        np.testing.assert_array_equal(sparse.grad(f, argnums=position)(m, fnp.ones(2)), [1.0, 1.0])
    with pytest.raises(errors.ArgumentError, match=r"sparse\.value_and_grad got argnums=2"):
        sparse.grad(f, argnums=2)(m, fnp.ones(2))
