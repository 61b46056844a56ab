"""Functions with paths under other transformations, and other transformations under paths."""

import numpy as np
import pytest
from support.python_paths import POSITIVE, branch, newton, paths

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors


@pytest.mark.parametrize("sign", [1, -1])
def test_derivatives(sign):
    f = paths(branch)
    for _ in range(2):
        for x in (sign * POSITIVE, -sign * POSITIVE):
            want = 3 * x**2 if x[0] > 0 else -0.5 / np.sqrt(-x)
            np.testing.assert_allclose(ft.grad(f)(x), want, rtol=1e-6)
            np.testing.assert_allclose(paths(ft.grad(branch))(x), want, rtol=1e-6)
            np.testing.assert_allclose(ft.jvp(f, (x,), (POSITIVE,))[1], want.sum(), rtol=1e-6)
    np.testing.assert_allclose(ft.hessian(f)(POSITIVE), 6 * np.eye(3), rtol=1e-6)
    np.testing.assert_allclose(paths(ft.hessian(branch))(POSITIVE), 6 * np.eye(3), rtol=1e-6)


def test_the_derivative_of_a_loop():
    f, g = paths(newton), paths(ft.grad(newton))
    for a in (2.0, 9.0, 100.0, 2.0):
        for derivative in (ft.grad(f)(a), g(a)):
            np.testing.assert_allclose(derivative, 0.5 / np.sqrt(a), rtol=1e-3)


def test_vmap_selects_for_each_element():
    xs = np.array([2, 9, 100, 1, 3], np.float32)
    np.testing.assert_allclose(ft.vmap(paths(newton))(xs), np.sqrt(xs), rtol=1e-4)
    f, rows = paths(branch), np.stack([POSITIVE, -POSITIVE, 2 * POSITIVE, -2 * POSITIVE])
    want = np.where(rows > 0, 3 * rows**2, -0.5 / np.sqrt(np.abs(rows)))
    np.testing.assert_allclose(ft.vmap(ft.grad(f))(rows), want, rtol=1e-5)
    np.testing.assert_allclose(ft.grad(lambda rows: ft.vmap(f)(rows).sum())(rows), want, rtol=1e-5)


def test_vmap_refuses_elements_of_other_shapes():
    f = paths(lambda x, n: x[: int(n)])
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    with pytest.raises(errors.ConcretizationError, match="differ in shape"):
        ft.vmap(f)(x, np.array([1, 2]))
    np.testing.assert_array_equal(ft.vmap(f)(x, np.array([2, 2])), x[:, :2])


def test_paths_inside_of_paths():
    inner = paths(branch)
    f = paths(lambda x: inner(x) + 1 if x[0] > 0 else inner(x) - 1)
    for x in (POSITIVE, -POSITIVE, POSITIVE):
        np.testing.assert_allclose(f(x), 4 if x[0] > 0 else 2)


def test_checkpoint_and_custom_rules_inside():
    @ft.custom_jvp
    def double(x):
        return 2 * x

    double.defjvp(lambda primals, tangents: (double(primals[0]), 5 * tangents[0]))

    @paths
    def f(x):
        y = ft.checkpoint(fnp.sin)(x)
        return double(y) if y > 0 else y

    for x in (1.0, -1.0, 1.0, -1.0):
        np.testing.assert_allclose(f(x), np.sin(x) * (2 if x > 0 else 1), rtol=1e-6)
        np.testing.assert_allclose(ft.grad(f)(x), np.cos(x) * (5 if x > 0 else 1), rtol=1e-6)


def test_float_under_a_derivative_says_what_would_be_lost():
    with pytest.raises(errors.ConcretizationError, match="would lose its derivative"):
        paths(ft.grad(lambda x: x * float(x)))(2.0)
    with pytest.raises(errors.ConcretizationError, match="would lose its derivative"):
        ft.grad(paths(lambda x: x * float(x)))(2.0)


LOSING = {
    "float": lambda x: x[0] * float(x[0] * 2),
    "item": lambda x: (x * x.sum().item()).sum(),
    "tolist": lambda x: sum(v * a for v, a in zip(x.tolist(), x, strict=True)),
    "numpy.asarray": lambda x: (np.asarray(x) * x).sum(),
}


@pytest.mark.parametrize("what", LOSING)
@pytest.mark.parametrize(
    "derive",
    [
        lambda f, x: ft.grad(f)(x),
        lambda f, x: ft.jvp(f, (x,), (x,)),
        lambda f, x: ft.vmap(ft.grad(f))(x[None]),
        lambda f, x: ft.grad(lambda rows: ft.vmap(f)(rows).sum())(x[None]),
        lambda f, x: ft.hessian(f)(x),
    ],
    ids=["grad", "jvp", "vmap of grad", "grad of vmap", "hessian"],
)
def test_numbers_that_python_takes_on_a_path_lose_no_derivative_in_silence(what, derive):
    f = paths(LOSING[what])
    f(POSITIVE)
    with pytest.raises(errors.ConcretizationError, match="would lose its derivative") as caught:
        derive(f, POSITIVE)
    assert "test_transformed_paths.py" in str(caught.value)


def test_numbers_that_have_no_derivative_may_be_taken():
    f = paths(lambda x, n: x * float(ft.lax.stop_gradient(x)) + fnp.floor(x).item() * x + x * float(n) * int(x))
    np.testing.assert_allclose(ft.grad(f)(2.5, 3.0), 2.5 + 2 + 6)
    np.testing.assert_allclose(ft.vmap(ft.grad(f))(np.array([2.5, 2.5], np.float32), np.full(2, 3.0)), 2.5 + 2 + 6)


def test_constants_of_paths_that_come_later_change_no_derivative():
    first, second = fnp.full(3, 2.0), fnp.full(3, 5.0)
    f = paths(lambda x: (x * first).sum() * float(ft.lax.stop_gradient(x[0])) if x[0] > 0 else (x * second).sum())
    for x in (POSITIVE, -POSITIVE, POSITIVE, 2 * POSITIVE):
        np.testing.assert_allclose(ft.grad(f)(x), 2 * x if x[0] > 0 else 5 * np.ones(3))
