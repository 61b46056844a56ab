"""Callbacks of programs: when, how often, in which order and with which values they are called, and their errors."""

# Other compile options: max-autotune tries several, and must run no callback twice.

import threading
import weakref

import numpy as np
import pytest
from support import lifetimes

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.backends import xla
from functorch_like.errors import ArgumentError, DtypeError, ShapeError, TreeError, UnsupportedError

SCALAR = ft.ShapeDtypeStruct((), "float32")


def like(x):
    return ft.ShapeDtypeStruct(x.shape, x.dtype)


def logger():
    seen = []
    return seen, lambda v: seen.append(np.asarray(v).tolist())


# ---------------------------------------------------------------------------------------------------- debug.callback
def twice(note, ordered):
    def f(x):
        ft.debug.callback(note, x, ordered=ordered)
        y = fnp.sin(x)
        ft.debug.callback(note, y * 0 + 7, ordered=ordered)
        return y

    return f


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize(
    "transform",
    [
        lambda f: f,
        ft.jit,
        lambda f: ft.jit(ft.jit(f)),
        ft.grad,
        lambda f: ft.grad(ft.jit(f)),
        lambda f: ft.jit(ft.grad(f)),
        lambda f: ft.jit(ft.grad(ft.jit(f))),
        lambda f: ft.grad(ft.grad(ft.jit(f))),
        lambda f: lambda x: ft.jvp(ft.jit(f), (x,), (1.0,)),
        lambda f: lambda x: ft.vjp(f, x)[1](1.0),
        lambda f: lambda x: ft.linearize(ft.jit(f), x)[1](1.0),
    ],
    ids=lambda t: "",
)
def test_each_is_called_once_and_in_order(transform, ordered):
    seen, note = logger()
    g = transform(twice(note, ordered))
    for _ in range(2):  # the second call runs the program of the first
        g(2.0)
        assert (seen if ordered else sorted(seen)) == [2.0, 7.0]
        seen.clear()


def test_order_holds_between_calls_eager_and_nested():
    seen, note = logger()
    say = lambda v: ft.debug.callback(note, v, ordered=True)
    inner = ft.jit(lambda x: (say(x), say(x + 1), x * 10)[2])

    @ft.jit
    def outer(x):
        say(x)
        y = inner(x)
        say(y)
        inner(y)
        return y

    say(0.0)
    outer(1.0)
    say(99.0)
    assert seen == [0, 1, 1, 2, 10, 10, 11, 99]


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_vmap_calls_for_each_element(wrap):
    seen, note = logger()
    f = lambda x, y: ft.debug.callback(lambda a, b: note(np.stack([a, b])), x, y)
    wrap(ft.vmap(f, (0, None)))(fnp.arange(3.0), 5.0)
    assert seen == [[0, 5], [1, 5], [2, 5]]
    seen.clear()
    wrap(ft.vmap(ft.vmap(f, (0, None)), (1, 0)))(fnp.arange(4.0).reshape(2, 2), fnp.arange(2.0))
    assert seen == [[0, 0], [2, 0], [1, 1], [3, 1]]
    seen.clear()
    wrap(ft.vmap(lambda x: (ft.debug.callback(note, 1.0), x)[1]))(fnp.arange(3.0))
    assert seen == [1.0]  # none of its arguments is mapped


def test_a_mapped_axis_of_size_zero_calls_nothing():
    f = ft.vmap(lambda x: ft.io_callback(lambda v: v, SCALAR, x))
    assert f(fnp.zeros(0)).shape == (0,)


def test_effects_stay_though_results_are_not_used():
    seen, note = logger()
    f = ft.jit(lambda x: (ft.io_callback(lambda v: (note(v), v)[1], SCALAR, x), x)[1])
    g = ft.jit(lambda x: (f(x), 3.0)[1])
    g(2.0)
    assert seen == [2.0]


def test_equal_effects_are_not_shared():
    seen, note = logger()
    say = ft.jit(lambda x: ft.debug.callback(note, x))
    ft.jit(lambda x: (say(x), say(x)))(1.0)
    assert seen == [1.0, 1.0]


