"""jit(mode=): the compile options of a program, and their choice by measurement."""

# Other compile options: a mode of jit is a set of them.

import re

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends, lax
from functorch_like.backends.xla import option_sets as sets
from functorch_like.backends.xla import processor, subprocess_trial
from functorch_like.compiler import autotune
from functorch_like.compiler.option_rules import choose, choose_quick

cpu = pytest.mark.skipif(ft.default_backend() != "cpu", reason="the rule is for CPUs")
X = ft.ShapeDtypeStruct((256, 256), "float32")
MANY = ft.ShapeDtypeStruct((8, 128, 64), "float32")


def chosen(f, *args, mode="default", platform="cpu"):
    return choose(ft.make_jaxpr(f)(*args), mode, platform)


def test_the_rule():
    assert chosen(lambda x: fnp.tanh(x @ x), X) == {}
    products = lambda x: fnp.einsum("bik,bjk->bij", x, x)
    assert chosen(products, MANY) == {}  # oneDNN, which some processors compute these faster with, is not safe
    assert chosen(products, ft.ShapeDtypeStruct(MANY.shape, "bfloat16")) == {}


def test_many_products_are_not_planned_for_the_quick_tier():
    """YNNPACK's plans for them take longer than their first run."""

    def products(x, count):
        for _ in range(count):
            x = fnp.tanh(x @ x)
        return x

    quick = lambda f, x, platform="cpu": choose_quick(ft.make_jaxpr(f)(x), {}, platform)
    many = lambda x: products(x, 32)
    assert quick(lambda x: products(x, 31), X) == sets.QUICK
    assert quick(many, X) == {**sets.QUICK, **sets.ynn("REDUCE")}
    assert quick(ft.jit(many), X) == quick(many, X)  # also inside of calls
    assert quick(many, ft.ShapeDtypeStruct(X.shape, "bfloat16")) == sets.QUICK  # YNNPACK's are twice as fast
    assert quick(many, X, "gpu") == sets.CUBLAS


def test_many_operations_in_a_row_are_compiled_without_recursion():
    """XLA 0.10 ends the process on some thousands of them in the quick tier's other options."""

    def waves(x, count):
        for _ in range(count):
            x = fnp.sin(x) + fnp.cos(2 * x)
        return x

    quick = lambda f: choose_quick(ft.make_jaxpr(f)(X), {}, "cpu")
    assert quick(lambda x: waves(x, 400)) == sets.QUICK
    assert quick(lambda x: waves(x, 600)) == sets.QUICK_WITH_EMITTERS
    assert quick(lambda x: waves(waves(x, 400) @ x, 400)) == sets.QUICK  # products are kernels of their own
    assert quick(lambda x: waves(ft.jit(waves, static_argnums=1)(x, 400), 400)) == sets.QUICK_WITH_EMITTERS


def test_what_is_computed_on_the_fly_is_fused_into_its_sum():
    points = ft.ShapeDtypeStruct((1024, 3), "float32")

    def potential(x):
        difference = x[:, None] - x[None]
        return fnp.sum(1 / fnp.sqrt(fnp.sum(difference**2, axis=-1) + 1))

    assert chosen(lambda x: fnp.sum((x[:, None] - x[None]) ** 2, axis=-1), points) is sets.NO_FUSIONS
    assert chosen(lambda x, y: (fnp.sum((x[:, None] - x[None]) ** 2, axis=-1), ft.nn.softmax(y)), points,
                  ft.ShapeDtypeStruct((2048, 64), "float32")) == {}  # fmt: skip


def test_random_bits_take_wide_registers(monkeypatch):
    draw = lambda key: ft.random.bits(key, (100_000,))
    key = ft.ShapeDtypeStruct((2,), "uint32")
    monkeypatch.setattr(processor, "features", lambda: frozenset({"avx512f"}))
    assert chosen(draw, key) is sets.WIDE
    monkeypatch.setattr(processor, "features", lambda: frozenset({"avx2"}))
    assert chosen(draw, key) == {}


def test_functions_of_float64_take_wide_registers(monkeypatch):
    monkeypatch.setattr(processor, "features", lambda: frozenset({"avx512f"}))
    x = ft.ShapeDtypeStruct((100_000,), "float64")
    assert chosen(fnp.log, x) is sets.WIDE
    assert chosen(ft.jit(lambda x: fnp.sum(fnp.sin(x))), x) is sets.WIDE
    assert chosen(lambda x: fnp.abs(x) / (x + 1), x) == {}
    assert chosen(fnp.log, ft.ShapeDtypeStruct((100_000,), "float32")) == {}
    assert chosen(fnp.log, ft.ShapeDtypeStruct((100,), "float64")) == {}
    assert chosen(lambda x: fnp.log(x) @ x, x) == {}
    assert chosen(fnp.arctan, x) is sets.WIDE
    with backends.cpu.flags(fast_lowerings="-atan"):
        assert chosen(fnp.arctan, x) == {}
    monkeypatch.setattr(processor, "features", lambda: frozenset({"avx2"}))
    assert chosen(fnp.log, x) == {}


