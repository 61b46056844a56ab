"""functorch_like.scipy.linalg against SciPy."""

import numpy as np
import pytest
import scipy.linalg

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.scipy import linalg
from functorch_like.testing import check_grads

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 4))
Z = A + 1j * RNG.normal(size=A.shape)
SPD, HPD = A @ A.T + np.eye(4), Z @ Z.conj().T + np.eye(4)
B = RNG.normal(size=(4, 3))


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("a", [SPD, HPD], ids=["real", "complex"])
@pytest.mark.parametrize("lower", [False, True])
def test_cholesky_factors_are_kept(a, lower):
    other = np.tril(a) if lower else np.triu(a)  # the other triangle is not read
    factor, flag = linalg.cho_factor(other, lower)
    assert flag == lower
    close(np.tril(factor) if lower else np.triu(factor), scipy.linalg.cholesky(a, lower=lower))
    for b in (B, B[:, 0], np.stack([B, 2 * B])):
        close(linalg.cho_solve((factor, lower), b), np.linalg.solve(a, b))
    with pytest.raises(ShapeError, match="4 rows"):
        linalg.cho_solve((factor, lower), B[:3])


@pytest.mark.parametrize("a", [A, Z], ids=["real", "complex"])
@pytest.mark.parametrize("trans", [0, 1, 2])
def test_lu_factors_are_kept(a, trans):
    factor = linalg.lu_factor(a)
    want = scipy.linalg.lu_factor(a)
    close(factor[0], want[0])
    np.testing.assert_array_equal(factor[1], want[1])
    for b in (B, B[:, 0]):
        close(linalg.lu_solve(factor, b, trans), scipy.linalg.lu_solve(want, b, trans))
        close(
            ft.vmap(lambda b: linalg.lu_solve(factor, b, trans))(np.stack([b, 2 * b]))[1],
            linalg.lu_solve(factor, 2 * b, trans),
        )


LU = {"square": A, "complex": Z, "wide": A[:3], "tall": A[:, :3], "stack": np.stack([A, A.T])}


@pytest.mark.parametrize("a", LU.values(), ids=LU)
def test_lu(a):
    p, left, upper = map(np.asarray, linalg.lu(a))
    for got, want in zip((p, left, upper), scipy.linalg.lu(a), strict=True):
        close(got, want)
    both, same = linalg.lu(a, permute_l=True)
    close(both, p @ left)
    close(same, upper)


@pytest.mark.parametrize("trans", [0, 1, 2, "N", "T", "C"])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangles(trans, lower, unit):
    a = Z + 3 * np.eye(4)
    close(
        linalg.solve_triangular(a, B, trans, lower, unit),
        scipy.linalg.solve_triangular(a, B, trans, lower, unit_diagonal=unit),
    )
    with pytest.raises(ArgumentError, match="trans='X'"):
        linalg.solve_triangular(a, B, "X")


@pytest.mark.parametrize("a", [RNG.normal(size=(3, 5)), RNG.normal(size=(5, 3)), Z], ids=["wide", "tall", "complex"])
@pytest.mark.parametrize("mode", ["full", "economic", "r"])
@pytest.mark.parametrize("pivoting", [False, True])
def test_qr(a, mode, pivoting):
    got, want = linalg.qr(a, mode, pivoting), scipy.linalg.qr(a, mode=mode, pivoting=pivoting)
    assert len(got) == len(want)
    for x, y in zip(got, want, strict=True):
        close(np.abs(x), np.abs(y))
    with pytest.raises(ArgumentError, match="mode"):
        linalg.qr(a, "half")


@pytest.mark.parametrize("a", [A, Z], ids=["real", "complex"])
def test_forms(a):
    for output in ("real", "complex"):
        t, z = map(np.asarray, linalg.schur(a, output))
        close(z @ t @ z.conj().T, a)
        if output == "complex":
            close(np.tril(t, -1), 0)
    h, q = map(np.asarray, linalg.hessenberg(a, calc_q=True))
    close(q @ h @ q.conj().T, a)
    close(np.tril(h, -2), 0)
    close(linalg.hessenberg(a), h)
    with pytest.raises(ShapeError, match="square"):
        linalg.schur(a[:3])


def test_derivatives():
    check_grads(lambda a, b: linalg.cho_solve(linalg.cho_factor(a), b), (SPD, B[:, :1]), order=1)
    check_grads(lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b, 1), (A + 3 * np.eye(4), B[:, :1]), order=1)
    check_grads(lambda a: linalg.lu(a)[1:], (A,), order=1)


