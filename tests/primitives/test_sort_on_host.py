"""Sorts and selections on CPUs by NumPy's kernel: values, transformations, threads, processes, interrupts."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends, dtypes
from functorch_like.backends.xla import callbacks, host_kernels
from functorch_like.primitives.ordering.order_statistics import order_statistics
from functorch_like.primitives.ordering.sort_cpu import MANY
from functorch_like.testing import count_compiles

N = MANY
#: A row of which two elements are selected, where there are two such rows.
LONG = 2048
TARGET = host_kernels.TARGET
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
SPECIAL = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -1.5]


def drawn(dtype, shape=(N,), seed=0):
    rng, dtype = np.random.default_rng(seed), dtypes.as_dtype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    with np.errstate(all="ignore"):
        values = rng.standard_normal(shape).astype(dtype)
        places = rng.integers(0, values.size, 8 * len(SPECIAL))
        values.reshape(-1)[places] = np.array(SPECIAL * 8).astype(dtype)
    return values


def bits(x):
    x = np.asarray(x)
    return x.view(f"u{x.dtype.itemsize}") if x.dtype.kind not in "iub" else x


def same(found, wanted):
    np.testing.assert_array_equal(bits(found), bits(wanted))


def in_order(x, axis=-1):
    """Sort by NumPy in float64, with -0 before 0 and the positive NaN for every NaN."""
    wide = np.asarray(x).astype(np.float64)
    order = np.lexsort([~np.signbit(wide), wide], axis=axis)
    sorted_ = np.take_along_axis(np.asarray(x), order, axis)
    return np.where(np.isnan(sorted_.astype(np.float64)), np.array(np.nan).astype(x.dtype), sorted_)


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_are_sorted_with_nan_last_and_minus_zero_first(dtype):
    x = drawn(dtype)
    for found in (fnp.sort(x), ft.jit(fnp.sort)(x)):
        same(found, in_order(x))
    with backends.flags(cpu_fast_lowerings=False):
        standard = np.asarray(fnp.sort(x))
    number = ~np.isnan(standard.astype(np.float64))
    same(np.asarray(fnp.sort(x))[number], standard[number])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_of_all_widths(dtype):
    x = drawn(dtype)
    assert TARGET in ft.jit(fnp.sort).lower(x).as_text()
    same(fnp.sort(x), np.sort(x))
    same(fnp.argsort(x), np.argsort(x, kind="stable"))
    same(fnp.sort(x, descending=True), np.sort(x)[::-1])


@pytest.mark.parametrize("dtype", FLOATS)
def test_argsort_is_stable_and_takes_both_zeros_for_one(dtype):
    x = drawn(dtype)
    wanted = np.argsort(x.astype(np.float64) if dtype == "bfloat16" else x, kind="stable")
    same(fnp.argsort(x), wanted)
    same(ft.jit(lambda v: fnp.argsort(v, stable=True))(x), wanted)


@pytest.mark.parametrize("axis", [0, 1, 2, None])
def test_any_axis(axis):
    x = drawn("float32", (17, 30, 19))
    same(fnp.sort(x, axis=axis), in_order(x.ravel() if axis is None else x, -1 if axis is None else axis))
    same(fnp.argsort(x, axis=axis), np.argsort(x, axis=axis, kind="stable"))


def test_without_elements():
    same(fnp.sort(np.zeros((0, N), np.float32)), np.zeros((0, N), np.float32))
    same(fnp.sort(np.zeros((N, 0), np.float32), axis=0), np.zeros((N, 0), np.float32))


def test_the_operand_stays_as_it_was():
    x = drawn("int32")
    kept = fnp.asarray(x)
    both = ft.jit(lambda v: (v, fnp.sort(v), v + 1, fnp.sort(v + 1)))(kept)
    for found, wanted in zip(both, (x, np.sort(x), x + 1, np.sort(x + 1)), strict=True):
        same(found, wanted)
    same(kept, x)
    same(ft.jit(lambda: fnp.sort(x))(), np.sort(x))  # a constant
    same(x, drawn("int32"))
    same(ft.jit(fnp.sort, donate_argnums=0)(fnp.array(x)), np.sort(x))


def test_gradient_goes_where_the_elements_go():
    x, weights = np.random.default_rng(1).permutation(N).astype(np.float64), np.arange(float(N))
    slope = ft.grad(lambda v: fnp.sum(fnp.sort(v) * weights))
    same(slope(x), weights[x.astype(int)])
    same(ft.jit(slope)(x), weights[x.astype(int)])


def test_vmap_sorts_rows():
    x = drawn("float32", (3, N))
    same(ft.vmap(fnp.sort)(x), in_order(x))
    same(ft.jit(ft.vmap(fnp.argsort))(x), np.argsort(x, kind="stable"))
    few = drawn("float32", (64, N // 64))
    same(ft.vmap(fnp.sort, in_axes=1, out_axes=1)(few), in_order(few, 0))


def test_in_loops_and_branches():
    x = drawn("int32", (4, N))

    def step(total, row):
        return total + fnp.sort(row), ft.lax.cond(row[0] > 0, fnp.sort, lambda r: r, row)

    total, rows = ft.jit(lambda v: ft.lax.scan(step, fnp.zeros(N, "int32"), v))(x)
    with np.errstate(over="ignore"):
        same(total, np.sort(x).sum(0, dtype=np.int32))
    same(rows, [np.sort(r) if r[0] > 0 else r for r in x])


def test_what_is_made_of_sorts():
    x = drawn("int32") % 1000
    for found, wanted in zip(fnp.unique(x, return_counts=True), np.unique(x, return_counts=True), strict=True):
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(fnp.sort(ft.random.permutation(ft.random.key(0), N)), np.arange(N))
    y = np.random.default_rng(2).standard_normal((3, N))
    np.testing.assert_allclose(fnp.median(y, axis=1), np.median(y, axis=1), rtol=1e-14)
    q = np.array([0.1, 0.99])
    np.testing.assert_allclose(fnp.quantile(y, q, axis=1), np.quantile(y, q, axis=1), rtol=1e-14)


# ----------------------------------------------------------------------------------------------------------- selection
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("place", [-(2**31), -1, 0, 1, LONG // 2, LONG - 2, LONG - 1, LONG, 2**31 - 1])
def test_selection_gives_what_sorting_puts_there(dtype, place):
    x, at = drawn(dtype, (3, LONG)), min(max(place, 0), LONG - 1)
    select = ft.jit(order_statistics)
    assert TARGET in select.lower(x, np.int32(0)).as_text()
    found = select(x, np.asarray(place, np.int32))
    same(
        found,
        in_order(x)[:, [at, min(at + 1, LONG - 1)]] if dtype[0] == "f" else np.sort(x)[:, [at, min(at + 1, LONG - 1)]],
    )


@pytest.mark.parametrize("size", [LONG, LONG + 1])
def test_medians_are_selected(size):
    x = np.random.default_rng(3).standard_normal((2, size))
    median = ft.jit(lambda v: fnp.median(v, axis=1))
    text = median.lower(x).as_text()
    assert TARGET in text and "stablehlo.sort" not in text
    for found in (median(x), fnp.median(x, axis=1), ft.vmap(fnp.median)(x), fnp.median(x.T, axis=0)):
        np.testing.assert_allclose(found, np.median(x, axis=1), rtol=1e-14)
    for found, q in ((fnp.quantile(x, 0.9, axis=1), 0.9), (fnp.percentile(x, 3.0, axis=1), 0.03)):
        np.testing.assert_allclose(found, np.quantile(x, q, axis=1), rtol=1e-14)
    x[1, 17] = np.nan
    np.testing.assert_array_equal(np.isnan(median(x)), [False, True])


def test_gradient_of_a_median_goes_to_the_middle():
    x = np.random.default_rng(4).permutation(N).astype(np.float64)
    slope = np.where((x == N // 2) | (x == N // 2 - 1), 0.5, 0.0)
    same(ft.grad(fnp.median)(x), slope)
    same(ft.jit(ft.grad(fnp.median))(x), slope)


def test_one_quantile_for_each_element_of_a_batch():
    x, q = np.random.default_rng(5).standard_normal((3, N)), np.array([0.1, 0.5, 0.9])
    by_both = ft.vmap(fnp.quantile)(x, q)
    np.testing.assert_allclose(by_both, [np.quantile(*pair) for pair in zip(x, q, strict=True)], rtol=1e-14)
    by_q = ft.vmap(fnp.quantile, in_axes=(None, 0))(x[0], q)
    np.testing.assert_allclose(by_q, np.quantile(x[0], q), rtol=1e-14)


# ------------------------------------------------------------------------------------------------- programs and threads
def test_programs_that_leave_the_process_do_without():
    x = drawn("float32")
    made = ft.export.export(ft.jit(fnp.sort))(x)
    assert TARGET not in made.mlir_module()
    same(ft.export.deserialize(made.serialize()).call(x), in_order(x))


def test_programs_for_gpus_do_without():
    made = ft.export.export(ft.jit(fnp.sort), platforms=["gpu"])(drawn("float32"))
    assert TARGET not in made.mlir_module()


def test_calls_do_not_compile_again():
    x = [fnp.asarray(drawn("float32", seed=k)) for k in range(3)]
    fnp.sort(x[0])
    with count_compiles() as compiles:
        for each in x:
            same(fnp.sort(each), in_order(np.asarray(each)))
    assert compiles.count == 0


def test_a_program_compiled_ahead_of_its_call():
    x = drawn("float32")
    made = ft.jit(fnp.sort).lower(x).compile()
    for _ in range(2):
        same(made(fnp.asarray(x)), in_order(x))


def test_both_tiers():
    x = drawn("float32")
    f = ft.jit(lambda v: fnp.cumsum(fnp.exp(-(fnp.sort(v)[: N // 2] ** 2))) * fnp.sin(v[0]))
    first = f(x)
    assert TARGET in f.lower(x).as_text()
    f.optimised()
    np.testing.assert_allclose(f(x), first, rtol=1e-5)


def test_threads_sort_at_once():
    xs = [drawn("float32", (1 << 16,), seed) for seed in range(4)]
    f = ft.jit(lambda v: (fnp.sort(v), fnp.argsort(v)))
    f(xs[0])
    wrong = []

    def work(x):
        for _ in range(10):
            ordered, places = f(x)
            if (bits(ordered) != bits(in_order(x))).any() or (np.asarray(places) != np.argsort(x, kind="stable")).any():
                wrong.append(x)

    threads = [threading.Thread(target=work, args=(x,)) for x in xs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_callback_may_sort_and_stand_beside_a_sort():
    x = drawn("int32")
    shape = ft.ShapeDtypeStruct(x.shape, x.dtype)
    host = lambda v: np.asarray(fnp.sort(np.array(v)))[::-1]
    f = ft.jit(lambda v: fnp.sort(ft.pure_callback(host, shape, fnp.sort(v) + 1)))
    for _ in range(2):
        same(f(x), np.sort(np.sort(x) + 1))


SECOND = """
import numpy as np, functorch_like as ft, functorch_like.numpy as fnp
from functorch_like.backends.xla import counters
x = (np.arange(20000) * 7919 % 10007).astype(np.float32)
out = ft.jit(lambda v: fnp.sort(v))(x), fnp.argsort(x)
assert (np.asarray(out[0]) == np.sort(x)).all() and (np.asarray(out[1]) == np.argsort(x, kind="stable")).all()
print(counters.compiles, counters.modules, counters.cache_hits)
"""


def run(source, **environment):
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return done.stdout.strip()


def test_a_second_process_takes_the_program_from_disk(tmp_path):
    assert [run(SECOND, FT_CACHE_DIR=str(tmp_path), FT_CACHE="1") for _ in range(2)] == ["2 2 0", "0 0 2"]


# ----------------------------------------------------------------------------------------------------------- exceptions
def test_an_error_of_the_kernel_is_raised(monkeypatch):
    x = drawn("float32")
    f = ft.jit(fnp.sort)
    f(x)

    class Failing:
        @staticmethod
        def asarray(_):
            raise MemoryError("no memory")

    with monkeypatch.context() as patched:
        patched.setattr(host_kernels, "np", Failing)
        with pytest.raises(MemoryError, match="no memory") as raised:
            f(x)
    frames = [entry.frame.code.raw for entry in raised.traceback]
    assert host_kernels.order_rows.__code__ not in frames  # its arrays refer to freed memory
    same(f(x), in_order(x))


def test_an_interrupt_before_the_first_line_of_the_kernel_is_raised():
    x = drawn("float32")
    f = ft.jit(fnp.sort)
    f(x)

    def trace(frame, event, arg):
        if frame.f_code is host_kernels.order_rows.__code__:
            raise KeyboardInterrupt

    threading.settrace(trace)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with pytest.raises(KeyboardInterrupt):
            f(x)
    finally:
        sys.settrace(before)
        threading.settrace(None)
    same(f(x), in_order(x))


def test_other_errors_are_not_taken_for_interrupts():
    assert callbacks.original(ValueError("no such thing")) is None
