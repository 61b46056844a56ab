"""custom_linear_solve and custom_root: derivatives of solutions of any solver, compared with NumPy."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.backends.xla import counters

RNG = np.random.default_rng(3)
A = RNG.normal(size=(3, 3)) + 4 * np.eye(3)
B = RNG.normal(size=3)
V = RNG.normal(size=3)


def same(got, want, rtol=1e-8):
    for g, w in zip(ft.tree.leaves(got), ft.tree.leaves(want), strict=True):
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=rtol, atol=1e-10)


def by_numpy(matvec, b):
    """A solver that cannot be differentiated or mapped."""
    matrix = ft.jacfwd(matvec)(fnp.zeros_like(b))
    return ft.pure_callback(np.linalg.solve, ft.ShapeDtypeStruct(b.shape, b.dtype), matrix, b, vmap_method="sequential")


def solution(a, b, **options):
    return lax.custom_linear_solve(lambda x: a @ x, b, by_numpy, by_numpy, **options)


def difference(f, *at, step=1e-4):
    """Return the gradients of a scalar function with respect to each argument, by central differences."""
    found = []
    for k, x in enumerate(at):
        x = np.asarray(x, np.float64)
        slope = np.zeros_like(x)
        for i in np.ndindex(*x.shape):
            moved = []
            for h in (step, -step, 2 * step, -2 * step):
                y = x.copy()
                y[i] += h
                moved.append(float(f(*at[:k], y, *at[k + 1 :])))
            slope[i] = (8 * (moved[0] - moved[1]) - (moved[2] - moved[3])) / (12 * step)
        found.append(slope)
    return found


def loss(a, b):
    return fnp.sum(V * solution(a, b) ** 2)


def meaning(a, b):
    return np.sum(V * np.linalg.solve(a, b) ** 2)


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_derivatives_are_those_of_the_solution(wrap):
    x = np.linalg.solve(A, B)
    back = np.linalg.solve(A.T, 2 * V * x)
    same(wrap(loss)(A, B), meaning(A, B))
    same(wrap(ft.grad(loss, (0, 1)))(A, B), (-np.outer(back, x), back))
    same(ft.grad(wrap(loss), (0, 1))(A, B), (-np.outer(back, x), back))
    same(wrap(ft.jacfwd(solution, 1))(A, B), np.linalg.inv(A))
    same(wrap(ft.jacrev(solution, 1))(A, B), np.linalg.inv(A))
    same(wrap(lambda a, b: ft.jvp(solution, (a, b), (A * 0.1, V))[1])(A, B), np.linalg.solve(A, V - 0.1 * A @ x))


def test_second_derivatives():
    slope_norm = lambda a, b: sum(fnp.sum(g * g) for g in ft.grad(loss, (0, 1))(a, b))

    def slope_norm_by_numpy(a, b):
        x = np.linalg.solve(a, b)
        back = np.linalg.solve(a.T, 2 * V * x)
        return np.sum(np.outer(back, x) ** 2) + np.sum(back**2)

    same(ft.grad(slope_norm, (0, 1))(A, B), difference(slope_norm_by_numpy, A, B), 1e-6)
    same(ft.hessian(loss, 1)(A, B), 2 * np.linalg.inv(A).T @ np.diag(V) @ np.linalg.inv(A))


def test_vmap_over_maps_and_right_hand_sides():
    many, sides = np.stack([A, A.T, A + 1]), np.stack([B, V, B * 2])
    for axes, pairs in [
        ((0, 0), list(zip(many, sides, strict=True))),
        ((None, 0), [(A, s) for s in sides]),
        ((0, None), [(m, B) for m in many]),
    ]:
        args = [many if axes[0] == 0 else A, sides if axes[1] == 0 else B]
        same(ft.vmap(solution, axes)(*args), np.stack([np.linalg.solve(a, b) for a, b in pairs]))
        slopes = [ft.grad(loss, (0, 1))(a, b) for a, b in pairs]
        same(
            ft.vmap(ft.grad(loss, (0, 1)), axes)(*args), [np.stack([np.asarray(s[k]) for s in slopes]) for k in (0, 1)]
        )
    total = lambda a, sides: ft.vmap(loss, (None, 0))(a, sides).sum()
    slopes = [ft.grad(loss, (0, 1))(A, s) for s in sides]
    same(
        ft.grad(total, (0, 1))(A, sides),
        (sum(np.asarray(s[0]) for s in slopes), np.stack([np.asarray(s[1]) for s in slopes])),
    )


def test_pytrees_aux_and_symmetry():
    s = A @ A.T
    matvec = lambda scale: lambda t: {"u": scale * (s @ t["u"]), "w": 3 * t["w"]}

    def solve(f, b):
        return {
            "u": fnp.linalg.solve(ft.jacfwd(lambda u: f({"u": u, "w": b["w"]})["u"])(b["u"]), b["u"]),
            "w": b["w"] / 3,
        }, {"steps": 7}

    def f(scale, b):
        x, aux = lax.custom_linear_solve(matvec(scale), b, solve, symmetric=True, has_aux=True)
        return fnp.sum(V * x["u"]) + x["w"], aux

    b = {"u": B, "w": np.ones(1)[0] * 2.0}
    (value, aux), slopes = ft.value_and_grad(f, (0, 1), has_aux=True)(2.0, b)
    x = np.linalg.solve(2 * s, B)
    same(value, V @ x + 2 / 3, 1e-6)
    assert int(aux["steps"]) == 7
    same(slopes[0], -V @ x / 2, 1e-5)
    same(slopes[1]["u"], np.linalg.solve(2 * s, V))
    same(slopes[1]["w"], 1 / 3, 1e-6)
    mapped = ft.vmap(lambda scale: f(scale, b))(np.array([2.0, 4.0]))
    same(mapped[0], np.array([V @ x + 2 / 3, V @ x / 2 + 2 / 3]), 1e-6)
    same(mapped[1]["steps"], np.array([7, 7]))


def test_complex_systems():
    a = A + 1j * RNG.normal(size=(3, 3))
    divide = lambda f, b: fnp.linalg.solve(ft.jacfwd(f, holomorphic=True)(b), b)
    f = lambda a, b: lax.custom_linear_solve(lambda x: a @ x, b, divide, divide)
    b = B + 1j * V
    same(f(a, b), np.linalg.solve(a, b))
    same(ft.jacrev(f, 1, holomorphic=True)(a, b), np.linalg.inv(a))
    _, pull = ft.vjp(f, a, b)
    back = np.linalg.solve(a.T, V + 0j)
    same(pull(fnp.asarray(V + 0j)), (-np.outer(back, np.linalg.solve(a, b)), back))


def test_nothing_is_compiled_again_for_the_same_functions():
    matvec, divide = (lambda x: 4 * x), (lambda f, b: b / f(fnp.ones_like(b)))
    run = lambda b: ft.grad(lambda b: lax.custom_linear_solve(matvec, b, divide, symmetric=True).sum())(b)
    b = ft.device_put(B)
    for _ in range(2):
        same(run(b), np.full(3, 0.25))
    before = counters.snapshot()
    run(b)
    after = counters.snapshot()
    assert all(after[c] == before[c] for c in ("traces", "modules", "compiles", "cache_hits"))


def test_messages():
    with pytest.raises(ft.errors.ShapeError) as caught:
        lax.custom_linear_solve(lambda x: x[:2], B, by_numpy)
    assert "matvec <lambda>" in str(caught.value) and "f64[3]" in str(caught.value) and "f64[2]" in str(caught.value)
    with pytest.raises(ft.errors.TreeError, match="solver <lambda>"):
        lax.custom_linear_solve(lambda x: x, B, lambda f, b: (b, b))
    with pytest.raises(ft.errors.TreeError, match="not a pair"):
        lax.custom_linear_solve(lambda x: x, B, lambda f, b: b, has_aux=True)
    with pytest.raises(ft.errors.DtypeError, match="i32"):
        lax.custom_linear_solve(lambda x: x * 2, np.arange(3, dtype=np.int32), lambda f, b: b / 2)
    one_way = lambda b: lax.custom_linear_solve(lambda x: 2 * x, b, lambda f, b: b / 2)
    same(ft.jvp(one_way, (B,), (V,))[1], V / 2)
    with pytest.raises(ft.errors.DifferentiationError, match="transpose_solve") as refused:
        ft.grad(lambda b: one_way(b).sum())(B)
    assert str(refused.value).startswith("linear_solve(f64[3], counts=") and "def " not in str(refused.value)
    with pytest.raises(ft.errors.DifferentiationError, match="linear"):
        lax.custom_linear_solve(lambda x: x * x, B, by_numpy, by_numpy)


# --------------------------------------------------------------------------------------------------------- custom_root
def newton(f, x):
    """A solver that iterates on the host and cannot be differentiated."""
    for _ in range(8):
        step = lax.stop_gradient(fnp.linalg.solve(ft.jacfwd(f)(x), f(x)))
        x = ft.pure_callback(lambda a: a, ft.ShapeDtypeStruct(x.shape, x.dtype), x - step, vmap_method="sequential")
    return x


def divide(g, y):
    return fnp.linalg.solve(ft.jacfwd(g)(y), y)


def balanced(a, b):
    """Return x with `x + a tanh(x) = b`."""
    return lax.custom_root(lambda x: x + a @ fnp.tanh(x) - b, fnp.zeros_like(b), newton, divide)


def balanced_by_numpy(a, b):
    x = np.zeros(3)
    for _ in range(60):
        t = np.tanh(x)
        x = x - np.linalg.solve(np.eye(3) + a * (1 - t * t), x + a @ t - b)
    return x


C = RNG.normal(size=(3, 3)) * 0.3


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_roots_are_differentiated_implicitly(wrap):
    f = lambda a, b: fnp.sum(V * balanced(a, b) ** 2)
    meaning = lambda a, b: np.sum(V * balanced_by_numpy(a, b) ** 2)
    same(wrap(balanced)(C, B), balanced_by_numpy(C, B))
    want = difference(meaning, C, B)
    same(wrap(ft.grad(f, (0, 1)))(C, B), want, 1e-7)
    same(ft.grad(wrap(f), (0, 1))(C, B), want, 1e-7)
    pushed = ft.jvp(wrap(f), (C, B), (C, V))[1]
    same(pushed, np.sum(want[0] * C) + np.sum(want[1] * V), 1e-7)


def test_second_derivatives_and_vmap_of_roots():
    f = lambda a, b: fnp.sum(V * balanced(a, b) ** 2)
    slope = lambda a, b: V @ ft.grad(f, 1)(a, b)
    want = difference(ft.jit(slope), C, B)
    same(ft.grad(slope, (0, 1))(C, B), want, 1e-6)
    sides = np.stack([B, V, B + V])
    each = [ft.grad(f, (0, 1))(C, s) for s in sides]
    same(ft.vmap(balanced, (None, 0))(C, sides), np.stack([balanced_by_numpy(C, s) for s in sides]))
    same(
        ft.vmap(ft.grad(f, (0, 1)), (None, 0))(C, sides),
        tuple(np.stack([np.asarray(e[k]) for e in each]) for k in (0, 1)),
    )
    total = ft.grad(lambda a: ft.vmap(f, (None, 0))(a, sides).sum())(C)
    same(total, sum(np.asarray(e[0]) for e in each))


def test_roots_of_pytrees_with_aux():
    def f(a):
        equation = lambda t: {"u": t["u"] * t["u"] - a, "w": t["w"] - 3 * t["u"]}

        def solve(f, guess):
            u = fnp.sqrt(lax.stop_gradient(a))
            return {"u": u, "w": 3 * u}, f(guess)["w"]

        def tangent_solve(g, y):
            u = y["u"] / g({"u": 1.0, "w": 0.0})["u"]
            return {"u": u, "w": y["w"] - g({"u": u, "w": 0.0})["w"]}

        x, aux = lax.custom_root(equation, {"u": 1.0, "w": 2.0}, solve, tangent_solve, has_aux=True)
        return x["w"], aux

    (value, aux), slope = ft.value_and_grad(f, has_aux=True)(4.0)
    same((value, slope, aux), (6.0, 0.75, -1.0), 1e-6)
    same(ft.grad(ft.grad(lambda a: f(a)[0]))(4.0), -3 / 32, 1e-6)