@cpu
@pytest.mark.parametrize("name", ["float64", "float16"])
def test_arctan_beside_random_bits_is_right(name):
    """XLA computes half of the numbers only, if registers have 512 bits."""
    x = np.linspace(-3, 3, 4096).astype(name)

    @ft.jit
    def f(x, key):
        return fnp.arctan(x), fnp.arctan2(x, fnp.ones_like(x)), ft.random.bits(key, (100_000,))

    for got in f.lower(x, ft.random.key(0)).compile()(x, ft.random.key(0))[:2]:
        np.testing.assert_allclose(got, np.arctan(x), rtol=4 * np.finfo(name).eps)


def test_other_modes_and_platforms():
    f = lambda x: x @ x
    assert chosen(f, X, mode="fast-compile") is sets.UNOPTIMIZED
    assert chosen(f, X, mode="fast-compile", platform="gpu") is sets.CUBLAS
    assert chosen(f, X, mode="reduce-overhead", platform="gpu") is sets.GRAPHS
    assert chosen(f, X, platform="gpu") == {}
    assert chosen(f, X, mode="reduce-overhead") == chosen(f, X)


@pytest.mark.parametrize("mode", ["default", "fast-compile", "reduce-overhead", "max-autotune"])
def test_results_are_the_same_in_all_modes(mode):
    x = np.random.default_rng(0).standard_normal((4, 16, 8)).astype(np.float32)
    f = ft.jit(lambda x: ft.nn.softmax(fnp.einsum("bik,bjk->bij", x, x)), mode=mode)
    scores = x.astype(np.float64) @ x.astype(np.float64).swapaxes(1, 2)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(f(x), weights / weights.sum(-1, keepdims=True), rtol=1e-4, atol=1e-6)


@cpu
def test_fast_compiling_reaches_the_compile_options():
    happened = ft.explain(ft.jit(lambda x: fnp.sin(x) + 41, mode="fast-compile"))(np.ones(3, np.float32))
    lowered = ft.jit(lambda x: fnp.sin(x), mode="fast-compile").trace(np.ones(3, np.float32)).lower()._lowered
    assert lowered.options(ft.devices()[0], mode="fast-compile")["xla_backend_optimization_level"] == 0
    assert happened.count("trace") == 1


def test_a_setting_and_the_users_options_go_before_the_mode():
    name = "xla_backend_optimization_level"
    lowered = ft.jit(fnp.sin).trace(1.0).lower()._lowered
    with backends.xla.options({name: 1}):
        assert lowered.options(ft.devices()[0], mode="fast-compile")[name] == 1
        assert lowered.options(ft.devices()[0], {name: 2}, mode="fast-compile")[name] == 2


def test_an_unknown_mode_names_the_known_ones():
    with pytest.raises(ft.errors.ArgumentError, match=r"no mode 'max-autotun'; did you mean 'max-autotune'\?"):
        ft.jit(fnp.sin, mode="max-autotun")


def test_the_mode_of_torch_without_graphs_names_the_one_to_use():
    with pytest.raises(ft.errors.ArgumentError) as e:
        ft.jit(fnp.sin, mode="max-autotune-no-cudagraphs")
    assert "use 'max-autotune', which keeps graphs" in e.value.fix


# ------------------------------------------------------------------------------------------------------ max-autotune
def tuned(happened):
    return [e.about["how"] for e in happened.events if e.kind == "tune"]


@cpu
def test_the_fastest_way_is_kept_and_remembered(tmp_path, monkeypatch):
    slow, fast = autotune.Candidate("default"), autotune.Candidate("quick", sets.UNOPTIMIZED)
    monkeypatch.setattr(autotune, "CANDIDATES", {"cpu": (slow, fast)})
    monkeypatch.setattr(
        autotune, "least_seconds", lambda programs, args: {way: 1.0 + (way is slow) for way in programs}
    )
    x = np.arange(5, dtype=np.float32)
    make = lambda: ft.jit(lambda x: fnp.cos(x) * 7, mode="max-autotune")
    with backends.cache.flags(directory=tmp_path / "cache", enabled=True):
        first = ft.explain(make())(x)
        np.testing.assert_allclose(first.result, np.cos(x) * 7, rtol=1e-6)
        assert tuned(first) == ["chose quick: default 2e+03 ms, quick 1e+03 ms"]
        again = ft.explain(make())(x)
        assert tuned(again) == ["quick, as measured before"]
        (event,) = [e for e in again.events if e.kind == "tune"]
        assert event.about["seconds_of"] == {slow: 2.0, fast: 1.0}


@cpu
def test_what_is_hardly_faster_is_not_taken(monkeypatch):
    ways = autotune.Candidate("default"), autotune.Candidate("quick", sets.UNOPTIMIZED)
    monkeypatch.setattr(autotune, "CANDIDATES", {"cpu": ways})
    monkeypatch.setattr(
        autotune, "least_seconds", lambda programs, args: {way: 1.0 if way is ways[0] else 0.99 for way in programs}
    )
    with backends.cache.flags(enabled=False):
        assert tuned(ft.explain(ft.jit(fnp.sinh, mode="max-autotune"))(1.0))[0].startswith("chose default: ")


