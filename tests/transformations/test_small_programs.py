"""Programs on small arrays start as one kernel in the quick tier, with the results of the other tiers."""

# Other compile options: those of the quick tier.

import numpy as np
import pytest
from support.primitive_checks import check_compiled
from support.primitive_samples import all_cases, results

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends, core, errors
from functorch_like.backends.xla import events, option_sets
from functorch_like.compiler import one_kernel
from functorch_like.primitives.base import kernels

RNG = np.random.default_rng(0)
MARK = "xla_cpu_small_call"


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """Use the quick tier alone, on each version of XLA, without programs of earlier tests."""
    monkeypatch.setattr(kernels, "_PROGRAMS_GAIN", True)
    ft.clear_caches()
    with backends.flags({"compilation.tiers": "quick", "cache.enabled": False}):
        yield
    ft.clear_caches()


def normal(*shape):
    return RNG.normal(size=shape)


def compiled(f, *args, **options):
    """Return the result of `jit(f)`, and True if the program was compiled as one kernel."""
    lowered = []
    with events.listening(lambda event: lowered.append(event) if event.kind == "lower" else None):
        out = ft.block_until_ready(ft.jit(lambda *args: f(*args), **options)(*args))
    texts = [str(event.about["module"]) for event in lowered]
    assert len(texts) == 1
    main = texts[0].split("func.func private")[0]
    return out, f"{MARK} = " in main and "@part_" not in main  # parts of a program: test_small_parts.py


def softmax(x):
    y = np.exp(x - x.max(-1, keepdims=True))
    return y / y.sum(-1, keepdims=True)


def test_network_and_its_gradient():
    w, v, x = normal(6, 7), normal(7, 5), normal(6)
    out, one = compiled(lambda w, v, x: ft.nn.softmax(fnp.tanh(x @ w) @ v), w, v, x)
    assert one
    np.testing.assert_allclose(out, softmax(np.tanh(x @ w) @ v), rtol=1e-12)

    out, one = compiled(ft.grad(lambda v: fnp.log(ft.nn.softmax(fnp.tanh(x @ w) @ v))[2]), v)
    assert one
    by_logits = np.eye(5)[2] - softmax(np.tanh(x @ w) @ v)
    np.testing.assert_allclose(out, np.outer(np.tanh(x @ w), by_logits), rtol=1e-11, atol=1e-13)


def test_random_numbers():
    key = ft.random.key(5)
    out, one = compiled(lambda key: ft.random.uniform(key, (40,)), key)
    with backends.flags({"cpu.fast_lowerings": "-small_programs"}):
        other, plain = compiled(lambda key: ft.random.uniform(key, (40,)), key)
    assert one and not plain
    np.testing.assert_array_equal(out, other)


APART = {
    "large": (lambda x: fnp.sin(x).sum(), normal(3000)),
    "sort": (lambda x: fnp.sort(fnp.sin(x)), normal(20)),
    "library": (lambda x: fnp.linalg.cholesky(x @ x.T + 1), normal(4, 4)),
    "half": (lambda x: fnp.sin(fnp.asarray(x, "bfloat16")), normal(4)),
}


@pytest.mark.parametrize("name", APART)
def test_programs_that_stay_apart(name):
    f, x = APART[name]
    assert not compiled(f, x)[1]


def test_a_users_primitive_may_call_what_it_likes():
    def lower(e, x):
        return e.op("stablehlo.sine", [x], e.outs)

    sine = ft.extend.Primitive(
        "users_sine", shape=lambda x: x, ref=np.sin, lower=lower, kind="elementwise",
        jvp=ft.extend.NotDefined("not needed"), transpose=ft.extend.NotDefined("not linear"),
        batch=ft.extend.NotDefined("not needed"), samples=list,
    )  # fmt: skip
    try:
        out, one = compiled(lambda x: sine(x) + 1, normal(3))
        assert not one and out.shape == (3,)
    finally:
        ft.extend.forget(sine)


def test_arguments_and_results_of_each_kind():
    """Arguments may be unused, donated, empty, returned or Python numbers; results may be constants."""

    def f(x, unused, donated, empty, n, flag):
        return x, donated * n, empty + 1, fnp.where(flag, x, -x).sum(), np.arange(3), 2.5, n

    x, donated = normal(3), fnp.asarray(normal(4), "float64")
    kept = np.array(donated)
    out, one = compiled(f, x, normal(2), donated, normal(0, 2), 3, True, donate_argnums=2, keep_unused=True)
    assert one and donated.is_deleted()
    for got, want in zip(out, (x, kept * 3, np.zeros((0, 2)), x.sum(), [0, 1, 2], 2.5, 3), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-15)


def test_text_is_that_of_the_program():
    """The text for users, and programs under full options, have no kernel around them."""
    f = ft.jit(lambda x: fnp.tanh(x).sum())
    assert MARK not in f.lower(normal(3)).as_text()
    backends.compilation.tiers = "off"
    assert not compiled(lambda x: fnp.tanh(x).sum(), normal(3))[1]


def test_programs_that_xla_refuses_are_compiled_in_the_usual_form():
    """The user's options may hand YNNPACK operations that the tier's options do not."""
    x = normal(12, 12).astype("float32")
    with backends.xla.options(option_sets.FUSED_DOTS):
        out, _ = compiled(lambda x: fnp.tanh(x @ x) + x, x)
    np.testing.assert_allclose(out, np.tanh(x.astype("d") @ x) + x, rtol=1e-4, atol=1e-5)


def test_errors_of_the_compiler_are_passed_on():
    f = ft.jit(lambda x: fnp.tanh(x).sum(), compiler_options={"xla_no_such_option": 1})
    with pytest.raises(errors.FtError, match="xla_no_such_option"):
        f(normal(3))


PRIMITIVES = [p for p in core.TABLE.values() if one_kernel.is_plain(p) or p.kind == "product"]


@pytest.mark.parametrize("prim", [pytest.param(p, id=p.name) for p in PRIMITIVES])
def test_each_primitive(prim):
    cases = [c for c in all_cases() if c.prim is prim]
    drawn = [c.draw() for c in cases]
    run = lambda args: [results(prim, prim(*xs, **c.sample.params)) for c, xs in zip(cases, args, strict=True)]
    for case, outs, xs in zip(cases, ft.jit(run, keep_unused=True)(drawn), drawn, strict=True):
        check_compiled(case, outs, xs)
