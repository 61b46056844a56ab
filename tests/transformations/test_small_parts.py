"""In the quick tier, small operations between library calls are compiled as few kernels, with the same results."""

# Other compile options: those of the quick tier.

import re

import numpy as np
import pytest
from support.primitive_checks import check_compiled
from support.primitive_samples import all_cases, results

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends, core
from functorch_like.backends import xla
from functorch_like.backends.xla.kernel_limits import PARTS
from functorch_like.compiler import lower as lowering
from functorch_like.compiler import one_kernel
from functorch_like.primitives.base import kernels

RNG = np.random.default_rng(0)
ONE_KERNEL = "xla_cpu_small_call"


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """Use the quick tier alone, on each version of XLA, without programs of earlier tests."""
    monkeypatch.setattr(kernels, "_PROGRAMS_GAIN", True)
    ft.clear_caches()
    with backends.flags({"compilation.tiers": "quick", "cache.enabled": False}):
        yield
    ft.clear_caches()


@pytest.fixture
def modules(monkeypatch):
    """Texts of the modules that are compiled."""
    texts = []
    compile_ = xla.compile

    def noted(make, **about):
        texts.append(str(make()))
        return compile_(make, **about)

    monkeypatch.setattr(lowering.xla, "compile", noted)
    return texts


def normal(*shape):
    return RNG.normal(size=shape)


def calls(text):
    """Return the operations of main without constants and free ones: calls of parts, and operations between them."""
    main = text.split("func.func private")[0]
    operations = re.findall(r"^    %[\w:]+ = \"?(?:stablehlo\.)?(\w+)", main, re.MULTILINE)
    return [
        o
        for o in operations
        if o not in ("constant", "iota", "compare", "broadcast_in_dim", "reshape", "optimization_barrier")
    ]


