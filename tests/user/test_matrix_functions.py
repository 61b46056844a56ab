"""lax.linalg: pivots, subsets, algorithms, products and updates, against NumPy and SciPy."""

import numpy as np
import pytest
import scipy.linalg

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.errors import ArgumentError, DtypeError, ShapeError, UnsupportedError
from functorch_like.testing import check_grads

RNG = np.random.default_rng(0)
A = RNG.normal(size=(2, 4, 3))
Z = A + 1j * RNG.normal(size=A.shape)
SPD = A.swapaxes(1, 2) @ A + np.eye(3)


@pytest.mark.parametrize("x", [A, Z, A.swapaxes(1, 2), A.astype("float32")], ids=["tall", "complex", "wide", "float32"])
@pytest.mark.parametrize("full", [False, True])
def test_pivoted_qr(x, full):
    tolerance = 1e-4 if x.dtype == np.float32 else 1e-12
    q, r, p = map(np.asarray, lax.linalg.qr(x, pivoting=True, full_matrices=full))
    for k in range(len(x)):
        want = scipy.linalg.qr(x[k], mode="full" if full else "economic", pivoting=True)
        np.testing.assert_array_equal(p[k], want[2])
        np.testing.assert_allclose(q[k] @ r[k], x[k][:, p[k]], atol=tolerance)
        falling = np.abs(np.diagonal(r[k]))
        assert (np.diff(falling) <= tolerance).all()
        np.testing.assert_allclose(np.abs(r[k]), np.abs(want[1]), atol=tolerance)


def test_pivoted_qr_has_derivatives_and_maps():
    f = lambda x: lax.linalg.qr(x, pivoting=True, full_matrices=False)[:2]
    check_grads(f, (A[0],), order=2)
    single = [np.asarray(f(x)[1]) for x in A]
    np.testing.assert_allclose(ft.vmap(f)(A)[1], single, atol=1e-12)


@pytest.mark.parametrize("algorithm", [None, "default", "qr", lax.linalg.SvdAlgorithm.QR])
def test_algorithms_of_svd_agree(algorithm):
    for x in (A, Z, A.swapaxes(1, 2)):
        for full in (False, True):
            u, s, vh = map(np.asarray, lax.linalg.svd(x, full_matrices=full, algorithm=algorithm))
            want = np.linalg.svd(x, full_matrices=full)
            assert u.shape == want.U.shape and vh.shape == want.Vh.shape
            np.testing.assert_allclose(s, want.S, atol=1e-12)
            np.testing.assert_allclose((u[..., :3] * s[:, None]) @ vh[:, :3], x, atol=1e-12)


def test_algorithms_that_are_not_there():
    for algorithm in ("jacobi", "polar"):
        with pytest.raises(UnsupportedError, match=algorithm if algorithm == "polar" else "Jacobi"):
            lax.linalg.svd(A, algorithm=algorithm)
    with pytest.raises(ArgumentError, match="'fastest' is unknown"):
        lax.linalg.svd(A, algorithm="fastest")


@pytest.mark.parametrize("subset", [(0, 1), (1, 3), (2, 2), (0, 3)])
def test_subsets(subset):
    start, end = subset
    w, v = map(np.asarray, np.linalg.eigh(SPD))
    got_v, got_w = map(np.asarray, lax.linalg.eigh(SPD, subset_by_index=subset))
    np.testing.assert_allclose(got_w, w[:, start:end], atol=1e-12)
    np.testing.assert_allclose(SPD @ got_v, got_v * got_w[:, None], atol=1e-12)
    assert got_v.shape == v[..., start:end].shape
    s = np.linalg.svd(A, compute_uv=False)
    np.testing.assert_allclose(lax.linalg.svd(A, compute_uv=False, subset_by_index=subset), s[:, start:end], atol=1e-12)
    u, _, vh = lax.linalg.svd(A, full_matrices=False, subset_by_index=subset)
    assert u.shape == (2, 4, end - start) and vh.shape == (2, end - start, 3)


def test_subsets_that_are_not_there():
    with pytest.raises(ArgumentError, match="0 <= start <= end <= 3"):
        lax.linalg.eigh(SPD, subset_by_index=(1, 4))
    with pytest.raises(ArgumentError, match="full_matrices=False"):
        lax.linalg.svd(A, subset_by_index=(0, 1))


def test_derivatives_of_a_subset():
    check_grads(lambda x: lax.linalg.eigh(x, subset_by_index=(1, 2))[1], (SPD[0],), order=2)


def test_symmetric_products():
    c = SPD @ SPD
    x = A.swapaxes(1, 2)
    want = 0.5 * x @ x.swapaxes(1, 2) + 2 * c
    for symmetrize in (False, True):
        got = lax.linalg.symmetric_product(x, c, alpha=0.5, beta=2.0, symmetrize_output=symmetrize)
        np.testing.assert_allclose(got, want, atol=1e-12)
    np.testing.assert_array_equal(got, np.asarray(got).swapaxes(1, 2))
    with pytest.raises(ShapeError, match="symmetric_product"):
        lax.linalg.symmetric_product(x, c[:, :2])


@pytest.mark.parametrize("scale", [1.0, 0.0, 1e3])
def test_updates_of_cholesky(scale):
    r = np.linalg.cholesky(SPD).swapaxes(1, 2)
    w = scale * RNG.normal(size=(2, 3))
    got = np.asarray(ft.jit(lax.linalg.cholesky_update)(r, w))
    want = np.linalg.cholesky(SPD + w[:, :, None] * w[:, None]).swapaxes(1, 2)
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ft.vmap(lax.linalg.cholesky_update)(r, w), want, rtol=1e-9, atol=1e-9)
    check_grads(lax.linalg.cholesky_update, (r[0], w[0] / max(scale, 1)), order=1)


def test_what_updates_refuse():
    with pytest.raises(ShapeError, match="cholesky_update got"):
        lax.linalg.cholesky_update(np.eye(3), np.ones(2))
    with pytest.raises(DtypeError, match="real"):
        lax.linalg.cholesky_update(np.eye(2) + 0j, fnp.ones(2) + 0j)
