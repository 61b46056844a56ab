"""`debug.stale_programs`: a jitted function whose code gives another program than the one that runs."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.backends.settings import SETTINGS

X = np.array([1.0, 2.0], np.float32)
FACTOR, WEIGHTS = 2.0, fnp.ones(2)


class Settings:
    """An object whose attribute a function reads."""

    factor = 2.0


def made():
    """Return a function that no earlier test has traced: functions share their traces."""

    def scaled(x):
        return x * FACTOR + WEIGHTS

    return ft.jit(scaled)


def test_without_the_check_the_earlier_program_runs(monkeypatch):
    f = made()
    np.testing.assert_array_equal(f(X), [3, 5])
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    np.testing.assert_array_equal(f(X), [3, 5])


@pytest.mark.parametrize("first", ["before", "inside"])
def test_a_changed_global_is_an_error_with_both_equations(monkeypatch, first):
    f = made()
    if first == "before":
        f(X)
    with ft.debug.stale_programs():
        for _ in range(3):
            np.testing.assert_array_equal(f(X), [3, 5])
        monkeypatch.setitem(globals(), "FACTOR", 3.0)
        for _ in range(2):
            with pytest.raises(ft.errors.StaleProgramError, match=r"program of scaled is stale") as raised:
                f(X)
        text = str(raised.value)
        assert "before: " in text and "2.0" in text and "now: " in text and "3.0" in text and "test_stale" in text
        f.clear_cache()
        np.testing.assert_array_equal(f(X), [4, 7])


def test_changed_arrays_are_named_and_equal_ones_are_not_changed(monkeypatch):
    f = made()
    with ft.debug.stale_programs():
        f(X)
        monkeypatch.setitem(globals(), "WEIGHTS", fnp.ones(2))
        f(X)
        monkeypatch.setitem(globals(), "WEIGHTS", 2 * fnp.ones(2))
        with pytest.raises(
            ft.errors.StaleProgramError, match=r"WEIGHTS, a f32\[2\] that it closes over, has other val"
        ):
            f(X)


def _attribute():
    settings = Settings()
    return ft.jit(lambda x: x * settings.factor), lambda: setattr(settings, "factor", 3.0)


def _variable():
    factor = 2.0

    def change():
        nonlocal factor
        factor = 3.0

    return ft.jit(lambda x: x * factor), change


def _structure():
    names = ["a"]
    return ft.jit(lambda x: dict.fromkeys(names, x)), lambda: names.append("b")


def _called_function():
    factors = [2.0]
    inner = ft.jit(lambda x: x * factors[0])
    return ft.jit(lambda x: inner(x) + 1), lambda: factors.insert(0, 3.0)


def _static():
    factors = [2.0]
    f = ft.jit(lambda x, n: x * n * factors[0], static_argnums=1)
    return lambda x: f(x, 2), lambda: factors.insert(0, 3.0)


def _donated():
    factors = [2.0]
    f = ft.jit(lambda x: x * factors[0], donate_argnums=0)
    return lambda x: f(fnp.asarray(x)), lambda: factors.insert(0, 3.0)


def _body_of_a_loop():
    factors = [2.0]
    f = ft.jit(lambda x: lax.scan(lambda c, y: (c * factors[0] + y, None), x[0], x)[0])
    return f, lambda: factors.insert(0, 3.0)


def _paths_without_guards():
    factors = [2.0]
    return ft.jit(lambda x: x * factors[0], control_flow="paths"), lambda: factors.insert(0, 3.0)


@pytest.mark.parametrize(
    "make",
    [
        _attribute, _variable, _structure, _called_function, _static, _donated, _body_of_a_loop, _paths_without_guards,
    ],
)  # fmt: skip
@pytest.mark.parametrize("transform", ["call", "grad", "vmap"])
def test_what_a_function_reads_is_found_in_any_place(make, transform):
    f, change = make()
    total = lambda x: sum(fnp.sum(leaf) for leaf in ft.tree.leaves(f(x)))
    if transform == "grad" and make is _donated:
        pytest.skip("a donated argument has no gradient")
    run = {"call": f, "grad": ft.grad(total), "vmap": lambda x: ft.vmap(f)(fnp.stack([x, x]))}[transform]
    with ft.debug.stale_programs():
        run(X)
        run(X)
        change()
        with pytest.raises(ft.errors.StaleProgramError):
            run(X)


def test_random_numbers_of_numpy_are_found_at_once():
    f = ft.jit(lambda x: x + np.random.default_rng().random())
    with ft.debug.stale_programs(), pytest.raises(ft.errors.StaleProgramError):
        f(X)


def test_paths_are_traced_at_each_call():
    factors = [2.0]
    f = ft.jit(lambda x: x * factors[0] if x[0] > 0 else x - factors[0], control_flow="paths")
    np.testing.assert_array_equal(f(X), [2, 4])
    with ft.debug.stale_programs():
        np.testing.assert_array_equal(f(X), [2, 4])
        factors[0] = 3.0
        np.testing.assert_array_equal(f(X), [3, 6])
        np.testing.assert_array_equal(f(-X), [-4, -5])
        factors[0] = 4.0
        np.testing.assert_array_equal(f(-X), [-5, -6])
        np.testing.assert_array_equal(ft.vmap(f)(fnp.stack([X, -X])), [[4, 8], [-5, -6]])
        np.testing.assert_array_equal(ft.grad(lambda x: fnp.sum(f(x)))(X), [4, 4])


@ft.custom_vjp
def doubled(x):
    return x * 2


doubled.defvjp(lambda x: (x * 2, x), lambda x, g: (g * 2,))

PURE = {
    "scan": lambda x: lax.scan(lambda c, y: (c + y, c), x[0], x),
    "cond": lambda x: lax.cond(x[0] > 0, lambda y: y * 2, lambda y: y, x),
    "while_loop": lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: c + 1, x),
    "custom_vjp": ft.grad(lambda x: fnp.sum(doubled(x))),
    "checkpoint": ft.grad(lambda x: fnp.sum(ft.checkpoint(lambda y: fnp.sin(y) * y)(x))),
    "callback": lambda x: ft.pure_callback(lambda v: 2 * np.asarray(v), ft.ShapeDtypeStruct(x.shape, x.dtype), x),
    "random": lambda x: x + ft.random.normal(ft.random.key(0), x.shape),
    "inner jit": lambda x: ft.vmap(lambda a: ft.jit(lambda b: b * 2)(a))(x),
    "NumPy's array": lambda x: x + np.arange(2),
    "NaN": lambda x: x * np.array([np.nan, 1.0], np.float32),
    "hessian": ft.hessian(lambda x: fnp.sum(x**3)),
    "solve": lambda x: fnp.linalg.solve(fnp.eye(2), x),
}


@pytest.mark.parametrize("name", PURE)
def test_pure_functions_pass(name):
    f = ft.jit(PURE[name])
    want = f(X)
    with ft.debug.stale_programs():
        for _ in range(3):
            got = f(X)
    ft.tree.map(np.testing.assert_array_equal, got, want)


def test_the_setting_is_for_all_threads_and_blocks_end():
    factors = [2.0]
    f = ft.jit(lambda x: x * factors[0])
    f(X)
    factors[0] = 3.0
    try:
        ft.debug.set_stale_programs(True)
        assert SETTINGS["debug.stale_programs"].value is True
        with pytest.raises(ft.errors.StaleProgramError):
            f(X)
        with ft.debug.stale_programs(False):
            f(X)
    finally:
        ft.debug.set_stale_programs(False)
    f(X)
