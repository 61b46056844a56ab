"""Loops with short steps become one kernel on CPUs, with unchanged results."""

import re

import numpy as np
import pytest
from support.primitive_checks import check_compiled
from support.primitive_samples import all_cases, results

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends, core, errors, lax
from functorch_like.backends.xla import option_sets
from functorch_like.compiler import one_kernel

RNG = np.random.default_rng(0)


def kernels(f, *args):
    """Return the number of loops of a function that are lowered as one kernel."""
    return ft.jit(lambda *args: f(*args)).lower(*args).as_text().count("xla_cpu_small_call")


def normal(*shape):
    return RNG.normal(size=shape)


def kalman(transition, noise, observations, lib=fnp, scan=lax.scan):
    """Return the means of a Kalman filter that observes the first component with noise of variance 1."""

    def step(state, y):
        m, p = state
        m, p = transition @ m, transition @ p @ transition.T + noise
        gain = p[:, 0] / (p[0, 0] + 1.0)
        m, p = m + gain * (y - m[0]), p - lib.outer(gain, p[0])
        return (m, p), m

    return scan(step, (0 * noise[0], noise), observations)[1]


def plain_scan(step, carry, xs):
    ys = []
    for x in xs:
        carry, y = step(carry, x)
        ys.append(y)
    return carry, np.stack(ys)


def test_kalman_filter_is_one_kernel():
    transition, noise, observations = 0.4 * normal(4, 4), np.eye(4), normal(50)
    want = kalman(transition, noise, observations, np, plain_scan)
    assert kernels(kalman, transition, noise, observations) == 1
    np.testing.assert_allclose(ft.jit(kalman)(transition, noise, observations), want, rtol=1e-11)
    single = [x.astype("float32") for x in (transition, noise, observations)]
    np.testing.assert_allclose(ft.jit(kalman)(*single), want, rtol=1e-4, atol=1e-4)


def test_results_are_written_in_place():
    sums = lambda x: lax.scan(lambda c, row: (c + row, c + row), fnp.zeros(7), x)[1]
    row = lambda x: lambda i, c: (lax.dynamic_update_index_in_dim(c[0], c[1], i, 0), c[1] + x)
    rows = lambda x: lax.fori_loop(0, 40, row(x), (fnp.ones((40, 7)), x))[0]
    x = normal(40, 7).astype("float32")
    for f, operand, want in ((sums, x, np.cumsum(x, 0)), (rows, x[0], np.arange(1, 41)[:, None] * x[0])):
        assert kernels(f, operand) == 1
        np.testing.assert_allclose(ft.jit(f)(operand), want, rtol=1e-4, atol=1e-4)
        assert not re.search(r"f32\[40,7\]\S* copy\(", ft.jit(f).lower(operand).compile().as_text())


def test_gradient_of_a_recurrence():
    w, xs, h = 0.5 * normal(6, 6), normal(20, 6), normal(6)

    def last(w, h):
        return fnp.sum(lax.scan(lambda h, x: (fnp.tanh(w @ h + x), None), h, xs)[0] ** 2)

    states = [h]
    for x in xs:
        states.append(np.tanh(w @ states[-1] + x))
    by_h, by_w = 2 * states[-1], np.zeros_like(w)
    for before, after in zip(states[-2::-1], states[:0:-1], strict=True):
        by_sum = by_h * (1 - after**2)
        by_w, by_h = by_w + np.outer(by_sum, before), w.T @ by_sum
    assert kernels(ft.grad(last, (0, 1)), w, h) == 2
    got = ft.jit(ft.grad(last, (0, 1)))(w, h)
    np.testing.assert_allclose(got[0], by_w, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(got[1], by_h, rtol=1e-10, atol=1e-12)


def collatz(n):
    """Return the number of steps to 1 and the largest number on the way: a loop of unknown length with a branch."""

    def step(state):
        n, count, largest = state
        n = lax.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n)
        return n, count + 1, fnp.maximum(n, largest)

    return lax.while_loop(lambda state: state[0] != 1, step, (n, 0, n))[1:]