MATRIX, VECTOR = normal(5, 5) + 5 * np.eye(5), normal(5)
PROGRAMS = {
    "solve": (lambda a, b: fnp.tanh(fnp.linalg.solve(a, b)), lambda a, b: np.tanh(np.linalg.solve(a, b))),
    "pinv": (lambda a, b: fnp.linalg.pinv(a) @ b, lambda a, b: np.linalg.pinv(a) @ b),
    "singular values of a wide matrix": (
        lambda a, b: fnp.linalg.svd(a[:3], compute_uv=False), lambda a, b: np.linalg.svd(a[:3], compute_uv=False),
    ),
    "stack of tall matrices": (
        lambda a, b: fnp.abs(fnp.linalg.qr(fnp.stack([a[:, :3], 2 * a[:, 2:]]))[1]),
        lambda a, b: np.abs(np.linalg.qr(np.stack([a[:, :3], 2 * a[:, 2:]]))[1]),
    ),
    "middle": (lambda a, b: fnp.sort(a * 2, axis=0)[2], lambda a, b: np.median(a * 2, axis=0)),
    "fft": (lambda a, b: abs(fnp.fft.fft(b)), lambda a, b: abs(np.fft.fft(b))),
    "sort of sums": (lambda a, b: fnp.sort(a.sum(0)) + b, lambda a, b: np.sort(a.sum(0)) + b),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_between_libraries_there_are_calls_alone(name, modules):
    f, reference = PROGRAMS[name]
    out = ft.jit(f)(MATRIX, VECTOR)
    np.testing.assert_allclose(out, reference(MATRIX, VECTOR), rtol=1e-9, atol=1e-12)
    made = calls(modules[-1])
    assert "call" in made and ONE_KERNEL in modules[-1]
    assert set(made) <= {"call", "custom_call", "sort", "fft"}, made


def test_random_numbers_before_a_sort(modules):
    """Inlined functions are parts of the kernels, not kernels themselves."""
    key = ft.random.key(3)
    out = ft.jit(lambda key: ft.random.permutation(key, 30))(key)
    assert set(calls(modules[-1])) == {"call", "sort"}
    with backends.flags({"cpu.fast_lowerings": "-small_programs"}):
        np.testing.assert_array_equal(out, ft.jit(lambda key: ft.random.permutation(key, 30))(key))
    assert ONE_KERNEL not in modules[-1]


@pytest.mark.parametrize(
    ("f", "x"),
    [
        pytest.param(lambda x: fnp.sort(fnp.sin(x)[:20]), normal(3000), id="large arrays, which XLA fuses with others"),
        pytest.param(lambda x: fnp.sort(x), normal(20).astype("int8"), id="a sort alone"),
        pytest.param(lambda x: fnp.linalg.inv(x), normal(60, 60), id="large matrices"),
        pytest.param(lambda x: fnp.sort(fnp.asarray(x, "bfloat16") * 2), normal(8), id="narrow numbers"),
    ],
)
def test_programs_that_stay_as_they_are(f, x, modules):
    ft.jit(f)(x)
    assert ONE_KERNEL not in modules[-1]


def test_programs_with_effects_stay_as_they_are(modules, capfd):
    def f(x):
        ft.debug.print("sum {}", x.sum())
        return fnp.sort(fnp.sin(x))

    x = normal(6)
    np.testing.assert_allclose(ft.jit(f)(x), np.sort(np.sin(x)), rtol=1e-12)
    assert ONE_KERNEL not in modules[-1] and "sum" in capfd.readouterr().out


def test_kinds_of_arguments_and_results(modules):
    """Arguments may be unused, donated, empty or returned; several parts may read a value; results may be constants."""

    def f(x, unused, donated, empty, n):
        y = fnp.sort(x * n)
        return x, fnp.sort(donated * n) + y[0], fnp.sort(empty) + 1, y - x, np.arange(3), fnp.sort(y * y), n

    x, donated = normal(3), fnp.asarray(normal(4), "float64")
    kept = np.array(donated)
    out = ft.jit(f, donate_argnums=2, keep_unused=True)(x, normal(2), donated, normal(0, 2), 3)
    y = np.sort(x * 3)
    want = (x, np.sort(kept * 3) + y[0], np.zeros((0, 2)), y - x, [0, 1, 2], np.sort(y * y), 3)
    for got, expected in zip(out, want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-14)
    assert ONE_KERNEL in modules[-1] and donated.is_deleted()


def test_text_is_that_of_the_program():
    f = ft.jit(lambda a, b: fnp.linalg.solve(a, b))
    f(MATRIX, VECTOR)
    assert ONE_KERNEL not in f.lower(MATRIX, VECTOR).as_text()


def test_a_large_part_is_left_to_xla(modules):
    def f(x):
        for k in range(PARTS.operations):
            x = fnp.sin(x) + k % 2
        return fnp.sort(x)

    x = normal(3)
    out = ft.jit(f)(x)
    assert "sine" in calls(modules[-1])
    for k in range(PARTS.operations):
        x = np.sin(x) + k % 2
    np.testing.assert_allclose(out, np.sort(x), rtol=1e-10)


#: The other primitives make programs of one kernel, which test_small_programs.py tests.
PRIMITIVES = [p for p in core.TABLE.values() if p.builtin and not one_kernel.is_plain(p) and p.kind != "product"]


@pytest.mark.parametrize("prim", [pytest.param(p, id=p.name) for p in PRIMITIVES])
def test_each_primitive_between_others(prim):
    """Small operations compute the operands of the primitive and read its results."""
    cases = [c for c in all_cases() if c.prim is prim]
    if not cases or prim.effects:
        pytest.skip("no samples to compile")
    drawn = [c.draw() for c in cases]

    def run(args):
        through = ft.tree.map(lambda x: x[...] if np.ndim(x) else x, args)
        outs = [results(prim, prim(*xs, **c.sample.params)) for c, xs in zip(cases, through, strict=True)]
        return [[fnp.reshape(o, o.shape) for o in out] for out in outs]

    for case, outs, xs in zip(cases, ft.jit(run, keep_unused=True)(drawn), drawn, strict=True):
        check_compiled(case, outs, xs)
