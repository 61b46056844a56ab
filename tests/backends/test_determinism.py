"""Bitwise equal results in each run: compile options, deterministic lowerings, and operations that are refused."""

import numpy as np
import pytest
from support.messages import read, refusal, says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends, lax
from functorch_like.avals import ShapedArray
from functorch_like.backends import determinism, xla
from functorch_like.compiler.lower import lower
from functorch_like.primitives.base.window_geometry import window_params, windowed_shape
from functorch_like.primitives.windows.select_and_scatter import select_and_scatter_add
from functorch_like.primitives.windows.select_and_scatter_cpu import undilated


def options(platform="gpu"):
    return dict(backends.settings.compile_options(platform))


def test_options_on_gpus():
    assert not {k: v for k, v in options().items() if "determin" in k or "autotune" in k}
    with backends.flags(deterministic_algorithms=True):
        assert options()["xla_gpu_deterministic_ops"] is True and not options("cpu")
    with backends.cudnn.flags(deterministic=True, benchmark=False):
        assert options()["xla_gpu_exclude_nondeterministic_ops"] is True and options()["xla_gpu_autotune_level"] == 0
        assert not options("cpu"), "programs for CPUs are deterministic"


@pytest.mark.parametrize(
    "flags", [{"deterministic_algorithms": "on"}, {"cudnn.deterministic": True, "cudnn.benchmark": 0}]
)
def test_this_jaxlib_knows_the_options(flags):
    f32 = ShapedArray((2,), np.float32)
    module = xla.build("f", [f32], lambda e, x: [e.op("stablehlo.add", [x, x], [f32])])
    with backends.flags(flags):
        xla.compile(module, out_avals=[f32], options=options("gpu"), name="f")


def test_functions():
    assert not backends.are_deterministic_algorithms_enabled() and not determinism.wanted()
    backends.use_deterministic_algorithms(True, warn_only=True)
    assert backends.is_deterministic_algorithms_warn_only_enabled() and backends.deterministic_algorithms == "warn"
    backends.use_deterministic_algorithms(True)
    assert backends.are_deterministic_algorithms_enabled() and determinism.wanted()
    assert not backends.is_deterministic_algorithms_warn_only_enabled()
    backends.use_deterministic_algorithms(False)
    assert backends.deterministic_algorithms == "off"
    says(refusal(lambda: setattr(backends, "deterministic_algorithms", "onn")).head, "did you mean 'on'?")


def lowered(fun, *args):
    """Lower a function for GPUs, under the settings in force, and return the module."""
    return lower(ft.make_jaxpr(fun)(*args), name="f", platform="gpu").module


def _kept(params, select):
    return {k: v for k, v in params.items() if "dilation" not in k} | {"select": select}


CASES = [
    ((9, 9), window_params((3, 3), (2, 2))),
    ((8, 7), window_params((2, 3), (1, 2), ((1, 0), (2, 1)))),
    ((7,), window_params((3,), (3,))),
    ((6,), window_params((2,), (3,))),
    ((2, 5), window_params((1, 4), (1, 1), ((0, 0), (3, 3)))),
]


@pytest.mark.parametrize("select", ["ge", "le"])
@pytest.mark.parametrize(("shape", "params"), CASES)
def test_max_pooling_backwards_in_a_fixed_order(shape, params, select):
    params = _kept(params, select)
    operand = (np.arange(np.prod(shape)) * 5 % 7).reshape(shape).astype(np.float32)  # with ties
    operand[operand == 3] = -np.inf if select == "ge" else np.inf
    operand[operand == 4] = np.nan
    counts = windowed_shape(ShapedArray(shape, np.float32), undilated(ShapedArray(shape, np.float32), params))
    source = np.random.default_rng(0).integers(-9, 9, counts).astype(np.float32)
    with backends.flags(deterministic_algorithms="on"):
        module = lowered(lambda *args: select_and_scatter_add(*args, **params), source, operand)
    assert "select_and_scatter" not in xla.module_text(module)
    program = xla.compile(module, out_avals=[ShapedArray(shape, np.float32)], name="f")
    np.testing.assert_array_equal(
        np.asarray(program.execute([source, operand])[0]), select_and_scatter_add.ref(source, operand, **params)
    )


