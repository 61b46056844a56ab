"""Trials of convolutions: the choice of the faster kernels, its record, and results under both choices."""

# Other compile options: those of both kinds of kernels, and options that choose one.

import functools
import itertools
import math

import numpy as np
import pytest
from scipy import signal
from support.background import finish

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends, lax, nn
from functorch_like.backends.xla import counters, option_sets
from functorch_like.compiler import convolution_trial
from functorch_like.compiler.convolution_trial import Trial
from functorch_like.compiler.lower import Lowered, lower
from functorch_like.transforms import tier_watch

LAYOUT = ("NHWC", "HWIO", "NHWC")
DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(2, 16, 16, 8)).astype(np.float32)
W = DRAW.normal(size=(3, 3, 8, 24)).astype(np.float32)


pytestmark = pytest.mark.usefixtures("users_tiers")


@pytest.fixture
def faster(monkeypatch):
    """A function that sets which way is measured to be faster; it returns the list of the convolutions measured."""

    def choose(way):
        measured = []

        def seconds(convolution, device, ways):
            measured.append(convolution)
            return {each: 1.0 if each == way else 2.0 for each in ways}

        monkeypatch.setattr(convolution_trial, "_seconds", seconds)
        return measured

    return choose


def net(x, w):
    return nn.relu(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=LAYOUT)) + 1


def expected(x, w):
    x, w = np.asarray(x, np.float64), np.asarray(w, np.float64)
    both = [(i, o) for i in range(w.shape[2]) for o in range(w.shape[3])]
    y = np.zeros((*x.shape[:3], w.shape[3]))
    for n, (i, o) in itertools.product(range(len(x)), both):
        y[n, ..., o] += signal.correlate2d(x[n, ..., i], w[..., i, o], "same")
    return np.maximum(y, 0) + 1


def check(out):
    np.testing.assert_allclose(np.asarray(out), expected(X, W), rtol=1e-5, atol=1e-4)


def trial_of(fun, *args, options=None):
    """The trial of a function as it would be made by its first call."""
    lowered = lower(ft.make_jaxpr(fun)(*args), name="f")
    return Trial(lowered, ft.devices()[0], options, lowered.identify())


@pytest.fixture
def compiled(monkeypatch):
    """List of the forms of `net` compiled so far: "quick", "XLA" or "YNNPACK"."""
    made, compile_ = [], Lowered.compile

    def noted(self, device, options=None, *, fitting=None, **more):
        if self.name == "net":
            quick = option_sets.QUICK.items() <= (fitting or {}).items()
            made.append("quick" if quick else "YNNPACK" if "INDIVIDUAL_CONVOLUTION" in str(fitting) else "XLA")
        return compile_(self, device, options, fitting=fitting, **more)

    monkeypatch.setattr(Lowered, "compile", noted)
    return made


def exchanges(why):
    return [event.about["how"] for event in why.events if event.kind == "exchange"]


# ---------------------------------------------------------------------------------------------------------- the choice
def test_the_faster_kernels_are_chosen_and_recorded(faster, compiled):
    measured = faster("YNNPACK")
    f = ft.jit(net)
    check(f(X, W))
    f.optimised()
    assert compiled == ["quick", "XLA", "YNNPACK"] and len(measured) == 1
    check(f(X, W))
    before = counters.misses
    check(f(X, W))
    assert counters.misses == before  # the calls stay in C++
    f.optimised()
    ft.clear_caches()
    again = ft.jit(net)
    why = ft.explain(again)(X, W)
    check(why.result)
    again.optimised()
    assert {"load"} == {event.kind for event in why.events} & {"load", "compile", "tier", "exchange"}
    assert compiled == ["quick", "XLA", "YNNPACK"] and len(measured) == 1


def test_where_xla_is_faster_nothing_is_compiled_again(faster, compiled):
    measured = faster("XLA")
    f = ft.jit(net)
    check(f(X, W))
    f.optimised()
    check(f(X, W))
    assert compiled == ["quick", "XLA"] and len(measured) == 1
    ft.clear_caches()
    again = ft.jit(net)
    check(again(X, W))
    again.optimised()
    assert len(measured) == 1


