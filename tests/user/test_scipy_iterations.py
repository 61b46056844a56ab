"""Iterative algorithms: scipy.sparse.linalg's solvers, scipy.optimize.minimize."""

import numpy as np
import pytest
import scipy.optimize

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.errors import ArgumentError, DtypeError, FtError, ShapeError, TreeError
from functorch_like.scipy import optimize, sparse
from functorch_like.testing import check_grads

RNG = np.random.default_rng(0)
A = RNG.normal(size=(8, 8))
SPD, B = A @ A.T + np.eye(8), RNG.normal(size=8)
Z = A + 1j * RNG.normal(size=A.shape)
SOLVERS = {"cg": SPD, "bicgstab": A + 8 * np.eye(8), "gmres": A + 3 * np.eye(8)}


# ------------------------------------------------------------------------------------------------------ linear systems
@pytest.mark.parametrize("name", SOLVERS)
def test_systems(name):
    solve, a = getattr(sparse.linalg, name), SOLVERS[name]
    want = np.linalg.solve(a, B)
    near = np.diag(1 / np.diag(a))
    for given in ({}, {"M": near}, {"M": lambda x: near @ x}, {"x0": want + 1e-3}):
        x, info = solve(a, B, tol=1e-12, **given)
        np.testing.assert_allclose(x, want, rtol=1e-8, atol=1e-9)
        assert info == 0
    narrow = a.astype(np.float32)
    tree, info = solve(lambda x: {"u": narrow @ x["u"]}, {"u": B.astype(np.float32)}, tol=1e-5)
    np.testing.assert_allclose(tree["u"], want, rtol=1e-3, atol=1e-3)
    assert tree["u"].dtype == np.float32
    stack = ft.vmap(lambda b: solve(a, b, tol=1e-12)[0])(np.stack([B, 2 * B]))
    np.testing.assert_allclose(stack[1], 2 * want, rtol=1e-8, atol=1e-9)
    assert solve(a, 0 * B)[0].tolist() == [0.0] * 8 and solve(np.zeros((0, 0)), np.zeros(0))[0].shape == (0,)
    of_integers = solve(2 * np.eye(2), np.array([2, 4]))[0]
    assert of_integers.tolist() == [1.0, 2.0] and of_integers.dtype == np.float64


@pytest.mark.parametrize("name", SOLVERS)
def test_derivatives_of_solutions(name):
    solve, a = getattr(sparse.linalg, name), SOLVERS[name]
    near = np.diag(1 / np.diag(a))
    check_grads(lambda a, b: solve(a, b, tol=1e-13, M=near)[0], (a, B), order=1)


@pytest.mark.parametrize("name", SOLVERS)
def test_complex_systems(name):
    a = Z @ Z.conj().T + np.eye(8) if name == "cg" else Z + 12 * np.eye(8)
    x, info = getattr(sparse.linalg, name)(a, B + 1j, tol=1e-11)
    np.testing.assert_allclose(a @ np.asarray(x), B + 1j, atol=1e-8)
    assert info == 0


def test_steps_are_limited_and_reported():
    for solve, given in ((sparse.linalg.cg, {}), (sparse.linalg.bicgstab, {}), (sparse.linalg.gmres, {"restart": 2})):
        assert solve(SPD, B, tol=1e-12, maxiter=2, **given)[1] == 2
        assert solve(SPD, B, tol=0.0, atol=1e3)[0].tolist() == [0.0] * 8
    x, _ = sparse.linalg.gmres(A + 8 * np.eye(8), B, tol=1e-12, restart=3)
    np.testing.assert_allclose(x, np.linalg.solve(A + 8 * np.eye(8), B), rtol=1e-8)
    # The Krylov space is exhausted before the restart.
    np.testing.assert_allclose(sparse.linalg.gmres(np.eye(3), B[:3])[0], B[:3])