def pooled(size):
    x = ft.ShapeDtypeStruct((1, 64, 64, 1), "float32")
    pool = lambda x: fnp.sum(lax.reduce_window(x, -np.inf, lax.max, (1, size, size, 1), (1, 1, 1, 1), "VALID"))
    return lowered(ft.grad(pool), x)


def test_operations_without_a_deterministic_form_are_refused_by_name():
    assert "stablehlo.select_and_scatter" in xla.module_text(pooled(7))
    with backends.flags(deterministic_algorithms=True):
        assert "stablehlo.select_and_scatter" not in xla.module_text(pooled(5))
        with pytest.raises(NotImplementedError) as caught:
            pooled(7)
        message = read(caught.value)
        says(
            message.head, "select_and_scatter_add, the gradient of max pooling", "(1, 7, 7, 1) of more than 32 elements"
        )
        says(message.remedy, "average pooling", "warn_only=True")
    with backends.cudnn.flags(deterministic=True), pytest.raises(NotImplementedError):
        pooled(7)


def test_or_warned_of():
    with backends.flags(deterministic_algorithms="warn"), pytest.warns(UserWarning, match="select_and_scatter_add"):
        assert "stablehlo.select_and_scatter" not in xla.module_text(pooled(7))


def test_nothing_is_refused_on_cpus():
    x = np.random.default_rng(0).standard_normal((1, 64, 64, 1)).astype(np.float32)
    pool = lambda x: fnp.sum(lax.reduce_window(x, -np.inf, lax.max, (1, 7, 7, 1), (1, 1, 1, 1), "VALID"))
    with backends.flags(deterministic_algorithms=True):
        assert float(fnp.sum(ft.jit(ft.grad(pool))(x))) == 58 * 58


def test_the_same_bits_in_fresh_processes():
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    index = np.random.default_rng(1).integers(0, 9, 500)

    def step(x):
        def loss(w):
            return {"sum": fnp.sum(fnp.tanh(x @ w)), "hits": fnp.zeros(9).at[index].add(w[0, 0] * fnp.ones(500))}

        return ft.jvp(loss, (x,), (x,))

    ft.testing.assert_deterministic(step, x, runs=2)


def test_differing_bits_are_reported(monkeypatch):
    from functorch_like.testing import determinism as module

    answers = iter([[np.float32([1.0, 2.0])], [np.float32([1.0, 2.5])]])
    monkeypatch.setattr(module, "_elsewhere", lambda *_: next(answers))
    with pytest.raises(AssertionError, match=r"in run 1 than in run 0: 1 of 2 elements differ, by 0\.5 at most"):
        ft.testing.assert_deterministic(lambda x: x, np.float32([1.0, 2.0]), runs=2)


def test_a_function_that_is_traced_to_other_programs_is_reported():
    with pytest.raises(AssertionError, match="something in it is random"):
        ft.testing.assert_deterministic(lambda x: x + np.random.default_rng().random(), np.float32(1))


def test_callbacks_are_refused():
    call = lambda x: ft.pure_callback(np.sin, ft.ShapeDtypeStruct((), np.float32), x)
    says(refusal(lambda: ft.testing.assert_deterministic(call, np.float32(1))).head, "calls back into Python")


def test_a_change_traces_anew_once():
    f = ft.jit(lambda x: x * 7)
    x = np.ones(3, np.float32)
    f(x)
    with ft.testing.count_traces() as traces:
        for _ in range(2):
            with backends.flags(deterministic_algorithms=True):
                f(x)
            f(x)
    assert traces.count == 1


@pytest.mark.gpu
def test_scatter_gives_the_same_bits_on_a_gpu():
    values = fnp.asarray(np.random.default_rng(0).standard_normal(100_000).astype(np.float32))
    index = np.random.default_rng(1).integers(0, 17, 100_000)
    with backends.flags(deterministic_algorithms=True):
        add = ft.jit(lambda v: fnp.zeros(17).at[index].add(v))
        first = np.asarray(add(values)).tobytes()
        assert all(np.asarray(add(values)).tobytes() == first for _ in range(20))