def test_the_trial_comes_after_a_long_time_of_running(faster, compiled, monkeypatch):
    faster("YNNPACK")
    now, step = [0.0], [0.0]
    monkeypatch.setattr(tier_watch.time, "perf_counter", lambda: now.append(now.pop() + step[0]) or now[0])
    f = ft.jit(net)
    f(X, W), f(X, W)
    step[0] = 0.1  # more than the cost of the optimised form, less than that of the trial
    f(X, W)
    step[0] = 0.0
    finish()
    why = ft.explain(f)(X, W)
    assert ["quick tier" in how for how in exchanges(why)] == [True] and compiled == ["quick", "XLA"]
    step[0] = 1.0
    f(X, W), f(X, W)
    step[0] = 0.0
    finish()
    why = ft.explain(f)(X, W)
    assert exchanges(why) == ["convolutions by XLA 2e+03 ms, YNNPACK 1e+03 ms"]
    assert compiled == ["quick", "XLA", "YNNPACK"]
    check(why.result)


def test_functions_that_share_a_program_all_get_the_faster_form(faster, compiled):
    faster("YNNPACK")
    f, g = ft.jit(net), ft.jit(net)
    check(f(X, W)), check(g(X, W))
    f.optimised()
    g.optimised()
    assert compiled == ["quick", "XLA", "YNNPACK"]
    for h in (f, g):
        why = ft.explain(h)(X, W)
        assert not why.count("tier")  # no longer measured
        check(why.result)


def test_large_programs_start_optimised_and_are_tried_too(faster, compiled):
    faster("YNNPACK")
    x = np.ones((2, 400, 400, 8), np.float32)
    f = ft.jit(net)
    f(x, W)
    f.optimised()
    assert compiled == ["XLA", "YNNPACK"]
    out = np.asarray(f(x, W))
    np.testing.assert_allclose(
        out[0, 5, 5], np.maximum(W.sum((0, 1, 2), dtype=np.float64), 0) + 1, rtol=1e-4, atol=1e-4
    )


def test_a_trial_that_fails_changes_nothing_and_says_so_once(monkeypatch, compiled):
    def failing(*args):
        raise ft.errors.CompileError("no memory")

    monkeypatch.setattr(convolution_trial, "_seconds", failing)
    f = ft.jit(net)
    f(X, W)
    with pytest.warns(UserWarning, match="net stays as it is.*no memory"):
        f.optimised()
    check(f(X, W))
    f.optimised()
    assert compiled == ["quick", "XLA"]


# --------------------------------------------------------------------------------------------------------- measurement
def test_both_ways_are_timed():
    trial = trial_of(net, X, W)
    assert not trial.is_over and trial.worth > 0
    trial.run()
    assert trial.is_over and "by XLA" in trial.report and "YNNPACK" in trial.report
    known = trial_of(net, X, W)
    assert known.is_over and known.fitting == trial.fitting


def test_the_time_of_each_convolution_counts_as_often_as_it_runs(monkeypatch):
    """YNNPACK is faster for the convolution in the loop, and much slower for the one outside of it."""
    loop_kernel = np.ones((3, 3, 8, 8), np.float32)

    def seconds(convolution, device, ways):
        looped = convolution.inputs[1].aval.shape == loop_kernel.shape
        return {"XLA": 2.0, "YNNPACK": 1.0} if looped else {"XLA": 1.0, "YNNPACK": 9.0}

    def chain(x, w, count):
        step = lambda y, _: (lax.conv_general_dilated(y, loop_kernel, (1, 1), "SAME", dimension_numbers=LAYOUT), None)
        return net(lax.scan(step, x, length=count)[0], w)

    monkeypatch.setattr(convolution_trial, "_seconds", seconds)
    for count, better in ((7, False), (9, True)):
        trial = trial_of(lambda x, w: chain(x, w, count), X, W)  # noqa: B023
        trial.run()
        assert ("INDIVIDUAL_CONVOLUTION" in str(trial.fitting)) == better


# --------------------------------------------------------------------------------------------------- without a trial
LINES = ("NWC", "WIO", "NWC")
LINE, LINE_KERNEL = np.ones((4, 999, 64), np.float32), np.ones((3, 64, 64), np.float32)
BIG = np.ones((4, 32, 32, 64), np.float32), np.ones((3, 3, 64, 64), np.float32)


def conv(x, w, *args, **options):
    return lax.conv_general_dilated(x, w, *args, dimension_numbers=LAYOUT, **options)


