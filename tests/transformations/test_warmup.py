"""jit(f).warmup: later calls compile nothing, whatever they are called with; settings are those of the caller."""

# Other compile options: max-autotune has nothing to warm up with, and says so.

import threading

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.backends.xla import counters
from functorch_like.errors import ArgumentError, ConcretizationError
from functorch_like.sharding import NamedSharding
from functorch_like.sharding import PartitionSpec as P


def spec(*shape, dtype="float32", **options):
    return ft.ShapeDtypeStruct(shape, dtype, **options)


def counted(call):
    """Return the number of traces and of compiled programs of a call, and its result."""
    before = counters.traces, counters.compiles + counters.cache_hits
    out = call()
    return counters.traces - before[0], counters.compiles + counters.cache_hits - before[1], out


def test_calls_after_it_compile_nothing():
    f = ft.jit(lambda x, y: {"out": x @ y + 1.0})
    traced, compiled, futures = counted(lambda: f.warmup((spec(3, 4), spec(4, 2)), (spec(5, 4), spec(4, 1))))
    assert (traced, compiled, [x.result() for x in futures]) == (2, 2, [None, None])
    for n, m in ((3, 2), (5, 1)):
        x, y = fnp.ones((n, 4)), fnp.ones((4, m))
        traced, compiled, out = counted(lambda x=x, y=y: f(x, y))
        assert (traced, compiled) == (0, 0)
        assert out["out"].tolist() == [[5.0] * m] * n
    assert counted(lambda: f.warmup((spec(3, 4), spec(4, 2))))[:2] == (0, 0)


@pytest.mark.parametrize(
    ("example", "argument"),
    [
        (np.ones(3), np.zeros(3)),
        (2.0, 3.0),
        (fnp.ones(3), fnp.zeros(3)),
        ({"a": spec(2), "b": (spec(dtype="int32"),)}, {"a": fnp.ones(2), "b": (fnp.asarray(1, "int32"),)}),
        (spec(2, weak_type=True), ft.jit(lambda x: fnp.broadcast_to(x, (2,)))(2.0)),
        (spec(2, sharding=ft.device_put(fnp.ones(1), "cpu").sharding), ft.device_put(fnp.ones(2), "cpu")),
    ],
)
def test_what_is_passed_is_what_the_calls_pass(example, argument):
    f = ft.jit(lambda x: ft.tree.map(lambda a: a * 2, x))
    f.warmup((example,))
    traced, compiled, out = counted(lambda: f(argument))
    assert (traced, compiled) == (0, 0)
    for got, want in zip(ft.tree.leaves(out), ft.tree.leaves(argument), strict=True):
        np.testing.assert_array_equal(got, np.asarray(want) * 2)


def test_static_and_donated_arguments():
    f = ft.jit(lambda x, n: x * n, static_argnums=1, donate_argnums=0)
    f.warmup((spec(4), 2), (spec(4), 3))
    x = fnp.ones(4)
    assert counted(lambda: f(x, 2).tolist()) == (0, 0, [2.0] * 4)
    assert x.is_deleted()
    assert counted(lambda: f(fnp.ones(4), 3).tolist()) == (0, 0, [3.0] * 4)


def test_a_mesh():
    mesh = ft.make_mesh((1,), ("i",))
    where = NamedSharding(mesh, P("i"))
    for f, example in (
        (ft.jit(lambda x: x + 1), spec(4, sharding=where)),
        (ft.jit(lambda x: x + 1, in_shardings=where), spec(4, sharding=where)),
    ):
        f.warmup((example,))
        assert counted(lambda f=f: f(ft.device_put(fnp.ones(4), where)).tolist()) == (0, 0, [2.0] * 4)


def test_settings_are_those_of_the_caller():
    f = ft.jit(lambda x: x @ x)
    with ft.default_matmul_precision("high"):
        f.warmup((spec(4, 4),))
        assert counted(lambda: f(fnp.ones((4, 4))))[:2] == (0, 0)
    assert counted(lambda: f(fnp.ones((4, 4))))[:2] == (1, 1)
    g = ft.jit(lambda x: x + 1)
    with ft.default_device("cpu"):
        g.warmup((spec(4),))
        assert counted(lambda: g(fnp.ones(4)))[:2] == (0, 0)


def test_a_call_waits_for_its_program(monkeypatch):
    from functorch_like.compiler import program

    begun, go, compile_program = threading.Event(), threading.Event(), program.Program.__init__

    def slow(self, *args, **kwargs):
        if threading.current_thread() is not threading.main_thread():
            begun.set()
            go.wait(30)
        compile_program(self, *args, **kwargs)

    monkeypatch.setattr(program.Program, "__init__", slow)
    f = ft.jit(lambda x: x * 3)
    before = counters.compiles + counters.cache_hits
    x = fnp.ones(3)
    (future,) = f.warmup((spec(3),), wait=False)
    begun.wait(30)
    assert f.warmup((spec(3),), wait=False) == [future] and not future.done()
    threading.Timer(0.05, go.set).start()
    assert f(x).tolist() == [3, 3, 3]
    assert future.done()
    assert counters.compiles + counters.cache_hits - before <= 2  # the program of f and that of `ones`


def test_no_specs():
    assert ft.jit(lambda x: x).warmup() == []


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ft.jit(lambda x: x).warmup(spec(3)), ArgumentError, "takes a tuple of arguments"),
        (lambda: ft.jit(lambda x: x).warmup([spec(3)]), ArgumentError, "got a list"),
        (lambda: ft.jit(lambda x: x, mode="max-autotune").warmup((spec(3),)), ArgumentError, "max-autotune"),
        (lambda: ft.jit(lambda x: x, static_argnums=0).warmup(([],)), ArgumentError, "not hashable"),
        (lambda: ft.jit(lambda x: x if x > 0 else 1).warmup((spec(),)), ConcretizationError, "only traced"),
        (lambda: ft.grad(lambda y: (ft.jit(lambda x: x * y).warmup((spec(),)), y)[1])(1.0), ArgumentError, "inside"),
        (lambda: ft.jit(lambda y: (ft.jit(lambda x: x).warmup((spec(),)), y)[1])(1.0), ArgumentError, "inside of a"),
    ],
)  # fmt: skip
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()
