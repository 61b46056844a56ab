import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.linalg
from support.compare import agrees, same

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.errors import DtypeError, ShapeError, UnsupportedError

RNG = np.random.default_rng(0)
A = RNG.normal(size=(2, 4, 4))
TALL = RNG.normal(size=(5, 3))
SPD = A @ A.swapaxes(-1, -2) + np.eye(4)
Z = A + 1j * RNG.normal(size=A.shape)
B = RNG.normal(size=(2, 4, 3))


@pytest.mark.parametrize("x", [A, Z, A.astype("float32"), np.zeros((0, 0)), np.ones((0, 3, 3))], ids=str)
@pytest.mark.parametrize("name", ["det", "inv", "slogdet", "linalg.svdvals", "pinv"])
def test_of_square_matrices(name, x):
    name = name if name.startswith("linalg") else f"linalg.{name}"
    function, theirs = getattr(fnp.linalg, name[7:]), getattr(np.linalg, name[7:])
    same(function(x), theirs(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_det_of_every_size(n):
    agrees("linalg.det", RNG.normal(size=(3, n, n)))


def test_solve_broadcasts():
    agrees("linalg.solve", A, B)
    agrees("linalg.solve", A[0], B)
    agrees("linalg.solve", A[0], B[0, :, 0])
    agrees("linalg.solve", A[0], B[0, :3])
    agrees("linalg.solve", A[0, :3], B[0])


@pytest.mark.parametrize("x", [SPD, Z @ Z.conj().swapaxes(-1, -2)], ids=["real", "complex"])
def test_of_hermitian_matrices(x):
    agrees("linalg.cholesky", x)
    same(fnp.linalg.cholesky(x, upper=True), np.linalg.cholesky(x).conj().swapaxes(-1, -2))
    agrees("linalg.eigvalsh", x)
    agrees("linalg.eigvalsh", x, "U")
    w, v = fnp.linalg.eigh(x)
    np.testing.assert_allclose(np.asarray(x @ np.asarray(v)), np.asarray(v) * np.asarray(w)[:, None], atol=1e-9)


@pytest.mark.parametrize("x", [A, Z, TALL, TALL.T, np.ones((3, 0))], ids=["real", "complex", "tall", "wide", "empty"])
def test_factors_multiply_to_the_matrix(x):
    for mode in ("reduced", "complete"):
        q, r = map(np.asarray, fnp.linalg.qr(x, mode))
        assert q.shape == np.linalg.qr(x, mode).Q.shape
        np.testing.assert_allclose(q @ r, x, atol=1e-9)
    same(fnp.linalg.qr(x, "r"), r[..., : min(x.shape[-2:]), :])
    for full in (True, False):
        u, s, vt = map(np.asarray, fnp.linalg.svd(x, full_matrices=full))
        k = s.shape[-1]
        np.testing.assert_allclose((u[..., :k] * s[..., None, :]) @ vt[..., :k, :], x, atol=1e-9)


def test_eig():
    for x in (A, Z):
        w, v = map(np.asarray, fnp.linalg.eig(x))
        np.testing.assert_allclose(x @ v, v * w[:, None], atol=1e-9)
        same(fnp.linalg.eigvals(x), np.linalg.eigvals(x))
    _, left, _ = map(np.asarray, lax.linalg.eig(A))
    np.testing.assert_allclose(left.conj().swapaxes(-1, -2) @ A, w_times(A, left), atol=1e-9)


def w_times(x, left):
    w = np.asarray(lax.linalg.eig(x)[0])
    return w[..., None] * left.conj().swapaxes(-1, -2)


def test_least_squares():
    agrees("linalg.pinv", TALL)
    for b in (RNG.normal(size=5), RNG.normal(size=(5, 2))):
        x, squares, rank, s = fnp.linalg.lstsq(TALL, b)
        want = np.linalg.lstsq(TALL, b, rcond=None)
        same(x, want[0])
        np.testing.assert_allclose(np.asarray(squares), want[1])
        assert rank == want[2]
        same(s, want[3])
    assert fnp.linalg.matrix_rank(np.outer(TALL[:, 0], TALL[0])) == 1


def test_norms_and_products():
    for order in ("nuc", 2, -2, "fro", 1):
        agrees("linalg.norm", A, order, axis=(0, 2))
        agrees("linalg.norm", A, order, axis=(-2, -1), keepdims=True)
    for p in (None, 2, -2, 1, "fro"):
        same(fnp.linalg.cond(A, p), np.linalg.cond(A, p), rtol=1e-9)
    for n in (0, 1, 3, -2):
        agrees("linalg.matrix_power", A, n)
    same(fnp.linalg.multi_dot([TALL, TALL.T, TALL, TALL[0]]), np.linalg.multi_dot([TALL, TALL.T, TALL, TALL[0]]))
    t = RNG.normal(size=(4, 6, 8, 3))
    agrees("linalg.tensorinv", t)
    agrees("linalg.tensorsolve", t, RNG.normal(size=(4, 6)))
    agrees("linalg.cross", TALL, TALL[::-1])
    agrees("linalg.cross", TALL.T, TALL.T[:, ::-1], axis=0)


def test_lax_against_scipy():
    x = A[0]
    t, z = map(np.asarray, lax.linalg.schur(x))
    np.testing.assert_allclose(z @ t @ z.T, x, atol=1e-9)
    h, taus = lax.linalg.hessenberg(x)
    np.testing.assert_allclose(np.triu(h, -1), scipy.linalg.hessenberg(x), atol=1e-9)
    assert taus.shape == (3,)
    factors, _, order = map(np.asarray, lax.linalg.lu(x))
    np.testing.assert_allclose((np.tril(factors, -1) + np.eye(4)) @ np.triu(factors), x[order], atol=1e-9)
    _, d, e, _ = map(np.asarray, lax.linalg.tridiagonal(SPD[0]))
    np.testing.assert_allclose(scipy.linalg.eigvalsh_tridiagonal(d, e), np.linalg.eigvalsh(SPD[0]))
    band = np.diag(x[0]) + np.diag(x[1, :3], 1) + np.diag(x[2, 1:], -1)
    np.testing.assert_allclose(lax.linalg.tridiagonal_solve(x[2], x[0], x[1], B[0]), np.linalg.solve(band, B[0]))
    left = lax.linalg.triangular_solve(x, B[0], left_side=True, lower=True)
    np.testing.assert_allclose(left, scipy.linalg.solve_triangular(x, B[0], lower=True))


# -------------------------------------------------------------------------------------------------------- derivatives
SCALARS = {
    "det": lambda x: fnp.linalg.det(x).sum(),
    "slogdet": lambda x: fnp.linalg.slogdet(x)[1].sum(),
    "inv": lambda x: (fnp.linalg.inv(x) ** 2).sum(),
    "solve": lambda x: (fnp.linalg.solve(x, B) ** 2).sum(),
    "pinv": lambda x: fnp.sin(fnp.linalg.pinv(x)).sum(),
    "cholesky": lambda x: fnp.sin(fnp.linalg.cholesky(x @ x.mT + fnp.eye(4, dtype="float64"))).sum(),
    "eigvalsh": lambda x: (fnp.linalg.eigvalsh(x) ** 3).sum(),
    "eigh projector": lambda x: (fnp.linalg.eigh(x)[1][..., :, 0] ** 4).sum(),
    "svdvals": lambda x: (fnp.linalg.svdvals(x) ** 3).sum(),
    "svd": lambda x: (fnp.linalg.svd(x)[0] ** 4).sum(),
    "qr": lambda x: fnp.sin(fnp.linalg.qr(x)[0]).sum(),
    "eig": lambda x: (abs(fnp.linalg.eig(x)[1]) ** 4).sum(),
    "nuc": lambda x: fnp.linalg.norm(x, "nuc", axis=(1, 2)).sum(),
    "cond": lambda x: fnp.linalg.cond(x).sum(),
    "matrix_power": lambda x: fnp.linalg.matrix_power(x, -2).sum(),
}


@pytest.mark.parametrize("name", SCALARS)
def test_gradients_are_finite_differences(name):
    f = SCALARS[name]
    v = RNG.normal(size=A.shape)
    h = 1e-6
    want = (f(A + h * v) - f(A - h * v)) / (2 * h)
    got = ft.grad(f)(A)
    np.testing.assert_allclose(np.sum(np.asarray(got) * v), want, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(ft.jit(ft.grad(f))(A), got, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", [n for n in SCALARS if n != "solve"])
def test_vmap_of_grad_is_a_loop(name):
    one = lambda x: SCALARS[name](x[None])
    got = ft.jit(ft.vmap(ft.grad(one)))(A)
    for g, x in zip(got, A, strict=True):
        np.testing.assert_allclose(g, ft.grad(one)(x), rtol=1e-6, atol=1e-8)


def test_derivatives_of_determinants_where_these_are_zero():
    """The cofactors, by the determinants of the minors."""
    x = RNG.normal(size=(5, 5))
    x[3] = x[1] - 2 * x[0]
    less = lambda i, j: np.delete(np.delete(x, i, 0), j, 1)
    want = [[(-1) ** (i + j) * np.linalg.det(less(i, j)) for j in range(5)] for i in range(5)]
    np.testing.assert_allclose(ft.grad(fnp.linalg.det)(x), want, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ft.jit(ft.grad(fnp.linalg.det))(x), want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", [4, 8, 40])
@pytest.mark.parametrize("scale", [1e20, 1e-20])
def test_determinants_whose_products_overflow(n, scale):
    """Products of some entries on the diagonal of U are no numbers of float32; the determinant and cofactors are."""
    scales = np.resize([scale, scale, 1 / scale, 1 / scale], n)
    x = (np.random.default_rng(n).normal(size=(n, n)) / n**0.5 * scales).astype(np.float32)
    wide = x.astype(np.float64)
    value = np.linalg.det(wide)
    cofactors = value * np.linalg.inv(wide).T
    usual = (np.abs(cofactors) < 3e38) & (np.abs(cofactors) > 1e-37)
    assert usual.sum() >= n * n // 2
    for f in (ft.value_and_grad(fnp.linalg.det), ft.jit(ft.value_and_grad(fnp.linalg.det))):
        got, gradient = f(x)
        np.testing.assert_allclose(got, value, rtol=1e-3)
        np.testing.assert_allclose(np.where(usual, gradient, 0), np.where(usual, cofactors, 0), rtol=2e-2)
    diagonal = np.diag(np.array([1e30, 1e30, 1e-30, 1e-20], np.float32))
    np.testing.assert_allclose(fnp.linalg.det(diagonal), 1e10, rtol=1e-5)
    np.testing.assert_allclose(np.diag(ft.grad(fnp.linalg.det)(diagonal)), [1e-20, 1e-20, np.inf, 1e30], rtol=1e-5)


@pytest.mark.parametrize("of", [lambda x: fnp.linalg.det(x), lambda x: fnp.linalg.slogdet(x)], ids=["det", "slogdet"])
def test_derivatives_of_complex_determinants_are_differences(of):
    v, h = RNG.normal(size=Z.shape) + 1j * RNG.normal(size=Z.shape), 1e-6
    changes = ft.tree.leaves(ft.jvp(of, (Z,), (v,))[1])
    for got, after, before in zip(changes, ft.tree.leaves(of(Z + h * v)), ft.tree.leaves(of(Z - h * v)), strict=True):
        np.testing.assert_allclose(got, (np.asarray(after) - np.asarray(before)) / (2 * h), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ["det", "slogdet"])
def test_second_derivatives_of_determinants(name):
    slope, v, h = ft.grad(SCALARS[name]), RNG.normal(size=A.shape), 1e-5
    want = (np.asarray(slope(A + h * v)) - np.asarray(slope(A - h * v))) / (2 * h)
    np.testing.assert_allclose(ft.jvp(slope, (A,), (v,))[1], want, rtol=1e-5, atol=1e-6)


def test_second_derivative_of_solve():
    b = B[0]
    f = lambda t: (fnp.linalg.solve(A[0] + t * A[1], b) ** 2).sum()
    h = 1e-5
    want = (ft.grad(f)(np.float64(h)) - ft.grad(f)(np.float64(-h))) / (2 * h)
    np.testing.assert_allclose(ft.grad(ft.grad(f))(np.float64(0.0)), want, rtol=1e-5)


# ----------------------------------------------------------------------------------------------- failures and refusals
def test_failures_are_nan():
    bad = np.stack([SPD[0], -SPD[0]])
    got = np.asarray(fnp.linalg.cholesky(bad))
    assert np.isfinite(got[0]).all()
    assert np.isnan(got[1]).all()
    assert not np.isfinite(np.asarray(fnp.linalg.inv(np.ones((2, 2))))).any()
    assert np.isnan(np.asarray(fnp.linalg.eigvals(np.full((2, 2), np.nan)))).all()
    assert fnp.linalg.det(np.ones((4, 4))).item() == 0.0


@pytest.mark.parametrize("name", ["inv", "det", "cholesky", "eigh", "eig", "slogdet"])
def test_refusals(name):
    function = getattr(fnp.linalg, name)
    with pytest.raises(ShapeError, match="not square"):
        function(fnp.ones((2, 3)))
    with pytest.raises(ShapeError, match="not a matrix"):
        function(fnp.ones(3))
    with pytest.raises(DtypeError, match="f16"):
        function(fnp.ones((4, 4), "float16"))


def test_what_has_no_derivative_says_so():
    with pytest.raises(UnsupportedError, match="reduced"):
        ft.grad(lambda x: fnp.linalg.qr(x, "complete")[0].sum())(TALL)
    with pytest.raises(UnsupportedError, match="differentiate eig"):
        ft.grad(lambda x: lax.linalg.schur(x)[0].sum())(A[0])


# ------------------------------------------------------------------------------------------------------------ processes
PROGRAM = """
import sys
import functorch_like as ft, functorch_like.numpy as fnp
from functorch_like.backends import xla
assert not any(m.startswith("scipy") and m != "scipy" for m in sys.modules), "importing the package imports SciPy"
x = fnp.asarray([[4.0, 2.0], [2.0, 5.0]])
print(ft.jit(lambda x: fnp.linalg.cholesky(x) @ fnp.linalg.inv(x))(x).sum().item(), xla.counters.compiles)
"""


def test_a_fresh_process_runs_a_program_from_the_disk(tmp_path):
    env = {**os.environ, "FT_CACHE": "1", "FT_CACHE_DIR": str(tmp_path / "cache")}
    outputs = [
        subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=False)
        for _ in range(2)
    ]
    assert [o.returncode for o in outputs] == [0, 0], [o.stderr[-500:] for o in outputs]
    (first, compiled), (second, loaded) = (o.stdout.split() for o in outputs)
    assert first == second
    assert int(compiled) > 0
    assert int(loaded) == 0


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(4, 4), (7, 3), (1, 1)])
def test_polar_factors_by_iterations(dtype, shape):
    x = RNG.normal(size=shape) + (1j * RNG.normal(size=shape) if dtype.startswith("c") else 0)
    u, h, count, done = lax.linalg.qdwh(x.astype(dtype))
    tight = 2e-6 if dtype in ("float32", "complex64") else 1e-14
    for got, want in zip((u, h), scipy.linalg.polar(x), strict=True):
        np.testing.assert_allclose(got, want, atol=tight * max(1, abs(want).max()))
    assert u.dtype == dtype and done.item() and 0 < count.item() < 10 and count.dtype == "int32"


def test_polar_factors_of_matrices_that_are_hard():
    q = np.linalg.qr(RNG.normal(size=(6, 6)))[0]
    x = (q * np.logspace(0, -10, 6)) @ q
    u, h, _, done = lax.linalg.qdwh(x)
    assert done.item()
    # The error is 1e-15 for most such matrices, and was at most 1e-13 for 150 of them.
    np.testing.assert_allclose(np.asarray(u).T @ u, np.eye(6), atol=5e-13)
    np.testing.assert_allclose(u @ h, x, atol=5e-13)
    for scale in (1e-30, 1e30):
        np.testing.assert_allclose(lax.linalg.qdwh(fnp.eye(3) * scale)[0], np.eye(3), rtol=1e-6)
    assert not lax.linalg.qdwh(x, max_iterations=2)[3].item()
    mapped = ft.vmap(lambda x: lax.linalg.qdwh(x)[0])(A)
    np.testing.assert_allclose(mapped[1], scipy.linalg.polar(A[1])[0], atol=1e-13)
    with pytest.raises(ShapeError, match="as many rows as columns"):
        lax.linalg.qdwh(fnp.ones((2, 3)))
    with pytest.raises(UnsupportedError, match="dynamic_shape"):
        lax.linalg.qdwh(fnp.ones((3, 2)), dynamic_shape=(2, 2))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (6, 1)])
