"""Tiers of compilation: programs that start quickly, their exchange, and correct results meanwhile."""

# Other compile options: those of the quick tier, and options that choose a tier.

import gc
import os
import pickle
import subprocess
import sys
import threading
import warnings
import weakref

import numpy as np
import pytest
from support.background import finish

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends, lax, primitives, random, scipy
from functorch_like.backends.xla import client, counters, events, memory
from functorch_like.compiler import tier_costs, tiers
from functorch_like.compiler.lower import Lowered
from functorch_like.transforms import tier_watch

X = np.linspace(0.1, 2, 12, dtype=np.float32)


pytestmark = pytest.mark.usefixtures("users_tiers")


@pytest.fixture
def clock(monkeypatch):
    """A clock that advances by `clock[1]` seconds each time that it is read, at first by 0."""
    state = [0.0, 0.0]

    def read():
        state[0] += state[1]
        return state[0]

    monkeypatch.setattr(tier_watch.time, "perf_counter", read)  # also for eager_tiers, by the same `time` module
    return state


def curve(x):
    return fnp.exp(-x) * fnp.sin(x) + x * x


def expected(x):
    x = np.asarray(x, np.float64)
    return np.exp(-x) * np.sin(x) + x * x


def check(out, x=X):
    np.testing.assert_allclose(np.asarray(out), expected(x), rtol=1e-5, atol=1e-6)


def kinds(why):
    return [event.kind for event in why.events]


def compiled(call):
    """Return the number of programs that a call compiles."""
    before = counters.compiles + counters.optimised
    call()
    return counters.compiles + counters.optimised - before


def in_quick_tier(f, *args):
    return any(e.kind == "tier" and e.about["how"] == "in the quick tier" for e in ft.explain(f)(*args).events)


# ------------------------------------------------------------------------------------------------------------ exchange
def test_a_program_starts_quick_and_ends_optimised():
    f = ft.jit(curve)
    why = ft.explain(f)(X)
    assert "compile" in kinds(why) and "in the quick tier" in str(why)
    check(why.result)
    assert in_quick_tier(f, X)
    assert compiled(f.optimised) == 1
    check(f(X))
    why = ft.explain(f)(X)
    assert kinds(why) == []
    before = counters.misses
    for _ in range(5):
        f(X)
    assert counters.misses == before  # the calls stay in C++
    assert compiled(f.optimised) == 0


def test_what_has_run_long_is_compiled_again_and_exchanged_between_two_calls(clock):
    f = ft.jit(curve)
    f(X), f(X)
    finish()
    assert in_quick_tier(f, X)
    clock[1] = 1.0
    f(X)
    clock[1] = 0.0
    finish()
    why = ft.explain(f)(X)
    assert kinds(why) == ["exchange"] and "exchanged curve for its optimised form" in str(why)
    check(why.result)
    assert not in_quick_tier(f, X)


def test_calls_are_not_counted_but_measured(clock):
    f = ft.jit(curve)
    assert compiled(lambda: [f(X) for _ in range(2000)]) == 1
    finish()
    assert in_quick_tier(f, X)


def test_only_the_signature_that_runs_long_is_compiled_again(clock):
    f = ft.jit(curve)
    short = X[:3]
    f(short), f(X), f(short), f(X)
    clock[1] = 1.0
    f(X)
    clock[1] = 0.0
    finish()
    check(f(X))
    assert in_quick_tier(f, short) and not in_quick_tier(f, X)
    check(f(short), short)


def test_two_jitted_forms_of_a_function_share_its_programs():
    f, g = ft.jit(curve), ft.jit(curve)
    assert in_quick_tier(f, X) and in_quick_tier(g, X)
    assert compiled(f.optimised) == 1
    assert not in_quick_tier(f, X) and not in_quick_tier(g, X)
    before = counters.misses
    check(f(X)), check(g(X)), check(g(X))
    assert counters.misses == before


def test_python_numbers_and_static_arguments():
    f = ft.jit(lambda x, n, k: curve(x) * n + k * fnp.cos(x), static_argnums=2)
    want = expected(X) * 3 + 2.5 * np.cos(X.astype(np.float64))
    for _ in range(2):
        np.testing.assert_allclose(np.asarray(f(X, 3, 2.5)), want, rtol=1e-5)
        f.optimised()
    assert not in_quick_tier(f, X, 3, 2.5)