# -------------------------------------------------------------------------------------- leading dimensions broadcast
SOLVERS = {
    "solve": (fnp.linalg.solve, lambda a: a),
    "lu_solve": (lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b), lambda a: a),
    "lu_solve of transposes": (
        lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b, trans=1),
        lambda a: np.swapaxes(a, -1, -2),
    ),
    "solve_triangular": (lambda a, b: linalg.solve_triangular(a, b, lower=True), np.tril),
    "cho_solve": (lambda a, b: linalg.cho_solve((a, True), b), lambda a: np.tril(a) @ np.swapaxes(np.tril(a), -1, -2)),
}


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("of_a", [(), (1,), (2,), (3, 1), (3, 2)])
@pytest.mark.parametrize("of_b", [(), (2,), (3, 2), (5, 1, 2)])
def test_right_sides_broadcast_with_matrices(name, of_a, of_b):
    if of_a == (3, 2) and of_b == (5, 1, 2):
        of_b = (5, 3, 1)
    rng = np.random.default_rng(len(of_a) + 8 * len(of_b))
    a, b = rng.normal(size=(*of_a, 4, 4)) + 4 * np.eye(4), rng.normal(size=(*of_b, 4, 2))
    solve, matrix = SOLVERS[name]
    np.testing.assert_allclose(ft.jit(solve)(a, b), np.linalg.solve(matrix(a), b), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", SOLVERS)
def test_one_matrix_is_not_copied_for_many_right_sides(name):
    solve = ft.jit(SOLVERS[name][0])
    memory = solve.lower(fnp.eye(64), fnp.ones((500, 64, 1))).compile().memory_analysis()
    assert memory["temp"] < 100 * 64 * 64 * 8


def test_stacks_of_vectors_lists_and_16_bits_on_the_right():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 3, 3)) + 4 * np.eye(3), rng.normal(size=(2, 3))
    a = a + np.swapaxes(a, -1, -2)
    exact = np.linalg.solve(a, b[..., None])[..., 0]
    np.testing.assert_allclose(linalg.lu_solve(linalg.lu_factor(a), b), exact, rtol=1e-10)
    np.testing.assert_allclose(linalg.cho_solve(linalg.cho_factor(a), b), exact, rtol=1e-10)
    np.testing.assert_allclose(linalg.solve(a, b, assume_a="pos"), exact, rtol=1e-10)
    upper = np.linalg.solve(np.triu(a), b[..., None])[..., 0]
    np.testing.assert_allclose(linalg.solve_triangular(a, b), upper, rtol=1e-10)
    np.testing.assert_allclose(linalg.solve_triangular(a[:1], b[:1, :, None])[0, :, 0], upper[0], rtol=1e-10)

    one, right = a[0].tolist(), b[0].tolist()
    np.testing.assert_allclose(linalg.cholesky(one, lower=True), np.linalg.cholesky(a[0]), rtol=1e-6)
    np.testing.assert_allclose(linalg.lu_solve(linalg.lu_factor(one), right), exact[0], rtol=1e-5)
    np.testing.assert_allclose(linalg.svd(one, compute_uv=False), np.linalg.svd(a[0], compute_uv=False), rtol=1e-6)
    np.testing.assert_allclose(linalg.eigh(one, eigvals_only=True), np.linalg.eigvalsh(a[0]), rtol=1e-6)

    for dtype, rtol in (("bfloat16", 0.02), ("float16", 2e-3)):
        half, side = fnp.asarray(a[0], dtype), fnp.asarray(b[0], dtype)
        rounded = np.triu(np.asarray(half, np.float64)), np.asarray(side, np.float64)
        found = linalg.solve_triangular(half, side)
        assert found.dtype == half.dtype
        np.testing.assert_allclose(np.asarray(found, np.float64), np.linalg.solve(*rounded), rtol=rtol)
        found = ft.lax.linalg.triangular_solve(half, side, left_side=True)
        assert found.dtype == half.dtype
        np.testing.assert_allclose(np.asarray(found, np.float64), np.linalg.solve(*rounded), rtol=rtol)
        x, _, rank, _ = fnp.linalg.lstsq(half, fnp.asarray(b[0], "float32"))
        assert x.dtype == np.float32 and rank == 3


def test_roots_of_matrices_with_two_zero_eigenvalues():
    rng = np.random.default_rng(4)
    q = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    for values in ([0.0] * 4, [2.0, 0.0, 0.0, 0.0]):
        a = np.diag(values)
        np.testing.assert_allclose(linalg.sqrtm(a), np.sqrt(a), atol=1e-12)
    a = q @ np.diag([3.0, 1.0, 2.0, 0.5]) @ q.T
    np.testing.assert_allclose(linalg.sqrtm(a), scipy.linalg.sqrtm(a), rtol=1e-9)


def test_forms_of_booleans_and_scalars():
    for mode in ("full", "same", "valid"):
        found = linalg.convolution_matrix(np.array([True, False, True]), 4, mode)
        assert found.dtype == bool
        np.testing.assert_array_equal(found, scipy.linalg.convolution_matrix([1, 0, 1], 4, mode))
    for name in ("circulant", "fiedler"):
        np.testing.assert_array_equal(getattr(linalg, name)(2.0), getattr(scipy.linalg, name)(2.0))