def test_what_is_handed_over():
    got = []

    def f(x):
        ft.debug.callback(lambda *a, **k: got.append((a, k)), {"a": x, "s": "text"}, 3, None, flag=True, pair=(x, 0.1))

    ft.jit(f)(fnp.arange(2))
    f(fnp.arange(2))
    for (tree, three, none), kwargs in got:
        assert isinstance(tree["a"], np.ndarray) and tree["a"].tolist() == [0, 1] and tree["s"] == "text"
        assert type(three) is int and none is None and kwargs["flag"] is True and kwargs["pair"][1] == 0.1
        assert not tree["a"].flags.writeable
    assert len(got) == 2


def test_tangents_are_seen_when_they_are_pushed_forward():
    seen, note = logger()

    @ft.custom_jvp
    def f(x):
        return x * 2

    f.defjvp(lambda primals, tangents: (ft.debug.callback(note, tangents[0]), (f(*primals), tangents[0] * 2))[1])
    for g in (f, ft.jit(f)):
        push = ft.linearize(g, 1.0)[1]
        assert seen == []
        push(5.0), push(6.0), ft.jvp(g, (1.0,), (7.0,))
        assert seen == [5.0, 6.0, 7.0]
        seen.clear()
        assert float(ft.grad(g)(1.0)) == 2.0 and seen == []  # reverse mode computes no tangents


def test_compiled_programs_call_too():
    seen, note = logger()
    compiled = ft.jit(lambda x: (ft.debug.callback(note, x), x * 2)[1]).lower(1.0).compile()
    assert float(compiled(3.0)) == 6.0 and seen == [3.0]
    with ft.disable_jit():
        ft.jit(lambda x: ft.debug.callback(note, x))(4.0)
    assert seen == [3.0, 4.0]


def test_the_text_of_jaxprs_names_the_function():
    def f(x):
        ft.debug.print("{}", x)
        return ft.pure_callback(np.sin, SCALAR, x)

    text = str(ft.make_jaxpr(f)(1.0))
    assert "debug_callback(a, fun=print, ordered=False)" in text and "pure_callback(a, fun=sin)" in text


# ----------------------------------------------------------------------------------------------------- pure_callback
def test_custom_jvp_gives_it_a_derivative():
    call = lambda fun, x: ft.pure_callback(fun, like(x), x, vmap_method="expand_dims")
    sin = ft.custom_jvp(lambda x: call(np.sin, x))
    sin.defjvps(lambda t, ans, x: t * call(np.cos, x))
    x = np.linspace(0, 1, 5, dtype="float32")
    for slope in (ft.vmap(ft.grad(sin)), ft.jit(ft.vmap(ft.grad(sin))), ft.vmap(ft.grad(ft.jit(sin)))):
        np.testing.assert_allclose(slope(x), np.cos(x), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "float64", "complex128", "int4"])
def test_every_dtype_goes_there_and_back(dtype):
    x = fnp.asarray(np.array([[0, 1, 2], [3, 4, 5]])).astype(dtype)
    f = lambda x: ft.pure_callback(lambda v: v.T, ft.ShapeDtypeStruct((3, 2), x.dtype), x)
    for out in (f(x), ft.jit(f)(x)):
        assert out.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(out).astype(complex), np.asarray(x).T.astype(complex))