def test_donated_arguments():
    f = ft.jit(curve, donate_argnums=0)
    for _ in range(2):
        x = fnp.asarray(X)
        check(f(x))
        assert x.is_deleted()
        f.optimised()


def test_methods_and_closures():
    class Model:
        scale = fnp.asarray(2.0)

        @ft.jit
        def apply(self_or_x, y):
            return curve(self_or_x) * y

    f = ft.jit(lambda x: curve(x) * Model.scale)
    for _ in range(2):
        np.testing.assert_allclose(np.asarray(f(X)), 2 * expected(X), rtol=1e-5)
        np.testing.assert_allclose(np.asarray(Model.apply(X, 2.0)), 2 * expected(X), rtol=1e-5)
        f.optimised(), Model.apply.optimised()


def test_transformations_of_a_function_in_the_quick_tier():
    f = ft.jit(curve)
    f(X)
    x = X.astype(np.float64)
    want = np.exp(-x) * (np.cos(x) - np.sin(x)) + 2 * x
    got = ft.jit(ft.vmap(ft.grad(f)))(X)
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-6)
    assert in_quick_tier(f, X)


# -------------------------------------------------------------------------------------------------------------- effects
def test_effects_happen_once_in_each_call():
    seen = []

    @ft.jit
    def f(x):
        ft.debug.callback(lambda v: seen.append(float(v)), x)
        return curve(x)

    for k in range(3):
        f(np.float32(k))
        f.optimised()
    assert seen == [0.0, 1.0, 2.0]


def test_programs_that_call_python_are_exchanged():
    """Among them are those of libraries that check values by callbacks, as equinox and diffrax do."""
    refused = np.float32(-1)

    def same(v):
        if v[0] == refused:
            raise ValueError("refused")
        return v

    f = ft.jit(lambda x: curve(ft.pure_callback(same, ft.ShapeDtypeStruct(X.shape, X.dtype), x)))
    for quick in (True, False):
        check(f(X))
        assert in_quick_tier(f, X) == quick
        with pytest.raises(ValueError, match="refused"):
            f(np.full_like(X, refused))
        assert compiled(f.optimised) == quick
    check(f(X))


def test_ordered_effects_keep_their_order_while_the_forms_are_exchanged(clock):
    seen = []

    @ft.jit
    def f(x):
        for k in range(3):
            kept = ft.io_callback(lambda v, k=k: seen.append((int(v), k)), None, x, ordered=True)
            assert kept is None
        return curve(x)

    clock[1] = 1.0  # the second call starts the compilation
    for call in range(8):
        check(f(np.float32(call)), np.float32(call))
        if call == 4:
            clock[1] = 0.0
            finish()
    assert seen == [(call, k) for call in range(8) for k in range(3)]
    assert not in_quick_tier(f, np.float32(0))


def test_a_branch_that_calls_python_is_exchanged():
    """The callback is in one branch of a loop's body, as a library's checks are."""
    seen = []

    def body(k, x):
        shape = ft.ShapeDtypeStruct(X.shape, X.dtype)
        call = lambda x: ft.pure_callback(lambda v: (seen.append(v.copy()), v)[1], shape, x)
        return lax.cond(k == 2, call, lambda x: x + 1, x)

    f = ft.jit(lambda x: curve(lax.fori_loop(0, 4, body, x)))
    for runs in (1, 2):
        np.testing.assert_allclose(f(X), expected(X + np.float32(3)), rtol=1e-5)
        np.testing.assert_array_equal(seen, [X + np.float32(1) + np.float32(1)] * runs)
        f.optimised()


# -------------------------------------------------------------------------------------------------------------- threads
def test_threads_call_while_the_forms_are_exchanged():
    f = ft.jit(curve)
    shapes = [X[: 2 + k] for k in range(3)]
    wrong, stop = [], threading.Event()

    def work(k):
        while not stop.is_set():
            x = shapes[k % 3]
            if not np.allclose(np.asarray(f(x)), expected(x), rtol=1e-5, atol=1e-6):
                wrong.append(k)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for x in shapes:
        f(x)
        f.optimised()
    stop.set()
    for worker in workers:
        worker.join()
    assert wrong == []
    f.optimised()
    assert not any(in_quick_tier(f, x) for x in shapes)