def test_while_with_a_branch():
    assert kernels(collatz, np.int64(27)) == 1
    assert [int(x) for x in ft.jit(collatz)(27)] == [111, 9232]
    assert [int(x) for x in ft.jit(collatz)(1)] == [0, 1]
    counts, largest = ft.jit(ft.vmap(collatz))(np.array([1, 6, 7, 27]))
    assert counts.tolist() == [0, 8, 16, 111] and largest.tolist() == [1, 16, 52, 9232]


def test_loop_in_a_loop():
    def powers(x):
        return lax.fori_loop(0, 3, lambda i, x: lax.fori_loop(0, 5, lambda j, y: y * x[0] + i, x), x)

    x = normal(7) * 0.3
    want = x
    for i in range(3):
        y = want
        for _ in range(5):
            y = y * want[0] + i
        want = y
    assert kernels(powers, x) == 2  # the inner loop is a function in the kernel of the outer loop
    np.testing.assert_allclose(ft.jit(powers)(x), want, rtol=1e-12)


def test_small_loop_in_a_large_one():
    """Only the inner loop is short: the outer one computes a large array."""
    x = normal(5000)

    def f(x):
        def step(i, x):
            scale = lax.fori_loop(0, 4, lambda j, s: s * 0.5 + x[0], x[1])
            return x * 0.9 + scale

        return lax.fori_loop(0, 3, step, x)

    want = x
    for _ in range(3):
        scale = want[1]
        for _ in range(4):
            scale = scale * 0.5 + want[0]
        want = want * 0.9 + scale
    assert kernels(f, x) == 1
    np.testing.assert_allclose(ft.jit(f)(x), want, rtol=1e-12)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 3])
def test_long_stacks_are_read_and_written_in_place(reverse, unroll):
    xs = normal(10_000, 3)
    order = slice(None, None, -1 if reverse else 1)

    def f(xs):
        return lax.scan(lambda c, x: (c + x, (c * 2, x.sum())), 0 * xs[0], xs, reverse=reverse, unroll=unroll)

    last, (before, sums) = ft.jit(f)(xs)
    assert kernels(f, xs) == 1
    totals = np.cumsum(xs[order], 0)
    np.testing.assert_allclose(last, totals[-1], rtol=1e-10)
    np.testing.assert_allclose(before, 2 * (totals - xs[order])[order], atol=1e-10)
    np.testing.assert_allclose(sums, xs.sum(1), atol=1e-12)


def test_each_kind_of_carry():
    start = {
        "b": np.array([True, False]), "i8": np.int8(100), "u32": np.uint32(5), "c": np.array([1 + 2j, 0.5j]),
        "nan": np.array([np.nan, np.inf, -0.0]), "none": None, "empty": np.zeros((0, 3)),
    }  # fmt: skip

    def step(i, s):
        return {
            "b": ~s["b"], "i8": s["i8"] + np.int8(50), "u32": s["u32"] - np.uint32(4), "c": s["c"] * 1j,
            "nan": fnp.maximum(s["nan"], -0.0), "none": None, "empty": s["empty"] + 1,
        }  # fmt: skip

    f = lambda s: lax.fori_loop(0, 3, step, s)
    assert kernels(f, start) == 1
    got = ft.jit(f)(start)
    assert got["b"].tolist() == [False, True] and int(got["i8"]) == -6 and int(got["u32"]) == 2**32 - 7
    np.testing.assert_allclose(got["c"], start["c"] * -1j)
    np.testing.assert_array_equal(got["nan"], [np.nan, np.inf, 0])
    assert got["empty"].shape == (0, 3)


def test_loop_of_no_step_and_without_carries():
    f = lambda n, x: lax.fori_loop(0, n, lambda i, x: x * 2, x)
    assert float(ft.jit(f)(0, 3.0)) == 3 and float(ft.jit(f)(-5, 3.0)) == 3 and float(ft.jit(f)(4, 3.0)) == 48
    ys = ft.jit(lambda n: lax.scan(lambda c, _: (c, n), None, None, length=4)[1])(7)
    assert ys.tolist() == [7] * 4


