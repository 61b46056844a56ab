"""Fast-math options of the compiler: off by default, with a visible effect when they are on."""

import numpy as np
import pytest
from support.messages import refusal, says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends
from functorch_like.backends.xla import compile_options


def test_off_by_default():
    assert backends.xla.fast_math == ()
    assert compile_options.chosen("cpu")["xla_cpu_enable_fast_math"] is False
    assert not [name for name in compile_options.chosen("gpu") if "min_max" in name]


@pytest.mark.parametrize("part", ["nans", "infs", "division", "functions"])
def test_each_part_is_an_option(part):
    with backends.xla.flags(fast_math=part):
        chosen = compile_options.chosen("cpu")
        honoured = {
            name: chosen[f"xla_cpu_fast_math_honor_{name}"] for name in ("nans", "infs", "division", "functions")
        }
        assert chosen["xla_cpu_enable_fast_math"] and honoured == {name: name != part for name in honoured}
        assert float(ft.jit(lambda x: x / 3)(3.0)) == 1


def test_reassociation_and_min_max():
    with backends.xla.flags(fast_math="reassociation"):
        chosen = compile_options.chosen("cpu")
        assert chosen["xla_cpu_enable_fast_math"] and all(v for k, v in chosen.items() if "honor" in k)
    with backends.xla.flags(fast_math="min_max"):
        assert compile_options.chosen("cpu")["xla_cpu_enable_fast_min_max"] is True
        assert compile_options.chosen("cpu")["xla_cpu_enable_fast_math"] is False
        assert compile_options.chosen("gpu")["xla_gpu_enable_fast_min_max"] is True


def test_results_change():
    x = np.float32([1.0, np.nan])
    is_nan = ft.jit(lambda x: fnp.where(x + 1 != x + 1, 1.0, 0.0))
    assert is_nan(x).tolist() == [0.0, 1.0]
    # Other compile options: the quick tier takes no liberties.
    optimised = backends.compilation.flags(tiers="off")
    with optimised, backends.xla.flags(fast_math=True), ft.testing.count_compiles() as anew:
        assert is_nan(x).tolist() == [0.0, 0.0], "it may take it that there are no NaNs"
    with ft.testing.count_compiles() as back:
        assert is_nan(x).tolist() == [0.0, 1.0]
    assert (anew.count, back.count) == (1, 0)


def test_wrong_parts():
    message = refusal(lambda: setattr(backends.xla, "fast_math", "nan"))
    says(message.head, "xla.fast_math = 'nan'", "did you mean 'nans'?")
    says(message.remedy, "'division'")
    says(refusal(lambda: setattr(backends.xla, "fast_mat", True)).head, "did you mean 'fast_math'?")