def test_results_are_a_pytree_and_numbers_are_taken():
    f = lambda x: ft.pure_callback(lambda v: {"n": 3, "y": [v * 2]}, {"n": SCALAR, "y": [like(x)]}, x)
    for out in (f(fnp.ones(2)), ft.jit(f)(fnp.ones(2))):
        assert float(out["n"]) == 3.0 and out["n"].dtype == np.float32 and out["y"][0].tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("method", "shapes"),
    [
        ("sequential", [((2,), (4,))] * 3),
        ("sequential_unrolled", [((2,), (4,))] * 3),
        ("expand_dims", [((3, 2), (1, 4))]),
        ("broadcast_all", [((3, 2), (3, 4))]),
        ("legacy_vectorized", [((3, 2), (4,))]),
    ],
)
@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_vmap_methods(method, shapes, wrap):
    seen = []

    def host(x, w):
        seen.append((x.shape, w.shape))
        return x.sum(-1) * w.sum(-1)

    x, w = np.arange(6, dtype="float32").reshape(2, 3), np.ones(4, "float32")
    f = lambda x, w: ft.pure_callback(host, SCALAR, x, w, vmap_method=method)
    out = wrap(ft.vmap(f, (1, None)))(x, w)
    assert seen == shapes
    np.testing.assert_array_equal(out, x.sum(0) * 4)


def test_nested_vmap():
    f = lambda x, w: ft.pure_callback(np.subtract, like(x), x, w, vmap_method="expand_dims")
    x, w = np.arange(6, dtype="float32").reshape(2, 3), np.arange(3, dtype="float32")
    out = ft.vmap(ft.vmap(f, (0, 0)), (0, None))(x, w)
    np.testing.assert_array_equal(out, x - w)
    out = ft.vmap(ft.vmap(f, (0, None)), (None, 0))(w, x[:, 0])
    np.testing.assert_array_equal(out, w[None] - x[:, :1])


def test_an_unused_pure_callback_is_not_called():
    seen, note = logger()
    ft.jit(lambda x: (ft.pure_callback(lambda v: (note(v), v)[1], SCALAR, x), x)[1])(1.0)
    assert seen == []


# ------------------------------------------------------------------------------------------------------------- errors
class Mine(Exception):
    pass


def failing(v):
    raise Mine("on purpose")


@pytest.mark.parametrize(
    ("wrap", "x"),
    [(lambda f: f, 1.0), (ft.jit, 1.0), (ft.vmap, fnp.zeros(2)), (lambda f: ft.jit(ft.vmap(f)), fnp.zeros(2))],
    ids=["eager", "jit", "vmap", "jit of vmap"],
)
def test_an_exception_arrives_as_itself_each_time(wrap, x):
    f = wrap(lambda x: ft.pure_callback(failing, SCALAR, x, vmap_method="sequential"))
    for _ in range(3):
        with pytest.raises(Mine, match="on purpose") as caught:
            f(x)
    assert caught.value.__context__ is None and caught.value.__cause__ is None


def test_the_note_tells_the_line_of_the_callback():
    @ft.jit
    def f(x):
        return ft.io_callback(failing, SCALAR, x)

    with pytest.raises(Mine) as caught:
        f(1.0)
    (note,) = caught.value.__notes__
    assert "io_callback" in note and "test_callbacks.py" in note and note.endswith("in f")
    assert f.__name__ == "f" and float(ft.jit(lambda x: x + 1)(1.0)) == 2.0  # everything else still works


def test_an_error_that_is_caught_and_raised_from_keeps_its_cause():
    def host(v):
        try:
            failing(v)
        except Mine as error:
            raise ValueError("outer") from error

    with pytest.raises(ValueError, match="outer") as caught:
        ft.jit(lambda x: ft.pure_callback(host, SCALAR, x))(1.0)
    assert isinstance(caught.value.__cause__, Mine)


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_results_other_than_promised(wrap):
    call = lambda value, promise=SCALAR: wrap(lambda x: ft.pure_callback(lambda v: value, promise, x))(1.0)
    with pytest.raises(ShapeError, match=r"shape \(2,\)"):
        call(np.zeros(2, "float32"))
    with pytest.raises(DtypeError, match="float64"):
        call(np.zeros((), "float64")[...])
    with pytest.raises(DtypeError, match="complex"):
        call(1j)
    with pytest.raises(TreeError, match="promised"):
        call([1.0, 2.0])
    with pytest.raises(TreeError, match="promised"):
        call(None)
    assert float(call(np.float64(2.5))) == 2.5  # a scalar counts as a number, as everywhere


