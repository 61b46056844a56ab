"""Many small systems, which CPUs solve without LAPACK, against NumPy in float64."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp


def matrices(n, dtype):
    """Matrices of condition numbers up to some thousand; pivots may be in any row."""
    x = np.random.default_rng(n).normal(size=(40, 5, n, n))
    return x[np.linalg.cond(x).max(axis=1) < 2000].astype(dtype)


def close(found, expected, x, power=1):
    """Compare matrix by matrix, relative to the greatest entry and to the condition number."""
    eps = np.finfo(x.dtype).eps
    size = np.abs(expected).max(axis=(-2, -1))
    error = np.abs(np.asarray(found, np.float64) - expected).max(axis=(-2, -1))
    assert (error <= 8 * power * eps * size * np.linalg.cond(x.astype(np.float64))).all()


@pytest.mark.parametrize("n", [2, 3, 4])
def test_inverses_solutions_and_gradients(n):
    x = matrices(n, np.float32)
    assert len(x) * 5 >= 64
    exact = np.linalg.inv(x.astype(np.float64))
    b = np.random.default_rng(9).normal(size=(*x.shape[:-1], 2)).astype(np.float32)
    close(ft.jit(fnp.linalg.inv)(x), exact, x)
    close(ft.jit(fnp.linalg.solve)(x, b), exact @ b.astype(np.float64), x)
    gradient = ft.jit(ft.grad(lambda x: fnp.sum(fnp.linalg.inv(x) ** 2)))(x)
    turned = np.swapaxes(exact, -1, -2)
    close(gradient, -2 * turned @ exact @ turned, x, power=4)


@pytest.mark.parametrize("n", [2, 3])
def test_singular_and_extreme_matrices(n):
    x = np.tile(np.eye(n, dtype=np.float32), (70, 1, 1))
    x[0] = 1
    x[1] = 0
    x[2] = np.diag([1e-30] + [1e30] * (n - 1))
    x[3] = np.nan
    x[4, 0, 0] = np.inf
    inverse = np.asarray(ft.jit(fnp.linalg.inv)(x))
    assert not np.isfinite(inverse[[0, 1, 3]]).all(axis=(1, 2)).any()
    np.testing.assert_allclose(inverse[2], np.linalg.inv(x[2].astype(np.float64)), rtol=1e-6)
    np.testing.assert_array_equal(inverse[5:], x[5:])
    sign, logarithm = ft.jit(fnp.linalg.slogdet)(x[:3])
    assert sign.tolist() == [0, 0, 1] and logarithm[:2].tolist() == [-np.inf, -np.inf]