def test_constants_that_a_loop_takes():
    """XLA moves the constants into the loop, which leaves a parameter unused. This has ended the process."""

    def scaled(x, scale):
        return lax.fori_loop(0, 2, lambda i, s: (s[0], fnp.sin(s[1] * s[0].sum())), (scale, x))[1], scale

    given = lambda x: scaled(x, np.ones(1))
    computed = lambda x: scaled(x, fnp.eye(1, dtype="float64").reshape(1))
    x = normal(1, 2)
    for f in (given, computed):
        got = ft.jit(lambda c, x, f=f: lax.cond(c > 0, f, lambda x: (x, np.array([3.0])), x))(1.0, x)
        np.testing.assert_allclose(got[0], np.sin(np.sin(x)), rtol=1e-12)
        np.testing.assert_array_equal(got[1], [1.0])


def test_first_values_that_no_step_reads():
    """XLA drops a loop of one step that replaces a value, so that the first value is unused (see above)."""

    def f(x, y):
        first = x + 1
        once = lax.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, s[2] + 2, s[2] * 3), (0, first, y))
        return first, *once[1:]

    x, y = normal(2), normal(2)
    assert kernels(f, x, y) == 1
    for got, want in zip(ft.jit(f)(x, y), (x + 1, y + 2, y * 3), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)


def test_empty_arrays_in_a_loop():
    f = lambda x, empty: lax.fori_loop(0, 3, lambda i, s: (s[0] * 2 + s[1].sum(), s[1] * 3), (x, empty))
    x, empty = normal(2), normal(0, 3)
    assert kernels(f, x, empty) == 1
    got = ft.jit(f)(x, empty)
    np.testing.assert_allclose(got[0], 8 * x, rtol=1e-15)
    assert got[1].shape == (0, 3)


def test_donated_carry():
    x = fnp.arange(6.0)
    f = ft.jit(lambda x: lax.fori_loop(0, 5, lambda i, x: fnp.roll(x, 1) + i, x), donate_argnums=0)
    np.testing.assert_array_equal(f(x), np.roll(np.arange(6.0), 5) + 10)


WIDE = np.ones((3, 1000))
#: Steps that XLA cannot include in a kernel, or that run better as separate kernels.
APART = {
    "large arrays": (lambda x: x * 2, (4096,)),
    "product of matrices": (lambda x: x @ x, (8, 8)),
    "product with a large matrix": (lambda x: x + (x[0] * WIDE) @ WIDE[0], (3,)),
    "sum of a large array": (lambda x: x + x.sum(), (2000,)),
    "sort": (fnp.sort, (8,)),
    "Fourier transform": (lambda x: fnp.fft.fft(x).real, (8,)),
    "scatter": (lambda x: x.at[fnp.argmax(x) * fnp.array([1, 1])].add(1), (8,)),
    "factorization": (lambda x: fnp.linalg.cholesky(x @ x.T + np.eye(3)), (3, 3)),
    "narrow floats": (lambda x: x.astype("bfloat16").astype(x.dtype), (3,)),
    "convolution": (lambda x: fnp.convolve(x, x, "same"), (8,)),
}


@pytest.mark.parametrize("name", APART)
def test_loops_that_stay_sequences_of_kernels(name):
    fun, shape = APART[name]
    f = lambda x: lax.fori_loop(0, 3, lambda i, x: fun(x), x)
    x = normal(*shape) * 0.3
    assert kernels(f, x) == 0
    want = x
    for _ in range(3):
        want = fun(fnp.asarray(want))
    np.testing.assert_allclose(ft.jit(f)(x), want, rtol=1e-9)


def test_loops_with_callbacks_stay_apart():
    seen = []

    def f(x):
        def step(i, x):
            ft.debug.callback(lambda x: seen.append(float(x)), x)
            return x + 1

        return lax.fori_loop(0, 3, step, x)

    assert kernels(f, 1.0) == 0
    assert float(ft.jit(f)(1.0)) == 4
    ft.effects_barrier()
    assert sorted(seen) == [1, 2, 3]


def test_setting_switches_them_off():
    f = lambda x: lax.fori_loop(0, 3, lambda i, x: x * 2, x)
    with backends.flags({"cpu.fast_lowerings": ("-small_loops",)}):
        assert kernels(f, 1.0) == 0
    assert kernels(f, 1.0) == 1