def test_arguments():
    with pytest.raises(ArgumentError, match="takes a function"):
        ft.pure_callback(3, SCALAR, 1.0)
    with pytest.raises(ArgumentError, match="no shape and dtype"):
        ft.io_callback(abs, "float32", 1.0)
    with pytest.raises(ArgumentError, match="vmap_method"):
        ft.pure_callback(abs, SCALAR, 1.0, vmap_method="fast")
    with pytest.warns(UserWarning, match="no effect"):
        ft.pure_callback(abs, SCALAR, 1.0, sharding="x")


def test_what_cannot_be():
    with pytest.raises(UnsupportedError, match="custom_jvp"):
        ft.grad(lambda x: ft.pure_callback(np.sin, SCALAR, x))(1.0)
    with pytest.raises(UnsupportedError, match="derivative"):
        ft.grad(lambda x: ft.io_callback(np.sin, SCALAR, x))(1.0)
    with pytest.raises(UnsupportedError, match="vmap_method"):
        ft.vmap(lambda x: ft.pure_callback(np.sin, SCALAR, x))(fnp.ones(3))
    with pytest.raises(UnsupportedError, match="ordered"):
        ft.vmap(lambda x: ft.io_callback(np.sin, SCALAR, x, ordered=True))(fnp.ones(3))


# ------------------------------------------------------------------------------------------------- threads and memory
def test_a_callback_may_use_the_package():
    inner = ft.jit(lambda x: fnp.cumsum(fnp.sin(x)))

    def host(v):
        slope = ft.grad(lambda x: fnp.sum(fnp.sin(x)))(fnp.asarray(v))
        return np.asarray(inner(v)) + np.asarray(slope)

    x = np.linspace(0, 1, 100_000, dtype="float32")
    for f in (ft.jit(lambda x: ft.pure_callback(host, like(x), x)), lambda x: ft.pure_callback(host, like(x), x)):
        np.testing.assert_allclose(f(x), np.cumsum(np.sin(x.astype("float64"))) + np.cos(x), rtol=1e-4)


def test_a_callback_runs_outside_of_the_transformation_that_is_at_work():
    f = ft.jit(lambda: ft.pure_callback(lambda: np.asarray(fnp.ones(3).sum()), SCALAR))
    assert ft.vmap(lambda x: x + f())(fnp.zeros(2)).tolist() == [3.0, 3.0]


def test_threads_get_their_own_errors():
    f = ft.jit(lambda x: ft.pure_callback(lambda v: (_ for _ in ()).throw(Mine(float(v))), SCALAR, x))
    wrong = []

    def work(k):
        for _ in range(20):
            try:
                f(float(k))
            except Mine as error:
                if error.args != (float(k),):
                    wrong.append((k, error.args))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_the_barrier_waits_for_other_threads():
    started, go, done = threading.Event(), threading.Event(), []
    f = ft.jit(lambda x: ft.debug.callback(lambda v: (started.set(), go.wait(20), done.append(1)), x))
    thread = threading.Thread(target=f, args=(1.0,))
    thread.start()
    assert started.wait(20)
    threading.Timer(0.05, go.set).start()
    ft.effects_barrier()
    assert done == [1]
    thread.join()
    ft.effects_barrier()


def test_functions_die_with_their_programs():
    class Note:
        def __call__(self, v):
            return v

    def make():
        note = Note()
        each = ft.vmap(lambda x: ft.io_callback(note, SCALAR, x))
        f = ft.jit(lambda x: ft.pure_callback(note, SCALAR, x) + each(fnp.ones(2))[0])
        f(1.0), ft.vmap(ft.grad(lambda x: x * ft.lax.stop_gradient(f(1.0))))(fnp.ones(2))
        ft.pure_callback(note, SCALAR, 1.0)
        say = ft.jit(lambda x: ft.debug.callback(note, x))
        ft.vmap(say)(fnp.ones(2))
        return weakref.ref(note)

    gone = make()
    lifetimes.collect()
    assert gone() is None