def test_two_threads_ask_for_the_optimised_form():
    f = ft.jit(curve)
    f(X)
    asking = [threading.Thread(target=f.optimised) for _ in range(3)]
    assert compiled(lambda: [*map(threading.Thread.start, asking), *map(threading.Thread.join, asking)]) == 1


def test_optimised_forms_are_no_programs_that_were_needed_anew():
    f = ft.jit(curve)
    with ft.testing.count_compiles() as first:
        f(X)
        f.optimised()
    assert first.count == 1


# ------------------------------------------------------------------------------------------------------------- failures
def test_what_cannot_be_compiled_again_stays_quick_and_says_so_once(monkeypatch, clock):
    compile = Lowered.compile

    def failing(self, *args, **options):
        if events.is_in_background():
            raise ft.errors.CompileError("no memory")
        return compile(self, *args, **options)

    monkeypatch.setattr(Lowered, "compile", failing)
    f = ft.jit(curve)
    f(X)
    clock[1] = 1.0
    f(X)
    clock[1] = 0.0
    finish()
    with pytest.warns(UserWarning, match="curve stays in the quick tier.*no memory"):
        check(f(X))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            check(f(X))
        f.optimised()


SCRIPT = """
import numpy as np, functorch_like as ft, functorch_like.numpy as fnp
from functorch_like.compiler import tiers
same = lambda x: {same}
f = ft.jit(lambda x: sum(fnp.sin(k * same(x)) * fnp.exp(-x) for k in range(30)))
f(np.ones(5, np.float32))
for improvement in list(tiers._alive):
    improvement.start()
"""


@pytest.mark.parametrize("same", ["x", "ft.pure_callback(lambda v: v, ft.ShapeDtypeStruct((5,), 'float32'), x)"])
def test_a_process_ends_while_its_programs_are_compiled(tmp_path, same):
    settings = {"FT_CACHE_DIR": str(tmp_path), "FT_COMPILATION_TIERS": "auto"}
    command = [sys.executable, "-P", "-c", SCRIPT.format(same=same)]
    done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


# ------------------------------------------------------------------------------------------------------ caches, memory
def test_the_disk_keeps_the_optimised_form():
    f = ft.jit(curve)
    f(X)
    f.optimised()
    ft.clear_caches()
    why = ft.explain(f)(X)
    assert "load" in kinds(why) and not {"compile", "lower", "tier"} & set(kinds(why))
    check(why.result)


def test_a_program_that_comes_again_is_optimised_sooner(monkeypatch):
    worths = []
    made = tiers.Improvement.__init__

    def recorded(self, compile, worth, *args, **options):
        worths.append(worth)
        made(self, compile, worth, *args, **options)

    monkeypatch.setattr(tiers.Improvement, "__init__", recorded)
    f = ft.jit(curve)
    f(X)
    ft.clear_caches()
    why = ft.explain(f)(X)
    assert "load" in kinds(why) and not {"compile", "lower"} & set(kinds(why))
    assert worths[1] < worths[0] / 2


@pytest.mark.parametrize("forget", [lambda f: f.clear_cache(), lambda f: ft.clear_caches()], ids=["its", "all"])
def test_a_function_that_forgets_its_programs_is_not_measured(clock, monkeypatch, forget):
    watches, follow = [], tier_watch.TierWatch.follow
    monkeypatch.setattr(tier_watch.TierWatch, "follow", lambda self, p: (watches.append(self), follow(self, p))[1])
    f = ft.jit(lambda x: curve(x))
    f(X)
    (watch,) = watches
    assert watch._installed is not None
    forget(f)
    gc.collect()
    with backends.compilation.flags(tiers="off"):
        check(f(X))  # compiles
        clock[1] = 1.0  # time that would be credited to a program of the quick tier
        check(f(X))
    assert watch._installed is None
    check(f(X))


def test_caches_are_cleared_under_way(clock):
    f = ft.jit(curve)
    f(X)
    ft.clear_caches()
    check(f(X))
    f.clear_cache()
    check(f(X))
    clock[1] = 1.0
    f(X)
    f.clear_cache()
    clock[1] = 0.0
    finish()
    check(f(X))
    f.optimised()
    check(f(X))


def loaded(name):
    return sum(p.hlo_modules()[0].name == name for p in client.default_device().client.live_executables())


