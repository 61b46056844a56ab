"""ft.inspect: the stages of a function, and probes."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp


def loss(x):
    y = ft.inspect.probe(fnp.sin(x), "y")
    return fnp.sum(y * y)


X = fnp.ones(3)


def test_a_probe_changes_nothing():
    np.testing.assert_allclose(ft.grad(loss)(X), np.sin(2.0) * np.ones(3), rtol=1e-6)
    np.testing.assert_allclose(ft.vmap(ft.jit(ft.grad(loss)))(fnp.ones((2, 3))), np.sin(2.0) * np.ones((2, 3)), 1e-6)
    assert float(ft.hessian(loss)(X)[0, 0]) == pytest.approx(2 * np.cos(2.0), rel=1e-5)


def test_what_a_probe_reports():
    found = []

    def loss(x):
        y = ft.inspect.probe(fnp.sin(x), "y", found.append)
        return fnp.sum(y * y)

    def reports(f, *args):
        found.clear()
        f(*args)
        return [line.split(" [")[0] for line in found]

    assert reports(loss, X) == ["y: is"]
    assert reports(ft.grad(loss), X) == [
        "y: has a tangent f32[3]", "y: is", "y: gets a cotangent f32[3]", "cotangent of y: is"
    ]  # fmt: skip
    assert reports(ft.jit(loss), X) == ["y: is lowered for cpu as f32[3]"]
    assert reports(ft.vmap(loss, axis_name="rows"), fnp.ones((2, 3))) == [
        "y: is mapped over an axis 'rows' of 2 at 0 of f32[2,3]", "y: is"
    ]  # fmt: skip


def test_what_a_probe_takes():
    assert ft.inspect.probe(2.0, "x").dtype == np.float32
    with pytest.raises(ft.errors.DtypeError):
        ft.inspect.probe("text", "x")


def test_history_goes_from_the_jaxpr_to_machine_code():
    found = ft.inspect.history(ft.vmap(ft.grad(ft.jit(fnp.tanh))))(X)
    names = [stage.name for stage in found.stages]
    assert names[-4:] == ["jaxpr", "simplified jaxpr", "StableHLO", "optimized HLO"]
    assert {"jvp of tanh", "known half of tanh_jvp", "transpose of tanh_jvp_linear"} <= {s.how for s in found.stages}
    assert "stablehlo.tanh" in found.stages[-2].text and "HloModule" in found.stages[-1].text
    assert found.memory["argument"] == 12
    assert f"{len(names)}. optimized HLO (compiled by XLA for " in str(found)


def test_history_tells_the_sizes_after_each_pass():
    def f(x):
        fnp.exp(x)  # dead
        return fnp.sin(x) + fnp.sin(x) + (fnp.float32(2) * 3 if False else 0.0)

    stages = {stage.name: stage for stage in ft.inspect.history(f)(X).stages}
    sizes = [int(word.rstrip(",")) for word in stages["simplified jaxpr"].how.split() if word.rstrip(",").isdigit()]
    assert sizes[0] > sizes[1] >= sizes[2] > int(stages["simplified jaxpr"].size.split()[0])


def test_long_stages_are_cut_off():
    def f(x):
        for _ in range(100):
            x = fnp.sin(x)
        return x

    found = ft.inspect.history(f)(X)
    assert "more lines in stages[0].text" in str(found) and found.stages[0].size == "100 equations"
    assert found.stages[0].text.count("sin(") == 100


def test_it_takes_functions():
    with pytest.raises(ft.errors.ArgumentError, match=r"history\(f\)\(x\)"):
        ft.inspect.history(3.0)


def test_the_optimized_program_comes_without_lists_of_files():
    text = ft.inspect.history(lambda x: fnp.sin(x) * 2)(X).stages[-1].text
    assert text.startswith("HloModule") and "ENTRY" in text
    assert not [line for line in text.splitlines() if line in ("FileNames", "StackFrames") or line.startswith('1 "')]