@pytest.mark.parametrize(
    ("fun", "args"),
    [
        (lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=LINES), (LINE, LINE_KERNEL)),
        (lambda x, w: conv(x, w, (1, 1), "SAME"), (BIG[0][:1, :2, :2], BIG[1])),
        (lambda x, w: conv(x, w, (1, 1), ((1, 1), (1, 1)), lhs_dilation=(2, 2)), BIG),
        (lambda x, w: conv(x, w, (1, 1), "SAME", feature_group_count=2), (BIG[0], BIG[1][:, :, :32])),
        (lambda x, w: conv(x, w, (1, 1), "SAME"), [a.astype(np.float64) for a in BIG]),
        (lambda x, w: x[0, 0] @ w[0, 0], BIG),
    ],
    ids=["in one dimension", "small", "holes", "groups", "float64", "none"],
)
def test_convolutions_that_only_xla_computes_or_that_do_not_matter(fun, args):
    assert trial_of(fun, *args).is_over


def test_convolutions_that_need_much_memory(monkeypatch):
    assert not trial_of(net, X, W).is_over
    monkeypatch.setattr(convolution_trial, "_MOST", X.size + W.size)
    assert trial_of(net, X, W).is_over


def test_settings_by_which_the_user_has_chosen(faster, compiled):
    measured = faster("YNNPACK")
    assert trial_of(net, X, W, options=option_sets.NONE).is_over
    with backends.ynn.flags(fusions="reduce"):
        assert trial_of(net, X, W).is_over
    for block in (backends.compilation.flags(tiers="off"), backends.compilation.flags(tiers="quick")):
        with block:
            f = ft.jit(net)
            check(f(X, W))
            f.optimised()
            ft.clear_caches()
    backends.use_deterministic_algorithms(True)
    f = ft.jit(net)
    check(f(X, W))
    f.optimised()
    assert not measured and "YNNPACK" not in compiled


# ------------------------------------------------------------------------------------------------------- right answers
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("strides", "holes"), [((1, 1), (1, 1)), ((2, 3), (1, 1)), ((1, 1), (2, 3))])
@pytest.mark.parametrize("features", [(1, 1), (3, 5), (8, 16), (17, 33)])
def test_kernels_of_ynnpack_are_right(features, strides, holes, padding):
    """Values and both gradients, against NumPy in float64: a sum over the elements of the kernel."""
    x = DRAW.normal(size=(2, 11, 9, features[0])).astype(np.float32)
    w = DRAW.normal(size=(3, 2, *features)).astype(np.float32)
    at = functools.partial(conv, window_strides=strides, padding=padding, rhs_dilation=holes)
    y, back = ft.vjp(ft.jit(at, compiler_options=option_sets.CONVOLUTIONS), x, w)
    slope = DRAW.normal(size=y.shape).astype(np.float32)
    want, dx, dw = in_float64(x, w, slope, strides, holes, padding)
    scale = math.prod(w.shape[:3]) ** 0.5
    np.testing.assert_allclose(y, want, atol=1e-5 * scale)
    for got, right in zip(back(fnp.asarray(slope)), (dx, dw), strict=True):
        np.testing.assert_allclose(got, right, atol=1e-6 * np.abs(right).max() + 1e-5 * scale * features[1] ** 0.5)


def in_float64(x, w, slope, strides, holes, padding):
    """The convolution and its gradients by the definition."""
    x, w, slope = (np.asarray(a, np.float64) for a in (x, w, slope))
    low, high = [], []
    for n, k, s, r, m in zip(x.shape[1:3], w.shape[:2], strides, holes, slope.shape[1:3], strict=True):
        missing = max((m - 1) * s + (k - 1) * r + 1 - n, 0) if padding == "SAME" else 0
        low.append(missing // 2)
        high.append(missing - missing // 2)
    around = ((0, 0), *zip(low, high, strict=True), (0, 0))
    padded = np.pad(x, around)
    y, dpadded, dw = np.zeros(slope.shape), np.zeros(padded.shape), np.zeros(w.shape)
    for i, j in np.ndindex(w.shape[:2]):
        window = (
            slice(None),
            slice(i * holes[0], i * holes[0] + (slope.shape[1] - 1) * strides[0] + 1, strides[0]),
            slice(j * holes[1], j * holes[1] + (slope.shape[2] - 1) * strides[1] + 1, strides[1]),
        )
        y += padded[window] @ w[i, j]
        dpadded[window] += slope @ w[i, j].T
        dw[i, j] = np.einsum("bhwi,bhwo->io", padded[window], slope)
    inner = [slice(lo, n - hi) for n, (lo, hi) in zip(padded.shape, around, strict=True)]
    return y, dpadded[tuple(inner)], dw
