"""experimental.ode against SciPy's solvers and finite differences."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.experimental.ode import odeint
from functorch_like.testing import check_grads

Y0, M, G = np.array([1.0, 0.3]), np.float64(0.25), np.float64(9.8)


def pendulum(y, t, m, g):
    return fnp.stack([y[1], -m * y[1] - g * fnp.sin(y[0]) + 0.1 * t])


def exact(times):
    field = lambda t, y: [y[1], -M * y[1] - G * np.sin(y[0]) + 0.1 * t]
    return solve_ivp(field, (times[0], times[-1]), Y0, "DOP853", times, rtol=1e-12, atol=1e-12).y.T


@pytest.mark.parametrize("count", [3, 400])
def test_solutions(count):
    times = np.linspace(0.5, 4, count)
    steps = []

    def told(y, t, m, g):
        ft.debug.callback(lambda t: steps.append(t), t)
        return pendulum(y, t, m, g)

    got = odeint(told, Y0, times, M, G, rtol=1e-9, atol=1e-9)
    ft.effects_barrier()
    assert got.shape == (count, 2) and got.dtype == np.float64
    np.testing.assert_allclose(got, exact(times), atol=2e-7)
    assert len(steps) < 1500  # times between two steps cost no further steps


def test_single_precision_pytrees_and_batches():
    field = lambda y, t, args: {"a": -args["rate"] * y["a"], "b": y["a"].sum()}
    times = np.linspace(0, 1, 5).astype(np.float32)
    start = {"a": np.ones(3, np.float32), "b": np.float32(0)}
    solve = lambda rate: odeint(field, start, times, {"rate": rate, "power": 2}, rtol=1e-5, atol=1e-6)
    got = ft.jit(ft.vmap(solve))(np.array([0.5, 2.0], np.float32))
    assert got["a"].shape == (2, 5, 3) and got["b"].shape == (2, 5) and got["a"].dtype == np.float32
    np.testing.assert_allclose(got["a"][1, :, 0], np.exp(-2 * times), rtol=1e-4)
    np.testing.assert_allclose(got["b"][0], 3 * (1 - np.exp(-0.5 * times)) / 0.5, atol=1e-4)
    assert odeint(lambda y, t: -y, np.ones(2), np.zeros(1)).tolist() == [[1.0, 1.0]]


def test_derivatives():
    times = np.array([0.1, 0.5, 1.3])
    solve = lambda y0, t, m, g: odeint(pendulum, y0, t, m, g, rtol=1e-10, atol=1e-10)
    check_grads(solve, (Y0, times, M, G), order=1, modes=("rev",))
    closed = ft.grad(lambda m: odeint(lambda y, t: pendulum(y, t, m, G), Y0, times)[-1, 0])(M)
    passed = ft.grad(lambda m: odeint(pendulum, Y0, times, m, G)[-1, 0])(M)
    np.testing.assert_allclose(closed, passed, rtol=1e-6)


def test_complex_numbers_turn():
    times = np.linspace(0, 2, 4)
    np.testing.assert_allclose(odeint(lambda y, t: 1j * y, np.complex128(1), times), np.exp(1j * times), atol=1e-6)


def test_steps_are_limited():
    stopped = odeint(pendulum, Y0, np.array([0.0, 1e-9, 50.0]), M, G, mxstep=3)
    assert np.isfinite(stopped[1]).all() and np.isnan(stopped[2]).all()
    burst = odeint(lambda y, t: y * y, np.float64(1.0), np.array([0.0, 0.5, 2.0]))
    np.testing.assert_allclose(burst[1], 2.0, rtol=1e-6)
    assert np.isnan(burst[2])  # the solution 1 / (1 - t) ends at t = 1


def test_wrong_arguments():
    with pytest.raises(ShapeError, match="not a vector"):
        odeint(pendulum, Y0, 1.0, M, G)
    with pytest.raises(DtypeError, match="int"):
        odeint(pendulum, np.arange(2), np.zeros(2), M, G)
    with pytest.raises(ShapeError, match="1 elements of 2"):
        odeint(lambda y, t: y[0], Y0, np.arange(2.0))
    with pytest.raises(ArgumentError, match="rtol=-1"):
        odeint(pendulum, Y0, np.arange(2.0), M, G, rtol=-1)