def test_ormqr_applies_the_reflections_of_geqrf(shape, dtype):
    draw = np.random.default_rng(0)
    drawn = lambda *s: (draw.normal(size=s) + 1j * draw.normal(size=s)).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        a, m = drawn(*shape), shape[0]
        q = scipy.linalg.qr(a, mode="full")[0]  # by the same LAPACK, so that signs agree
        packed, taus = lax.linalg.geqrf(a)
        for left in (True, False):
            c = drawn(m, 2) if left else drawn(2, m)
            for transpose in (False, True):
                factor = q.conj().T if transpose else q
                got = lax.linalg.ormqr(packed, taus, c, left=left, transpose=transpose)
                np.testing.assert_allclose(got, factor @ c if left else c @ factor, atol=2e-5)
                each = ft.vmap(lambda c, l=left, t=transpose: lax.linalg.ormqr(packed, taus, c, left=l, transpose=t))
                np.testing.assert_allclose(each(np.stack([c, 2 * c]))[1], 2 * got, atol=2e-5)


def test_ormqr_of_nothing():
    packed, taus = lax.linalg.geqrf(np.ones((3, 0), np.float32))
    c = np.arange(9, dtype=np.float32).reshape(3, 3)
    np.testing.assert_array_equal(lax.linalg.ormqr(packed, taus, c), c)
    assert lax.linalg.ormqr(*lax.linalg.geqrf(np.ones((3, 2))), np.ones((3, 0))).shape == (3, 0)
    with pytest.raises(ShapeError, match="rows on the right"):
        lax.linalg.ormqr(*lax.linalg.geqrf(np.ones((3, 2))), np.ones((2, 2)))