def test_no_program_is_made_twice():
    seen, note = logger()
    f = ft.jit(lambda x: (ft.debug.callback(note, x), x + 1)[1])
    g = ft.vmap(ft.grad(lambda x: f(x)))
    f(1.0), g(fnp.ones(2))
    before = xla.counters.snapshot()
    f(2.0), g(fnp.ones(2))
    grown = xla.counters.since(before)
    assert not {"traces", "modules", "compiles"} & set(grown) and len(seen) == 6


def test_a_program_on_disk_calls_the_functions_of_now(tmp_path):
    seen, note = logger()
    make = lambda: ft.jit(lambda x: ft.io_callback(lambda v: (note(v), v)[1], SCALAR, x) * 3.25)
    make()(1.0)
    before = xla.counters.snapshot()
    assert float(make()(2.0)) == 6.5 and seen == [1.0, 2.0]
    grown = xla.counters.since(before)
    assert grown.get("compiles", 0) + grown.get("cache_hits", 0) == 1


def test_programs_without_callbacks_stay_in_cpp():
    f, x = ft.jit(lambda x: x * 2), fnp.ones(2)
    f(x)
    before = xla.counters.snapshot()
    f(x)
    assert xla.counters.since(before) == {}


@pytest.mark.parametrize(
    "wrap",
    [ft.jit, lambda f: ft.jit(f, static_argnums=1), lambda f: ft.jit(f, donate_argnums=0)],
    ids=["jit", "static", "donated"],
)
def test_pure_callbacks_stay_in_cpp(wrap):
    """Later calls raise the same exceptions as the first one, although C++ dispatches them."""

    def host(v):
        try:
            if v > 5:
                failing(v)
        except Mine as error:
            raise KeyError("outer") from error
        if v < 0:
            raise KeyboardInterrupt
        return v

    f = wrap(lambda x, n: ft.pure_callback(host, SCALAR, x) * n)
    call = lambda value: float(f(fnp.float32(value), 2.0))
    assert [call(1.0), call(1.0)] == [2.0, 2.0]
    for _ in range(3):
        with pytest.raises(KeyError, match="outer") as caught:
            call(10.0)
        assert isinstance(caught.value.__cause__, Mine) and caught.value.__context__ is caught.value.__cause__
        assert all("functorch_like" not in entry.path.parts for entry in caught.traceback)
        assert len(caught.value.__notes__) == 1 and "in <lambda>" in caught.value.__notes__[0]
        with pytest.raises(KeyboardInterrupt):
            call(-1.0)
        assert call(1.5) == 3.0
    x = fnp.float32(3.0)
    before = xla.counters.snapshot()
    f(x, 2.0)
    assert "misses" not in xla.counters.since(before)


def test_an_error_of_the_package_in_a_pure_callback_tells_the_line():
    f = ft.jit(lambda x: ft.pure_callback(lambda v: np.zeros(2) if v > 5 else v, SCALAR, x))
    f(fnp.float32(1))
    for _ in range(2):
        with pytest.raises(ShapeError, match=r"(?s)shape \(2,\).*test_callbacks.py"):
            f(fnp.float32(10))


def test_callbacks_with_effects_are_called_through_python():
    """So that the barrier knows of them."""
    f, x = ft.jit(lambda x: ft.io_callback(lambda v: v, SCALAR, x)), fnp.float32(1)
    f(x)
    before = xla.counters.snapshot()
    f(x)
    assert xla.counters.since(before)["misses"] == 1


def test_tuning_calls_nothing():
    seen, note = logger()
    f = ft.jit(lambda x: (ft.debug.callback(note, x), x * 2)[1], mode="max-autotune")
    assert float(f(3.0)) == 6.0 and seen == [3.0]


def test_checkpoint_calls_once():
    seen, note = logger()
    f = ft.checkpoint(lambda x: (ft.debug.callback(note, x), fnp.sin(fnp.sin(x)))[1])
    for g in (ft.grad(f), ft.jit(ft.grad(f)), ft.grad(ft.jit(f))):
        g(2.0)
        assert seen == [2.0]
        seen.clear()