def test_the_quick_form_is_freed():
    def freed_function(x):
        return curve(x) + 1

    f = ft.jit(freed_function)
    f(X)
    f.optimised()
    f(X)
    memory.clear()
    assert loaded("freed_function") == 1


def test_a_function_in_the_quick_tier_dies_with_its_last_reference():
    def f(x):
        return curve(x) + 2

    g = ft.jit(f)
    g(X)
    dead = weakref.ref(f)
    del f, g
    gc.collect()
    assert dead() is None


def test_pickling():
    f = ft.jit(fnp.sinc)
    f(X)
    np.testing.assert_allclose(np.asarray(pickle.loads(pickle.dumps(f))(X)), np.sinc(X.astype(np.float64)), atol=1e-6)


# -------------------------------------------------------------------------------------------------- programs with tiers


@pytest.fixture
def undisturbed():
    """Switch the cache off, so that no optimised form is found on disk."""
    with backends.cache.flags(enabled=False):
        yield


def test_settings_and_modes_with_one_tier(undisturbed):
    assert not in_quick_tier(ft.jit(curve, mode="fast-compile"), X)
    assert not in_quick_tier(ft.jit(curve, compiler_options={"xla_backend_optimization_level": 2}), X)
    assert not in_quick_tier(ft.jit(curve, control_flow="paths"), X)
    with backends.compilation.flags(tiers="off"):
        assert not in_quick_tier(ft.jit(curve), X)
    with backends.xla.options(xla_backend_optimization_level=1):
        assert not in_quick_tier(ft.jit(curve), X)
    backends.use_deterministic_algorithms(True)
    assert not in_quick_tier(ft.jit(curve), X)
    backends.use_deterministic_algorithms(False)
    warm = ft.jit(curve)
    warm.warmup((X[:5],))
    assert not in_quick_tier(warm, X[:5])
    assert in_quick_tier(ft.jit(lambda x: curve(x)), X)


def test_programs_compiled_ahead_have_one_tier():
    f = ft.jit(curve)
    text = f.lower(X).compile().as_text()
    with backends.compilation.flags(tiers="off"):
        assert ft.jit(curve).lower(X).compile().as_text() == text


def test_the_quick_tier_alone():
    with backends.compilation.flags(tiers="quick"):
        f = ft.jit(curve)
        check(f(X))
        assert compiled(f.optimised) == 0


def _network(weights, x):
    for w in weights:
        x = fnp.tanh(x @ w)
    return fnp.sum(x)


def test_many_products_in_the_quick_tier():
    weights = [np.random.default_rng(i).standard_normal((24, 24)) / 5 for i in range(20)]
    x = np.random.default_rng(20).standard_normal((8, 24))
    single = lambda tree: ft.tree.map(lambda a: a.astype("float32"), tree)
    with backends.compilation.flags(tiers="quick"):
        slopes = ft.jit(ft.grad(_network))(single(weights), single(x))
    values = [x]
    for w in weights:
        values.append(np.tanh(values[-1] @ w))
    slope = np.ones_like(values[-1])
    for w, before, after, found in zip(weights[::-1], values[-2::-1], values[:0:-1], slopes[::-1], strict=True):
        slope = slope * (1 - after**2)
        np.testing.assert_allclose(found, before.T @ slope, rtol=1e-3, atol=1e-5)
        slope = slope @ w.T


def estimate(f, *args):
    return tier_costs.estimate(ft.make_jaxpr(f)(*args))


def test_one_long_run_is_worth_its_compile_time():
    """A program cannot be exchanged while it runs."""
    step = lambda c, _: (fnp.tanh(c) * 1.01 + c * c, None)
    long = lambda x: lax.scan(step, x, None, length=5000)[0]
    unknown = lambda x: lax.while_loop(lambda c: fnp.sum(c) < 1e30, lambda c: step(c, None)[0], x)
    for f in (long, unknown):
        few, many = estimate(f, X), estimate(f, np.ones(20000, np.float32))
        assert few.equations == many.equations
        assert few.run_seconds < few.compile_seconds and many.run_seconds > many.compile_seconds
        assert in_quick_tier(ft.jit(f), X * 0 + 3 if f is unknown else X)


