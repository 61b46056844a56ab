"""scipy.linalg's functions of matrices, special forms and generalized problems, against SciPy."""

import numpy as np
import pytest
import scipy.linalg

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.scipy import linalg
from functorch_like.testing import check_grads

RNG = np.random.default_rng(0)
A, B, C = RNG.normal(size=(5, 5)), RNG.normal(size=(3, 3)), RNG.normal(size=(5, 3))
Z = A + 1j * RNG.normal(size=A.shape)
SPD = A @ A.T + np.eye(5)
V = RNG.normal(size=6)


def close(got, want, tol=1e-9):
    assert np.shape(got) == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol * max(1.0, np.abs(want).max(initial=0)))


# ----------------------------------------------------------------------------------------------------------- functions
def test_exponentials():
    scales = [1e-3, 1.0, 10.0, 50.0]
    for got, by in zip(linalg.expm(np.stack([A * by for by in scales])), scales, strict=True):
        close(got, scipy.linalg.expm(A * by), 1e-11)
    close(linalg.expm(Z), scipy.linalg.expm(Z))
    close(linalg.expm(A.astype(np.float32)), scipy.linalg.expm(A), 1e-5)
    close(linalg.expm(A, upper_triangular=True), scipy.linalg.expm(np.triu(A)))
    close(ft.jit(ft.vmap(linalg.expm))(np.stack([A, SPD]))[1], scipy.linalg.expm(SPD))
    assert np.isnan(linalg.expm(1e9 * A)).all() and linalg.expm(np.zeros((0, 0))).shape == (0, 0)
    check_grads(linalg.expm, (A[:2, :2],), order=2)


def test_derivatives_of_exponentials():
    for got, want in zip(linalg.expm_frechet(A, A.T), scipy.linalg.expm_frechet(A, A.T), strict=True):
        close(got, want)
    close(linalg.expm_frechet(A, A.T, compute_expm=False), scipy.linalg.expm_frechet(A, A.T, compute_expm=False))
    with pytest.raises(ShapeError, match="one shape"):
        linalg.expm_frechet(A, B)


def test_square_roots():
    for got, a in zip(linalg.sqrtm(np.stack([SPD, A, Z])), (SPD, A, Z), strict=True):
        close(got, scipy.linalg.sqrtm(a))
    square = SPD[:2, :2]
    check_grads(lambda a: linalg.sqrtm(a).real, (square,), order=2)
    close(ft.vmap(ft.grad(lambda a: linalg.sqrtm(a).real.sum()))(np.stack([square] * 2)).shape, (2, 2, 2))


def test_functions_by_parletts_recurrence():
    close(linalg.funm(A, fnp.sin), scipy.linalg.funm(A, np.sin))
    close(linalg.funm(np.stack([A, Z]), fnp.exp)[1], scipy.linalg.expm(Z))
    close(ft.jit(lambda a: linalg.funm(a, fnp.cos))(np.eye(2)), np.cos(1) * np.eye(2))


def test_sylvester():
    for a, b, c in ((A, B, C), (Z, B, C), (A, B + 0j, C)):
        got = linalg.solve_sylvester(a, b, c)
        close(a @ got + got @ b, c + 0 * got)
        assert got.dtype.kind == ("c" if np.iscomplexobj(a) or np.iscomplexobj(b) else "f")
    stacked = linalg.solve_sylvester(np.stack([A, A.T]), B, C)
    close(stacked[1], scipy.linalg.solve_sylvester(A.T, B, C))
    check_grads(linalg.solve_sylvester, (SPD[:2, :2], SPD[2:4, 2:4], C[:2, :2]), order=1)
    with pytest.raises(ShapeError, match="rows of A"):
        linalg.solve_sylvester(A, B, C.T)


def test_polar_and_schur_forms():
    for side in ("right", "left"):
        for a in (A, C, C.T, Z):
            for got, want in zip(linalg.polar(a, side), scipy.linalg.polar(a, side), strict=True):
                close(got, want)
    t, z = linalg.rsf2csf(*linalg.schur(A))
    close(z @ t @ np.conj(z).T, A + 0j)
    assert abs(np.tril(t, -1)).max() == 0
    with pytest.raises(ArgumentError, match="'up'"):
        linalg.polar(A, "up")


# ------------------------------------------------------------------------------------------------------------ problems
def test_solutions_by_what_is_known():
    for assume in ("gen", "sym", "her", "pos"):
        close(linalg.solve(SPD, C, assume_a=assume), np.linalg.solve(SPD, C))
        close(linalg.solve(SPD, V[:5], assume_a=assume), np.linalg.solve(SPD, V[:5]))
    herm = Z @ Z.conj().T
    close(linalg.solve(np.triu(herm), C, assume_a="her"), np.linalg.solve(herm, C))
    close(linalg.solve(np.tril(SPD), C, lower=True, assume_a="sym"), np.linalg.solve(SPD, C))
    check_grads(lambda a: linalg.solve(a, C, assume_a="pos"), (SPD,), order=1)
    with pytest.raises(ArgumentError, match="banded"):
        linalg.solve(SPD, C, assume_a="banded")


