"""backends.xla.options: compile options of XLA for all programs."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends
from functorch_like.backends.xla import compile_options

WIDTH = "xla_cpu_prefer_vector_width"


def test_options_reach_every_compilation_and_change_the_key():
    f = ft.jit(lambda x: fnp.sin(x) + 5)
    x = np.ones(3, np.float32)
    f(x)
    with backends.xla.options({WIDTH: 256}):
        assert compile_options.chosen("cpu")[WIDTH] == 256
        assert ft.explain(f)(x).count("trace") == 1
    assert WIDTH not in compile_options.chosen("cpu")
    assert {event.kind for event in ft.explain(f)(x).events} <= {"tier"}  # the old program is found again


def test_blocks_add_up_and_calls_go_before_them():
    with backends.xla.options({WIDTH: 256}), backends.xla.options(xla_backend_optimization_level=1):
        found = compile_options.chosen("cpu", {WIDTH: 128})
    assert found["xla_backend_optimization_level"] == 1 and found[WIDTH] == 128


def test_from_text_as_an_environment_variable_has_it():
    with backends.flags({"xla.compiler_options": f"{WIDTH}=128, xla_cpu_enable_fast_math=true"}):
        assert dict(backends.xla.compiler_options) == {WIDTH: 128, "xla_cpu_enable_fast_math": True}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"xla_cpu_enable_fast_mth": True}, r"'xla_cpu_enable_fast_mth'; did you mean 'xla_cpu_enable_fast_math'\?"),
        ({WIDTH: "wide"}, f"{WIDTH} is given 'wide', which is not of type int32"),
        ({WIDTH: [1]}, f"{WIDTH} is given \\[1\\] of type list"),
        ({"cpu_fast_math": True}, r"'cpu_fast_math' is not an option of XLA; did you mean"),
    ],
)  # fmt: skip
def test_wrong_options_are_reported_by_name(options, message):
    with pytest.raises(ft.errors.ArgumentError, match=message):
        ft.jit(lambda x: fnp.sin(x) + 6, compiler_options=options)(1.0)