def test_forms_that_compile_slowly_are_taken_in_the_last_tier_only():
    """Under full options a large sine compiles three times as long as the standard form."""
    many = np.linspace(-9, 9, 20000)
    assert estimate(fnp.sin, many).compile_seconds > 3 * estimate(fnp.sin, X).compile_seconds
    assert tier_costs.has_optimised_forms(ft.make_jaxpr(ft.jit(lambda x: 2 * fnp.sin(x)))(many))
    assert not tier_costs.has_optimised_forms(ft.make_jaxpr(fnp.sin)(X))
    with backends.compilation.flags(tiers="auto"):
        f = ft.jit(fnp.sin)
        np.testing.assert_allclose(f(many), np.sin(many), atol=1e-15)
        assert in_quick_tier(f, many)
        optimised = f.lower(many).compile().as_text()
        f.optimised()
        np.testing.assert_allclose(f(many), np.sin(many), atol=1e-15)
    assert "conditional" in optimised


def test_parts_of_a_concatenation_cost_and_positions_do_not():
    cube = np.ones((4, 4, 4))
    cut = lambda x, i: primitives.dynamic_slice(x, i, i, i, slice_sizes=(2, 2, 2))
    assert estimate(cut, cube, np.int32(1)).equations == 0
    assert estimate(lambda x: fnp.concatenate([x, x, x, x]), cube).equations == 4


def test_loops_of_unknown_length_within_others_are_short():
    """A step of NUTS is three such loops within one another; with 1,000 steps each it would take days."""

    def nested(depth):
        step = nested(depth - 1) if depth > 1 else lambda x: fnp.sin(x) * 1.01 + x
        return lambda x: lax.while_loop(lambda c: fnp.sum(c) < 1e30, step, x)

    one, three = estimate(nested(1), X), estimate(nested(3), X)
    assert one.run_seconds * 9 < three.run_seconds < one.run_seconds * 20
    known = lambda n: estimate(lambda x: lax.scan(lambda c, _: (nested(1)(c), None), x, None, length=n)[0], X)
    assert known(1).run_seconds == pytest.approx(one.run_seconds)
    assert one.run_seconds / 10 < known(7).run_seconds < one.run_seconds  # a trajectory, and not 1,000 steps each
    assert known(2000).run_seconds > 20 * one.run_seconds


def test_what_libraries_prepare_in_a_first_run_is_not_counted():
    """The first convolution of a process takes 27 ms longer, which would justify compiling any small program."""
    quick = tiers.Improvement(lambda: None, 0.05, "f", quick=True, report=str)
    quick.credit(0.02)
    assert quick.spent == 0
    quick.credit(0.02)
    assert quick.spent == 0.02 and quick.compiled is None
    quick.credit(0.03)
    assert quick.compiled.result() is None
    long = tiers.Improvement(lambda: None, 0.05, "f", quick=True, report=str)
    long.credit(0.1)
    assert long.compiled.result() is None


def test_loops_that_expect_few_steps_start_in_the_quick_tier():
    """These are loops of the package, such as rejection sampling, also under transformations."""
    key = random.key(0)
    draw = lambda a: random.gamma(key, a, (2000,)).sum()
    pairs = np.array([2.5, 3.5], np.float32)
    for f, x in ((draw, 2.5), (ft.grad(draw), 2.5), (ft.vmap(draw), pairs), (lambda n: fnp.gcd(n, 36), np.arange(9))):
        costs = estimate(f, x)
        assert costs.run_seconds < costs.compile_seconds / 2
    assert in_quick_tier(ft.jit(draw), 2.5)


@pytest.fixture
def options_of(monkeypatch):
    """List of the programs compiled so far: the name, and True if the options are quick ones."""
    made, compile_ = [], Lowered.compile

    def noted(self, device, options=None, *, fitting=None, **more):
        made.append((self.name, bool(fitting) and "xla_backend_optimization_level" in fitting))
        return compile_(self, device, options, fitting=fitting, **more)

    monkeypatch.setattr(Lowered, "compile", noted)
    return made


