"""Tiers of programs for GPUs: which programs have them, and how their run times are measured. Run on a CPU."""

# Other compile options: those of the quick tier.

import gc
import time

import numpy as np
import pytest
from support.background import finish

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends, lax
from functorch_like.backends.xla import compile_options, option_sets
from functorch_like.compiler import gpu_costs, run_times, tiers
from functorch_like.compiler.lower import Lowered
from functorch_like.compiler.program import Program

X = np.linspace(-0.5, 0.5, 64 * 64, dtype=np.float32).reshape(64, 64)


class Gpu:
    """A GPU, as far as tiers read it."""

    platform = "gpu"


pytestmark = pytest.mark.usefixtures("users_tiers")


@pytest.fixture
def as_on_gpu(monkeypatch):
    """Let the CPU count as a GPU where tiers are chosen."""
    monkeypatch.setattr(tiers, "_on_gpu", lambda device: True)


def layer(x, w):
    return fnp.tanh(x @ w) @ w


def expected(x, w=X):
    x, w = x.astype(np.float64), w.astype(np.float64)
    return np.tanh(x @ w) @ w


def seconds(f, *args):
    return gpu_costs.seconds_of_timing(ft.make_jaxpr(f)(*args))


def test_products_of_equal_operands_are_timed_once():
    one = seconds(lambda x, w: x @ w, X, X)
    assert one > 0
    assert seconds(layer, X, X) == one
    assert seconds(lambda x, w: lax.scan(lambda h, _: (layer(h, w), None), x, None, length=5)[0], X, X) == one
    assert seconds(lambda x, w: fnp.concatenate([x, x @ w]) @ w, X, X) == 2 * one
    assert seconds(lambda x: x @ x, fnp.asarray(X, "bfloat16")) < one


def test_what_xla_has_no_kernels_of_its_own_for_is_not_timed():
    assert seconds(fnp.sin, X) == seconds(lambda x: x @ x, X.astype(np.float64)) == seconds(lambda x: x @ x[0], X) == 0
    image, kernel = np.ones((1, 3, 8, 8), np.float32), np.ones((2, 3, 3, 3), np.float32)
    assert seconds(lambda x, k: lax.conv(x, k, (1, 1), "SAME"), image, kernel) == 0


class Compiled:
    """A lowered program that notes the options it is compiled with."""

    name, partitioning, calls_python = "program", None, False

    def __init__(self, f, *args, disk=()):
        self.jaxpr, self.disk, self.compiled = ft.make_jaxpr(f)(*args), list(disk), []

    fitting, quick_fitting = Lowered.fitting, Lowered.quick_fitting

    def identify(self):
        return b"fingerprint"

    def load(self, device, options, fitting, fingerprint, *, lowering):
        return f"loaded {fitting}" if fitting in self.disk else None

    def compile(self, device, options, *, fitting=None, mode="default", fingerprint=None):
        self.compiled.append(self.fitting(device, mode) if fitting is None else fitting)
        return f"compiled {self.compiled[-1]}"


@pytest.mark.parametrize("begin", [tiers.begin, tiers.begin_eager])
def test_programs_with_products_start_with_those_of_cublas(begin):
    lowered = Compiled(layer, X, X)
    executable, improvement = begin(lowered, Gpu(), None, "default")
    assert executable == f"compiled {option_sets.CUBLAS}" and improvement.on_gpu
    assert improvement.worth == seconds(layer, X, X)
    improvement.start()
    finish()
    assert improvement.compiled.result() == "compiled {}" and improvement.then(None) is None


@pytest.mark.parametrize("begin", [tiers.begin, tiers.begin_eager])
def test_other_programs_have_one_tier(begin):
    for f, options, mode in [
        (fnp.sin, None, "default"),
        (lambda x: x @ x, {"xla_gpu_autotune_level": 2}, "default"),
        (lambda x: x @ x, {"xla_gpu_enable_triton_gemm": True}, "default"),
    ]:
        lowered = Compiled(f, X)
        assert begin(lowered, Gpu(), options, mode) == ("compiled {}", None)
    with backends.cudnn.flags(benchmark=False):
        assert begin(Compiled(lambda x: x @ x, X), Gpu(), None, "default")[1] is None
    with backends.compilation.flags(tiers="off"):
        assert begin(Compiled(lambda x: x @ x, X), Gpu(), None, "default")[1] is None


def test_a_second_process_starts_with_the_best_form_on_disk():
    ended = Compiled(layer, X, X, disk=[{}, option_sets.CUBLAS])
    assert tiers.begin(ended, Gpu(), None, "default") == ("loaded {}", None)
    begun = Compiled(layer, X, X, disk=[option_sets.CUBLAS])
    executable, improvement = tiers.begin(begun, Gpu(), None, "default")
    assert executable == f"loaded {option_sets.CUBLAS}" and not begun.compiled
    assert improvement.worth < seconds(layer, X, X)


@pytest.mark.parametrize("donate", [(), (0,)])
def test_few_calls_are_waited_for_and_count_for_the_others(as_on_gpu, monkeypatch, donate):
    waits = []
    measure = run_times.seconds_of

    def slow(run, operands):
        out, _ = measure(run, operands)
        waits.append(len(waits))
        return out, 0.1

    monkeypatch.setattr(run_times, "seconds_of", slow)
    monkeypatch.setattr("functorch_like.transforms.tier_watch.seconds_of", slow)
    f = ft.jit(layer, donate_argnums=donate)
    call = lambda: np.testing.assert_allclose(f(fnp.asarray(X), X), expected(X), rtol=1e-4, atol=1e-4)
    call()
    (program,) = programs(f)
    calls = 1
    while program.improvement.compiled is None:
        call()
        calls += 1
    assert 15 < calls < 30, "estimated 2 s, in calls of 0.1 s; the first one is not counted"
    assert len(waits) < calls - 5
    finish()
    call()
    assert program.improvement is None


def programs(f):
    """Return the programs of a jitted function."""
    gc.collect()
    return [each for each in gc.get_objects() if type(each) is Program and each.lowered.name == f.__name__]


def test_the_time_of_a_call_is_that_of_its_results(monkeypatch):
    waited = []
    monkeypatch.setattr(run_times.xla, "block_until_ready", lambda x: waited.append(x.shape) or time.sleep(0.01))
    x = fnp.ones(3)
    out, took = run_times.seconds_of(lambda: {"a": fnp.zeros(5)}, ((x,), {"k": 2}))
    assert waited == [(3,), (5,)] and took >= 0.01 and list(out) == ["a"]


def test_xla_keeps_the_fastest_kernels_of_programs_that_are_timed(tmp_path):
    def kept(**options):
        made = compile_options.options(ft.devices("cpu")[0], options)
        compile_options.keep_kernels(made, tmp_path)
        return str(tmp_path).encode() in made.SerializeAsString()

    assert kept() and not kept(**option_sets.CUBLAS) and not kept(xla_gpu_autotune_level=0)
