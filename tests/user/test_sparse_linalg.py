"""Solutions and eigenvalues of sparse matrices, against SciPy and NumPy; derivatives against differences."""

import numpy as np
import pytest
import scipy.sparse as scipy_sparse
import scipy.sparse.linalg as scipy_linalg

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.experimental import sparse

RNG = np.random.default_rng(0)
N = 30
A = (scipy_sparse.random(N, N, 0.15, random_state=1) + 3 * scipy_sparse.eye(N)).tocsr()
B = RNG.normal(size=(N, 3))
ROWS = A.indices, A.indptr
solve = sparse.linalg.spsolve


@pytest.mark.parametrize("way", [lambda f: f, ft.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("order", range(4))
def test_solutions(way, order):
    f = way(lambda d, b: solve(d, *ROWS, b, reorder=order))
    np.testing.assert_allclose(f(A.data, B[:, 0]), scipy_linalg.spsolve(A, B[:, 0]), rtol=1e-10)
    np.testing.assert_allclose(f(A.data, B), scipy_linalg.spsolve(A.tocsc(), B), rtol=1e-10)
    single = f(A.data.astype("float32"), B.astype("float32"))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, scipy_linalg.spsolve(A.tocsc(), B), rtol=1e-4, atol=1e-5)


def test_complex_solutions():
    c = (A + 1j * A.T).tocsr()
    want = scipy_linalg.spsolve(c, B[:, 0] + 0j)
    np.testing.assert_allclose(solve(c.data, c.indices, c.indptr, B[:, 0]), want, rtol=1e-10)


def test_derivatives_of_solutions():
    ft.testing.check_grads(lambda d, b: solve(d, *ROWS, b), (A.data, B), order=1)
    ft.testing.check_grads(lambda d, b: (solve(d, *ROWS, b) ** 2).sum(), (A.data, B[:, 0]), order=2)


def test_batches_of_systems():
    want = scipy_linalg.spsolve(A, B[:, 0])
    both = ft.vmap(lambda d, b: solve(d, *ROWS, b))(np.stack([A.data, 2 * A.data]), np.stack([B[:, 0]] * 2))
    np.testing.assert_allclose(both, [want, want / 2], rtol=1e-10)
    right = ft.vmap(lambda b: solve(A.data, *ROWS, b))(np.stack([B, 2 * B, B]))
    np.testing.assert_allclose(right, [scipy_linalg.spsolve(A.tocsc(), k * B) for k in (1, 2, 1)], rtol=1e-10)
    grid = ft.vmap(ft.vmap(lambda d, b: solve(d, *ROWS, b), (None, 0)), (0, None))
    np.testing.assert_allclose(grid(np.stack([A.data] * 2), B.T)[1].T, scipy_linalg.spsolve(A.tocsc(), B), rtol=1e-10)
    slope = ft.grad(lambda d, b: (solve(d, *ROWS, b) ** 2).sum())
    np.testing.assert_allclose(ft.vmap(slope, (None, 0))(A.data, B.T)[2], slope(A.data, B[:, 2]), rtol=1e-8)


def test_padding_and_singular_matrices():
    padded = sparse.BCSR.fromdense(A.toarray(), nse=A.nnz + 40)
    found = solve(padded.data, padded.indices, padded.indptr, B[:, 0])
    np.testing.assert_allclose(found, scipy_linalg.spsolve(A, B[:, 0]), rtol=1e-10)
    assert np.isnan(solve(np.zeros(2), np.arange(2), np.arange(3), np.ones(2))).all()
    nothing = np.zeros(0, int)
    assert solve(np.zeros(0), nothing, np.zeros(1, int), np.zeros(0)).shape == (0,)


def test_systems_that_are_refused():
    with pytest.raises(ShapeError, match="31 has 30 rows"):
        solve(A.data, *ROWS, B[1:])
    with pytest.raises(ShapeError, match="vectors data and indices"):
        solve(A.data[1:], *ROWS, B)
    with pytest.raises(DtypeError):
        solve(A.data.astype("float16"), *ROWS, B.astype("float16"))
    with pytest.raises(ArgumentError, match="no order"):
        solve(A.data, *ROWS, B, reorder=4)


@pytest.mark.parametrize("way", [lambda f: f, ft.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("k", [1, 4])
def test_greatest_eigenvalues(way, k):
    full = (A + A.T).toarray()
    want = np.linalg.eigvalsh(full)[::-1][:k]
    matrices = full, sparse.BCOO.fromdense(full), lambda x: full @ x
    for matrix in matrices:
        values, vectors, steps = way(lambda x, matrix=matrix: sparse.linalg.lobpcg_standard(matrix, x, m=300))(
            RNG.normal(size=(N, k))
        )
        np.testing.assert_allclose(values, want, rtol=1e-10)
        np.testing.assert_allclose(full @ vectors, vectors * values, atol=1e-9)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-10)
        assert 0 < steps < 300
    loose = sparse.linalg.lobpcg_standard(full, RNG.normal(size=(N, k)), tol=1e-6)[2]
    assert loose < steps and sparse.linalg.lobpcg_standard(full, np.eye(N, k), m=2)[2] == 2


def test_eigenvalues_in_single_precision_and_of_zero():
    full = (A + A.T).toarray().astype("float32")
    values, vectors, _ = sparse.linalg.lobpcg_standard(full, fnp.asarray(RNG.normal(size=(N, 3)), "float32"))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(full)[::-1][:3], rtol=1e-5)
    assert values.dtype == vectors.dtype == np.float32
    values, vectors, steps = sparse.linalg.lobpcg_standard(np.zeros((8, 8)), np.eye(8, 2))
    assert not values.any() and steps == 0 and vectors.shape == (8, 2)


def test_first_vectors_that_are_refused():
    with pytest.raises(ShapeError, match="n more than 3 k"):
        sparse.linalg.lobpcg_standard(np.eye(6), np.eye(6, 2))
    with pytest.raises(DtypeError):
        sparse.linalg.lobpcg_standard(np.eye(8), np.eye(8, 2) * 1j)