def test_eager_operations_on_small_arrays_have_quick_options(options_of):
    """Quick options do not slow small operations down."""
    x = fnp.asarray(np.random.default_rng(0).normal(size=(9, 9)), "float32")
    spd = np.asarray(lax.dot(x, x.T)) + 9 * np.eye(9, dtype=np.float32)
    np.testing.assert_allclose(lax.linalg.cholesky(spd), np.linalg.cholesky(spd), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(fnp.exp(x), np.exp(x), rtol=1e-6)
    assert {("dot_general", True), ("cholesky", True), ("exp", True)} <= set(options_of)
    assert all(quick for _, quick in options_of)
    options_of.clear()
    fnp.exp(np.ones((64, 64), np.float32))
    lax.dot(fnp.ones((64, 64)), fnp.ones((64, 64)))
    assert [quick for name, quick in options_of if name in ("exp", "dot_general")] == [False, False]
    options_of.clear()
    with backends.compilation.flags(tiers="off"):
        lax.dot(fnp.ones((7, 8)), fnp.ones((8, 7)))
    assert [quick for name, quick in options_of if name == "dot_general"] == [False]


def test_the_quick_tier_alone_holds_for_eager_calls(options_of):
    backends.compilation.tiers = "quick"
    fnp.exp(np.ones((64, 64), np.float32))
    assert options_of == [("exp", True)]


def _eager_function():
    return lambda x: scipy.special.gammainc(x, x + 1)


def _mapped_jit():
    def deep(x):
        for k in range(20):
            x = fnp.sin(x) * (1 + 0.1 * k) + x
        return x

    return ft.vmap(ft.jit(deep))


def _primitive():
    return lambda x: lax.igamma(x, x + 1)


@pytest.mark.parametrize("make", [_eager_function, _mapped_jit, _primitive])
def test_large_eager_programs_have_tiers(make, options_of, clock):
    x = np.linspace(0.5, 2, 3000)
    f = make()
    first = np.asarray(f(x))
    large = max(options_of, key=lambda made: made[0] in ("gammainc", "igamma", "deep"))[0]
    assert (large, True) in options_of and (large, False) not in options_of
    f(x)  # too short to trigger a compilation
    finish()
    assert options_of.count((large, True)) == 1 and (large, False) not in options_of
    clock[1] = 10.0
    f(x)
    clock[1] = 0.0
    finish()
    assert (large, False) in options_of
    before = counters.misses
    np.testing.assert_allclose(f(x), first, rtol=1e-9)  # this call exchanges the program
    misses = counters.misses - before
    f(x)
    assert counters.misses < before + 2 * misses  # from now on C++ runs the program


def test_eager_programs_that_run_briefly_stay_quick(options_of, clock):
    x = np.linspace(0.5, 2, 3000)
    f, slow = _eager_function(), lambda x: scipy.special.gammaincc(x, x + 1)
    clock[1] = 1e-6  # the clock is read before and after a run
    first = np.asarray(f(x))
    for _ in range(20):
        np.testing.assert_array_equal(f(x), first)
    before = counters.misses
    f(x)
    brief = counters.misses - before
    clock[1] = 50e-6
    for _ in range(20):
        slow(x)
    before = counters.misses
    slow(x)
    assert counters.misses - before > brief  # it still runs from Python, and C++ runs the other one
    clock[1] = 0.0
    finish()
    assert not {("gammainc", False), ("gammaincc", False)} & set(options_of)


def test_an_eager_program_that_cannot_be_compiled_again_stays_quick(monkeypatch, clock):
    x = np.linspace(0.5, 2, 3000)
    f = _eager_function()
    first = np.asarray(f(x))
    monkeypatch.setattr(Lowered, "compile", lambda *a, **k: 1 / 0)
    clock[1] = 10.0
    f(x)
    clock[1] = 0.0
    finish()
    with pytest.warns(UserWarning, match="stays in the quick tier"):
        f(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(f(x), first)


def test_small_programs_have_one_tier():
    assert not in_quick_tier(ft.jit(lambda x: x + 1), X)
    assert not in_quick_tier(ft.jit(lambda x: x @ x), np.ones((3, 3), np.float32))


def test_the_profiler_names_programs_in_the_quick_tier():
    def profiled(x):
        return fnp.sort(curve(x))

    f = ft.jit(profiled)
    x = np.ones(20000, np.float32)
    f(x)
    with ft.profiler.profile() as found:
        f(x)
    assert found.quick == ["profiled"] and "in the quick tier: profiled" in str(found)
    f.optimised()
    with ft.profiler.profile() as found:
        f(x)
    assert found.quick == []