def test_exported_programs_have_none():
    """Exported programs run under other versions of XLA and other options."""
    f = lambda x: lax.fori_loop(0, 3, lambda i, x: x * 2, x)
    made = ft.export.export(ft.jit(f))(1.0)
    assert "xla_cpu_small_call" not in made.mlir_module()
    assert float(made.call(1.0)) == 8


# Other compile options: YNNPACK takes a product of the loop, and the rules that would keep it apart are switched off.
def test_loops_that_xla_refuses_are_compiled_in_the_usual_form(monkeypatch):
    """The user's options may hand YNNPACK more operations than the rules cover."""
    monkeypatch.setattr(one_kernel, "LOOPS", one_kernel.LOOPS._replace(side=12))
    x = normal(12, 12).astype("float32") * 0.2
    f = lambda x: lax.fori_loop(0, 3, lambda i, y: y @ x + x, x)
    with backends.xla.options(option_sets.FUSED_DOTS), backends.flags({"cache.enabled": False}):
        assert kernels(f, x) == 1
        done = ft.jit(f)(x)
    want = x.astype("d")
    for _ in range(3):
        want = want @ x + x
    np.testing.assert_allclose(done, want, rtol=1e-4, atol=1e-5)


def test_random_numbers_in_a_loop():
    """A random walk draws the same numbers as a Python loop."""

    def walk(key, x):
        def step(x, key):
            x = x + ft.random.normal(key, x.shape, x.dtype)
            return x, x

        return lax.scan(step, x, ft.random.split(key, 20))[1]

    key, x = ft.random.key(3), normal(4)
    want, keys = [x], ft.random.split(key, 20)
    for k in range(20):
        want.append(want[-1] + np.asarray(ft.random.normal(keys[k], (4,), "float64")))
    assert kernels(walk, key, x) == 1
    np.testing.assert_allclose(ft.jit(walk)(key, x), want[1:], rtol=1e-12)


def test_errors_of_other_programs_are_not_hidden():
    f = ft.jit(lambda x: lax.fori_loop(0, 3, lambda i, x: x * 2, x), compiler_options={"xla_no_such_option": 1})
    with pytest.raises(errors.FtError, match="xla_no_such_option"):
        f(1.0)


PRIMITIVES = [p for p in core.TABLE.values() if one_kernel.is_plain(p) or p.kind == "product"]


@pytest.mark.parametrize("prim", [pytest.param(p, id=p.name) for p in PRIMITIVES])
def test_each_primitive_in_a_small_loop(prim):
    """A step reads its operands at the loop's counter, so that XLA does not compute it before the loop."""
    cases = [c for c in all_cases() if c.prim is prim]
    drawn = [c.draw() for c in cases]

    def one(case, stacks):
        def step(state):
            k, _ = state
            xs = [lax.dynamic_index_in_dim(x, k, keepdims=False) for x in stacks]
            return k + 1, results(prim, prim(*xs, **case.sample.params))

        starts = ft.tree.map(lambda a: fnp.zeros(a.shape, a.dtype), ft.eval_shape(lambda: step((0, None))[1]))
        return lambda n: lax.while_loop(lambda state: state[0] < n, step, (0, starts))[1]

    stacks = [[np.stack([x[None], x[None]]).reshape(2, *np.shape(x)) for x in map(np.asarray, xs)] for xs in drawn]
    run = lambda n, stacks: [one(c, xs)(n) for c, xs in zip(cases, stacks, strict=True)]
    lowered = ft.jit(run, keep_unused=True).lower(1, stacks)
    text = lowered.as_text()
    assert re.search("xla_cpu_small_call", text) or prim.name in LARGE, f"no sample of {prim.name} is small"
    for case, outs, xs in zip(cases, ft.jit(run, keep_unused=True)(1, stacks), drawn, strict=True):
        check_compiled(case, outs, xs)


#: Primitives without samples that are part of a kernel: their lowering has sorts, scatters or library calls.
LARGE = {"conv_general_dilated", "ragged_contract", "ragged_dot"}
