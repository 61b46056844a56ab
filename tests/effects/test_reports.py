"""Reports of the package about itself: names of calls, types, leaks, the log of compilations."""

import logging

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.backends import external_settings
from functorch_like.errors import ArgumentError, DtypeError, LeakError


def test_named_call_is_a_scope_around_a_function():
    def attention(x):
        return fnp.exp(x)

    text = str(ft.make_jaxpr(ft.grad(ft.named_call(attention)))(1.0))
    assert "in attention" in text
    named = ft.named_call(attention, name="heads")
    assert "in heads" in str(ft.make_jaxpr(named)(1.0))
    assert float(named(0.0)) == float(named(0.0)) == 1.0  # more than once
    with pytest.raises(ArgumentError, match="takes a function"):
        ft.named_call(1.0)


def test_typeof():
    assert repr(ft.typeof(np.ones((2, 3)))) == "f64[2,3]"
    assert ft.typeof(2.0).weak_type and not ft.typeof(True).weak_type
    assert ft.typeof(ft.ShapeDtypeStruct((3,), "int8")).shape == (3,)
    seen = []
    ft.jit(ft.vmap(lambda x: seen.append(ft.typeof(x)) or x))(fnp.ones((4, 2)))
    assert repr(seen) == "[f32[2]]"
    with pytest.raises(DtypeError, match="not an array"):
        ft.typeof("text")


def test_checking_leaks():
    kept = []
    with pytest.raises(LeakError, match="held by list"), ft.checking_leaks():
        ft.jit(lambda x: kept.append(x) or 2 * x)(1.0)
    kept.clear()
    with ft.checking_leaks(), ft.check_tracer_leaks():
        ft.jit(lambda x: 2 * x)(1.0)
    with ft.check_tracer_leaks(False):
        ft.jit(lambda x: kept.append(x) or 2 * x)(1.0)
    assert len(kept) == 1


def test_log_compiles(caplog):
    f = ft.jit(lambda x: fnp.sin(x) * 2)
    with caplog.at_level(logging.WARNING, "functorch_like"):
        f(1.0)
        assert not caplog.records
        with ft.log_compiles():
            f(fnp.ones(3))
            with ft.log_compiles(False):
                f(fnp.ones(4))
        f(fnp.ones(5))
    # Delayed by another process, the first call may seem long enough for the optimised form to be compiled.
    told = [text for r in caplog.records if not (text := r.getMessage()).endswith(", in the background")]
    assert told[0].startswith("traced <lambda> in ") and "shape () before, (3,) now" in told[0]
    assert told[-1].split()[0] in ("compiled", "loaded") and len(told) in (2, 3)
    assert not external_settings.SETTINGS["log_compiles"].value


def test_the_log_says_what_is_compiled_in_the_background(caplog):
    f = ft.jit(lambda x: sum(fnp.sin(k * x) for k in range(30)))
    with (
        ft.backends.flags({"compilation.tiers": "auto", "cache.enabled": False}),
        caplog.at_level(logging.WARNING, "functorch_like"),
    ):
        with ft.log_compiles():
            f(fnp.ones(3))
        f.optimised()
    told = [r.getMessage() for r in caplog.records]
    verbs = [text.split()[0] for text in told if text.endswith(", in the background")]
    assert verbs and set(verbs) <= {"lowered", "compiled", "loaded"} and len(verbs) < len(told)


def test_environment_info(capsys):
    assert ft.print_environment_info() is None
    for text in (capsys.readouterr().out, ft.print_environment_info(return_string=True)):
        assert "jaxlib" in text and "cpu.fast_lowerings" in text
