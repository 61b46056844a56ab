"""Number of traces and compilations of repeated calls: counted, not timed."""

import dataclasses
import gc
import threading

import numpy as np
import pytest
from support import background

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.backends.xla import counters

X = np.linspace(0.1, 0.9, 3, dtype=np.float32)


class Counted:
    """A function that counts how often Python runs it."""

    def __init__(self, fun):
        self.fun, self.calls, self.__name__ = fun, 0, "counted"

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.fun(*args, **kwargs)


def cube(x):
    return fnp.sum(x * x * x)


def slope(x):
    return 3 * np.asarray(x, np.float64) ** 2


KEPT = {
    "jit": (lambda f: ft.jit(f), lambda x: np.sum(np.asarray(x, np.float64) ** 3)),
    "grad of jit": (lambda f: ft.grad(ft.jit(f)), slope),
    "jit of grad": (lambda f: ft.jit(ft.grad(f)), slope),
    "vmap of jit": (lambda f: ft.vmap(ft.jit(f)), lambda x: np.asarray(x, np.float64) ** 3),
    "jit of vmap": (lambda f: ft.jit(ft.vmap(f)), lambda x: np.asarray(x, np.float64) ** 3),
    "grad of jit of jit": (lambda f: ft.grad(ft.jit(ft.jit(f))), slope),
    "jit of grad of vmap": (lambda f: ft.jit(ft.grad(lambda x: ft.vmap(f)(x).sum())), slope),
    "vmap of grad of jit": (lambda f: ft.vmap(ft.grad(ft.jit(f))), slope),
    "grad of grad of jit": (
        lambda f: ft.grad(lambda x: ft.grad(ft.jit(f))(x).sum()),
        lambda x: 6 * np.asarray(x, np.float64),
    ),
    "jvp of jit": (
        lambda f: (lambda g: lambda x: ft.jvp(g, (x,), (fnp.ones_like(x),))[1])(ft.jit(f)),
        lambda x: np.sum(slope(x)),
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_kept_function_is_traced_and_compiled_once(name):
    transform, want = KEPT[name]
    counted = Counted(cube)
    kept = transform(counted)
    np.testing.assert_allclose(kept(X), want(X), rtol=1e-5)
    assert counted.calls == 1
    before = counters.snapshot()
    for shift in (0.25, 0.5):
        np.testing.assert_allclose(kept(X + np.float32(shift)), want(X + np.float32(shift)), rtol=1e-5)
    after = counters.since(before)
    assert counted.calls == 1
    assert {k: n for k, n in after.items() if k in ("compiles", "modules", "cache_hits")} == {}


def test_a_call_the_fast_path_knows_does_not_come_back_to_python():
    f = ft.jit(lambda x, y: x * y + 1.0)
    x = fnp.asarray(X)
    f(x, x)
    before = counters.snapshot()
    for _ in range(5):
        f(x, x)
    assert counters.since(before) == {}


SIGNATURES = {
    "shape": (np.ones(3, np.float32), np.ones(4, np.float32)),
    "rank": (np.ones(3, np.float32), np.ones((3, 1), np.float32)),
    "dtype": (np.ones(3, np.float32), np.ones(3, np.float64)),
    "weak type": (2.0, np.ones((1,), np.float32)[0:1].reshape(())),
    "kind of number": (2.0, 2),
    "structure": ((X, X), [X, X]),
    "keys": ({"a": X}, {"b": X}),
    "None": ((X, None), (None, X)),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_another_signature_is_traced_anew_and_the_first_is_kept(name):
    first, second = SIGNATURES[name]
    if name == "weak type":
        second = fnp.asarray(second)  # a rank-0 NumPy value would be weakly typed, like the number
    counted = Counted(lambda p: p)
    f = ft.jit(counted)
    f(first)
    f(second)
    assert counted.calls == 2
    f(first)
    f(second)
    assert counted.calls == 2


def test_static_values_are_distinguished_by_type():
    counted = Counted(lambda x, n: (x * n, type(n)))

    def fun(x, n):
        counted.calls += 1
        seen.append(type(n))
        return x * n

    seen = []
    f = ft.jit(fun, static_argnums=1)
    for n in (1, 1.0, True, 2, 1, 1.0, True, 2):
        np.testing.assert_allclose(f(X, n), X * float(n))
    assert seen == [int, float, bool, int]
    assert counted.calls == 4


@dataclasses.dataclass(frozen=True)
class Options:
    scale: object


HELD = {
    "tuples": ((1,), (1.0,), (True,), (np.float32(1),)),
    "nested": (((1, 2), "a"), ((1.0, 2), "a"), ((1, True), "a")),
    "frozensets": (frozenset({1}), frozenset({1.0})),
    "dataclasses": (Options(1), Options(1.0), Options((1,)), Options((1.0,))),
    "zeros": (0.0, -0.0, 0j, -0j, np.float32(0.0), np.float32(-0.0), (0.0,), (-0.0,), Options(0.0), Options(-0.0)),
}


@pytest.mark.parametrize("name", HELD)
@pytest.mark.parametrize("how", ["position", "name"])
def test_static_values_are_distinguished_by_types_and_signs_inside_of_them(name, how):
    seen = []
    f = ft.jit(lambda x, n: seen.append(n) or x, static_argnames="n")
    call = (lambda n: f(X, n)) if how == "position" else (lambda n: f(X, n=n))
    for _ in range(2):
        for value in HELD[name]:
            call(value)
    assert [repr(s) for s in seen] == [repr(value) for value in HELD[name]]


def test_a_setting_recompiles_and_back_again_hits():
    counted = Counted(lambda x: x * 2.0 + fnp.zeros(3))
    f = ft.jit(counted)
    assert f(X).dtype == np.float32
    try:
        ft.set_default_dtype("float64")
        assert f(X).dtype == np.float64
        assert counted.calls == 2
    finally:
        ft.set_default_dtype("float32")
    assert f(X).dtype == np.float32
    assert counted.calls == 2


def test_clear_cache_forgets():
    counted = Counted(cube)
    f = ft.jit(counted)
    f(X)
    f.clear_cache()
    f(X)
    f(X)
    assert counted.calls == 2


def test_jit_of_the_same_function_shares_its_trace():
    counted = Counted(cube)
    for _ in range(3):
        ft.jit(counted)(X)
    assert counted.calls == 1


def test_donation_and_static_choices_are_not_shared():
    def fun(x, n=2):
        return x * n

    x = np.ones(16, np.float32)
    plain, donating = ft.jit(fun), ft.jit(fun, donate_argnums=0)
    static = ft.jit(fun, static_argnames="n")
    for _ in range(2):
        a = ft.device_put(x)
        np.testing.assert_array_equal(plain(a), 2 * x)
        assert not a.is_deleted()
        np.testing.assert_array_equal(static(a, n=3), 3 * x)
        assert not a.is_deleted()
        np.testing.assert_array_equal(donating(a), 2 * x)
        assert a.is_deleted()


def test_threads_calling_one_function_agree():
    counted = Counted(lambda x: fnp.sum(fnp.sin(x) * x))
    f = ft.jit(ft.value_and_grad(counted))
    results: list[object] = []
    gate = threading.Barrier(6)

    def work(k):
        x = np.full(3, 0.1 * (k + 1), np.float32)
        gate.wait()
        for _ in range(20):
            value, slopes = f(x)
            want = np.sin(x.astype(np.float64)) * x
            results.append(np.allclose(value, want.sum(), rtol=1e-5))
            results.append(np.allclose(slopes, np.cos(x) * x + np.sin(x), rtol=1e-5))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(results) == 240 and all(results)
    assert counted.calls == 1


def test_threads_do_not_see_each_others_transformations():
    """One thread evaluates while another one traces."""
    inside, done = threading.Event(), threading.Event()
    found: list[object] = []

    def other():
        inside.wait(10)
        found.append(float(ft.jit(lambda x: x + 1.0)(1.0)))
        found.append(float(fnp.sin(np.float32(0.0)) + 1.0))
        done.set()

    thread = threading.Thread(target=other)
    thread.start()

    @ft.jit
    def slow(x):
        inside.set()
        done.wait(10)
        return ft.grad(lambda y: y * y)(x)

    assert float(slow(3.0)) == 6.0
    thread.join()
    assert found == [2.0, 1.0]


def test_large_numpy_arrays_find_their_programs():
    # On some versions of jaxlib, C++ cannot take large NumPy arrays directly, and each call goes through Python.
    x, mul = np.ones(20_000, np.float32), ft.extend.primitives()["mul"]
    calls = (lambda: fnp.add(x, x), lambda: mul(x, x), lambda: ft.jit(fnp.sum)(x))
    for call in calls:
        call()
    before = counters.snapshot()
    for call in calls:
        call()
    assert not {"traces", "modules", "compiles", "cache_hits"} & set(counters.since(before))


def test_equal_programs_for_numbers_and_arrays_keep_their_weak_types_apart():
    make = lambda: ft.jit(lambda x: fnp.sin(x))
    weak = [ft.value_and_grad(make())(v)[0].weak_type for v in (1.0, fnp.float32(1.0), 1.0)]
    assert weak == [True, False, True]


def test_clear_caches_forgets_everything_and_nothing_breaks():
    from functorch_like.compiler.program import Program
    from functorch_like.ir.jaxpr import Jaxpr

    def kept():
        gc.collect()
        return [o for o in gc.get_objects() if type(o) in (Jaxpr, Program)]

    counted = Counted(cube)
    compiled = ft.jit(counted)
    product = lambda a, b: a * b + 0 * a
    f = lambda x: (
        compiled(x),
        ft.grad(ft.jit(cube))(x),
        fnp.tanh(x) + x,
        ft.lax.map(fnp.sin, x),
        ft.lax.reduce(x, 1.0, product, (0,)),
    )
    ft.clear_caches()
    earlier = {id(o) for o in kept()}
    first = f(X)
    assert len({id(o) for o in kept()} - earlier) > 5
    background.finish()
    ft.clear_caches()
    assert {id(o) for o in kept()} <= earlier  # ids of objects that died meanwhile may be reused
    before = counters.snapshot()
    for a, b in zip(first, f(X), strict=True):
        np.testing.assert_array_equal(a, b)
    assert counters.since(before)["traces"] >= 2
    assert counted.calls == 2
    before = counters.snapshot()
    f(X)
    assert not {"compiles", "cache_hits", "traces"} & set(counters.since(before))


def test_clear_caches_leaves_what_is_held():
    made = ft.jit(cube).lower(X).compile()
    y, push = ft.vjp(ft.jit(cube), X)
    ft.clear_caches()
    np.testing.assert_allclose(made(X), y)
    np.testing.assert_allclose(push(fnp.ones_like(y))[0], slope(X), rtol=1e-5)


def test_clear_caches_leaves_the_disk(tmp_path):
    f = ft.jit(lambda x: fnp.sin(x) * 3.25)
    with ft.backends.cache.flags(directory=str(tmp_path), enabled=True):
        f(X)
        ft.clear_caches()
        before = counters.snapshot()
        f(X)
    assert {k: n for k, n in counters.since(before).items() if k in ("compiles", "cache_hits")} == {"cache_hits": 1}