@cpu
def test_a_way_that_dies_is_left_out(monkeypatch):
    ways = autotune.Candidate("default"), autotune.Candidate("deadly", sets.UNOPTIMIZED, risky=True)
    monkeypatch.setattr(autotune, "CANDIDATES", {"cpu": ways})
    monkeypatch.setattr(subprocess_trial, "survives", lambda *args: False)
    with backends.cache.flags(enabled=False):
        assert "deadly" not in tuned(ft.explain(ft.jit(fnp.cosh, mode="max-autotune"))(1.0))[0]


@cpu
@pytest.mark.parametrize("convolves", [True, False])
def test_ways_for_convolutions_are_for_programs_that_have_some(convolves, monkeypatch):
    default, convolutions = autotune.DEFAULT, next(w for w in autotune.CANDIDATES["cpu"] if w.name == "convolutions")
    monkeypatch.setattr(autotune, "CANDIDATES", {"cpu": (default, convolutions)})
    monkeypatch.setattr(
        autotune, "least_seconds", lambda programs, args: {way: 1.0 - (way is not default) for way in programs}
    )
    x, kernel = np.arange(72.0, dtype=np.float32).reshape(1, 2, 6, 6), np.ones((3, 2, 3, 3), np.float32)
    f = (lambda x, w: lax.conv(x, w, (1, 1), "VALID")) if convolves else (lambda x, w: fnp.sum(x) * w)
    with backends.cache.flags(enabled=False):
        report = ft.explain(ft.jit(f, mode="max-autotune"))(x, kernel)
    assert ("convolutions" in tuned(report)[0]) == convolves
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3)).sum((1, 4, 5))
    want = np.repeat(windows[:, None], 3, 1) if convolves else x.sum() * kernel
    np.testing.assert_allclose(report.result, want, rtol=1e-6)


@cpu
def test_options_that_no_way_takes_are_refused_by_name():
    wrong = ft.jit(fnp.sinh, mode="max-autotune", compiler_options={"xla_cpu_enable_fast_mat": True})
    with pytest.raises(ft.errors.ArgumentError, match="did you mean 'xla_cpu_enable_fast_math'"):
        wrong(1.0)


@cpu
def test_donated_arguments_are_donated_once_and_not_by_the_measurement():
    f = ft.jit(lambda x: x * 3, mode="max-autotune", donate_argnums=0)
    x = fnp.ones(1000)
    assert float(f(x)[0]) == 3 and x.is_deleted()


@cpu
def test_a_trial_lives_or_dies_in_a_process_of_its_own(monkeypatch, tmp_path):
    lowered = ft.jit(lambda x: fnp.sin(x) @ x).trace(np.ones((3, 3), np.float32)).lower()
    module, device = lowered._lowered.module, ft.devices()[0]
    assert subprocess_trial.survives(module, device, lowered._lowered.options(device))
    assert not subprocess_trial.survives(module, device, {"xla_there_is_no_such_option": True})
    deadly = tmp_path / "python"
    deadly.write_text("#!/bin/sh\nkill -ABRT $$\n")
    deadly.chmod(0o700)
    monkeypatch.setattr(subprocess_trial.sys, "executable", str(deadly))
    assert not subprocess_trial.survives(module, device, {})


@cpu
@pytest.mark.parametrize(
    "fun",
    [
        lambda x, w: fnp.tanh(x @ w) @ w,
        lambda x, w: (x @ w) @ w,
        lambda x, w: ft.jit(lambda y: fnp.maximum(y + 1, 0))(x @ w).T @ w,
        lambda x, w: ft.jit(lambda x: x @ w)(x) @ w,
        lambda x, w: ft.lax.fori_loop(0, 3, lambda i, x: fnp.tanh(x @ w) @ w, x),
        lambda x, w: ft.nn.silu(x @ w + w[0]) @ w,
        lambda x, w: (ft.nn.silu(x @ w) * (x @ w.T)) @ w,
        lambda x, w: ft.nn.silu(ft.nn.softmax(x @ w)) @ w,
        lambda x, w: fnp.exp(x.astype("bfloat16") @ w.astype("bfloat16")) @ w.astype("bfloat16"),
        lambda x, w: ft.nn.dot_product_attention(x[None, :, None], w[None, :, None], w[None, :, None]),
    ],
)
def test_products_of_products_are_not_fused(fun):
    """YNNPACK would compute the inner product again for each block of the outer one. This took 30 times the work."""
    x = ft.ShapeDtypeStruct((128, 128), "float32")
    text = ft.jit(fun).lower(x, x).compile().as_text()
    computations = re.split(r"\n(?=%|ENTRY)", text)
    products = [len(re.findall(r" dot\(", c)) for c in computations if c.startswith("%fused")]
    assert "__ynn_fusion" in text and 1 in products and max(products) == 1