def test_operators_that_do_not_fit():
    with pytest.raises(TreeError, match="x0"):
        sparse.linalg.cg(SPD, B, x0={"u": B})
    with pytest.raises(ShapeError, match="x0"):
        sparse.linalg.cg(SPD, B, x0=B[:3])
    with pytest.raises(ArgumentError, match="a matrix"):
        sparse.linalg.cg(B, B)
    with pytest.raises(ArgumentError, match="restart=0"):
        sparse.linalg.gmres(SPD, B, restart=0)
    with pytest.raises(FtError):
        sparse.linalg.cg(lambda x: x[:3], B)


# -------------------------------------------------------------------------------------------------------------- minima
def rosenbrock(x):
    return fnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS"])
def test_minima(method):
    found = ft.jit(lambda x: optimize.minimize(rosenbrock, x, method=method, tol=1e-8))(np.zeros(6))
    np.testing.assert_allclose(found.x, 1.0, rtol=1e-7)
    assert found.success and found.status == 0 and abs(found.jac).max() <= 1e-8
    assert (
        found.nfev < 2 * scipy.optimize.minimize(scipy.optimize.rosen, np.zeros(6), jac=scipy.optimize.rosen_der).nfev
    )
    assert (found.hess_inv is None) == (method == "L-BFGS")
    short = optimize.minimize(rosenbrock, np.zeros(6), method=method, options={"maxiter": 3})
    assert short.nit == 3 and short.status == 1 and not short.success


def test_minima_of_pytrees_and_batches():
    cost = lambda p, target: ((p["w"] - target) ** 2).sum() + (p["b"] - 3) ** 4
    found = optimize.minimize(cost, {"w": np.zeros((2, 2)), "b": np.float64(2.5)}, (np.eye(2),))
    np.testing.assert_allclose(found.x["w"], np.eye(2), atol=1e-5)
    assert found.jac["b"].shape == () and found.hess_inv.shape == (5, 5)
    each = ft.vmap(lambda a: optimize.minimize(lambda x: ((x - a) ** 2).sum() + x[0] ** 4, np.ones(2)).x)
    batch = each(np.array([1.0, -2.0]))
    alone = optimize.minimize(lambda x: ((x + 2.0) ** 2).sum() + x[0] ** 4, np.ones(2)).x
    np.testing.assert_allclose(batch[1], alone, rtol=1e-6)


def test_quadratics():
    found = optimize.minimize(lambda x: x @ SPD @ x / 2 - B @ x, np.zeros(8), tol=1e-9)
    np.testing.assert_allclose(found.x, np.linalg.solve(SPD, B), rtol=1e-6, atol=1e-8)
    inverse = np.asarray(found.hess_inv)
    np.testing.assert_allclose(inverse, inverse.T, atol=1e-12)
    np.testing.assert_allclose(inverse, np.linalg.inv(SPD), atol=0.2 * abs(np.linalg.inv(SPD)).max())


def test_what_has_no_minimum():
    down = optimize.minimize(lambda x: x.sum(), np.zeros(2), options={"maxiter": 5})
    assert not down.success
    assert optimize.minimize(lambda x: x.sum() * fnp.nan, np.zeros(2)).status == 3
    kink = optimize.minimize(lambda x: abs(x).sum(), np.array([0.3]), options={"maxiter": 50})
    assert abs(kink.x.item()) < 1e-3


def test_wrong_arguments():
    with pytest.raises(ArgumentError, match="'Powell'"):
        optimize.minimize(rosenbrock, np.zeros(2), method="Powell")
    with pytest.raises(ArgumentError, match="ftol"):
        optimize.minimize(rosenbrock, np.zeros(2), options={"ftol": 1})
    with pytest.raises(DtypeError, match="int"):
        optimize.minimize(rosenbrock, np.zeros(2, int))
    with pytest.raises(ShapeError, match="scalar"):
        optimize.minimize(lambda x: x, np.zeros(2))