@pytest.mark.parametrize("kind", [1, 2, 3])
def test_generalized_eigenvalues(kind):
    a, b = A + A.T, Z @ Z.conj().T + np.eye(5)
    for left, right in ((a, SPD), (a, b), (b, SPD)):
        want, vectors = scipy.linalg.eigh(left, right, type=kind)
        w, v = linalg.eigh(np.tril(left), np.tril(right), type=kind)
        close(w, want)
        close(abs(np.asarray(v)), abs(vectors), 1e-7)
        close(linalg.eigh(np.triu(left), np.triu(right), lower=False, eigvals_only=True, type=kind), want)


def test_eigenvalues():
    close(linalg.eigh(np.tril(SPD), eigvals_only=True), np.linalg.eigvalsh(SPD))
    w, v = linalg.eigh(np.triu(SPD), lower=False)
    close(SPD @ v, np.asarray(v) * np.asarray(w))
    check_grads(lambda b: linalg.eigh(A + A.T, b @ b.T + np.eye(5), eigvals_only=True), (A,), order=1)
    for select in ({}, {"select": "i", "select_range": (1, 3)}):
        want, vectors = scipy.linalg.eigh_tridiagonal(V, V[1:], **select)
        w, v = linalg.eigh_tridiagonal(V, V[1:], **select)
        close(w, want)
        close(abs(np.asarray(v)), abs(vectors))
        close(linalg.eigh_tridiagonal(V, V[1:], eigvals_only=True, **select), want)
    assert linalg.eigh_tridiagonal(np.ones((2, 1)), np.ones((2, 0)))[0].shape == (2, 1)
    with pytest.raises(ArgumentError, match="positions"):
        linalg.eigh_tridiagonal(V, V[1:], select="v", select_range=(0, 1))


def test_factors_and_products():
    close(linalg.cholesky(np.triu(SPD)), scipy.linalg.cholesky(SPD))
    close(linalg.cholesky(np.tril(SPD), lower=True), scipy.linalg.cholesky(SPD, lower=True))
    close(linalg.svd(C, compute_uv=False), scipy.linalg.svdvals(C))
    assert [f.shape for f in linalg.svd(C)] == [(5, 5), (3,), (3, 3)]
    close(linalg.det(A), np.linalg.det(A))
    for a in (A, C, C.T, Z):
        for pivoting in (False, True):
            for mode, c in (("left", RNG.normal(size=(min(a.shape), 2))), ("right", RNG.normal(size=(2, a.shape[0])))):
                want = scipy.linalg.qr_multiply(a, c, mode, pivoting)
                for got, one in zip(linalg.qr_multiply(a, c, mode, pivoting), want, strict=True):
                    close(got, one)
    close(linalg.qr_multiply(Z, V[:5], conjugate=True)[0], scipy.linalg.qr_multiply(Z, V[:5], conjugate=True)[0])


# --------------------------------------------------------------------------------------------------------------- forms
@pytest.mark.parametrize("name", ["toeplitz", "hankel", "circulant", "companion", "fiedler", "fiedler_companion"])
def test_forms_of_one_vector(name):
    ours, theirs = getattr(linalg, name), getattr(scipy.linalg, name)
    for n in (2, 3, 5, 6):
        close(ours(V[:n]), theirs(V[:n]))
    if name != "fiedler_companion":
        close(ft.jit(ours)(np.stack([V, 2 * V + 1]))[1], theirs(2 * V + 1))
    check_grads(ours, (V[:4],), order=1)


def test_forms_of_two_vectors():
    z = V + 1j
    close(linalg.toeplitz(z), scipy.linalg.toeplitz(z))
    for n in (1, 3, 6):
        close(linalg.toeplitz(V[:3], V[:n]), scipy.linalg.toeplitz(V[:3], V[:n]))
        close(linalg.hankel(V[:3], V[:n]), scipy.linalg.hankel(V[:3], V[:n]))
        for mode in ("full", "same", "valid"):
            close(linalg.convolution_matrix(V[:4], n, mode), scipy.linalg.convolution_matrix(V[:4], n, mode))
    close(linalg.leslie(V, V[1:]), scipy.linalg.leslie(V, V[1:]))
    close(linalg.block_diag(A, C, V, 2.0), scipy.linalg.block_diag(A, C, V, 2.0))
    assert linalg.block_diag(np.zeros((0, 2)), 1.0).tolist() == [[0.0, 0.0, 1.0]]
    with pytest.raises(ShapeError, match="one element less"):
        linalg.leslie(V, V)
    with pytest.raises(ArgumentError, match="'all'"):
        linalg.convolution_matrix(V, 3, "all")


def test_forms_of_a_size():
    for name in ("hilbert", "invhilbert", "pascal", "invpascal", "helmert"):
        for n in (1, 2, 5):
            got = getattr(linalg, name)(n)
            assert got.dtype == np.float32
            close(got, getattr(scipy.linalg, name)(n).astype(np.float64), 1e-6)
    for kind in ("symmetric", "lower", "upper"):
        close(linalg.pascal(4, kind), scipy.linalg.pascal(4, kind))
        close(linalg.invpascal(4, kind), scipy.linalg.invpascal(4, kind))
    close(linalg.helmert(4, full=True), scipy.linalg.helmert(4, full=True), 1e-6)
    for scale in (None, "sqrtn", "n"):
        close(linalg.dft(5, scale, dtype="complex128"), scipy.linalg.dft(5, scale))
    close(linalg.hadamard(8), scipy.linalg.hadamard(8))
    with pytest.raises(ArgumentError, match="power of 2"):
        linalg.hadamard(6)
