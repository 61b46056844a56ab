"""Options of XLA's backends: they reach XLA beside those by name, and a user's own come first."""

import os
import subprocess
import sys

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends, lax
from functorch_like.backends.xla import compile_options, option_sets
from functorch_like.backends.xla.backend_options import with_backend_options
from functorch_like.backends.xla.jaxlib_api import xc

NAME = next(iter(option_sets.SMALL_LOOPS)).encode()


def loop(x):
    return lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, fnp.sin(c[1]) + c[1]), (0, x))[1]


def is_one_kernel(size):
    x = np.linspace(-1, 1, size, dtype=np.float32)
    with backends.flags({"cpu.fast_lowerings": "-small_loops", "compilation.tiers": "off"}):  # XLA decides
        f = ft.jit(lambda x: loop(x))
        wide = x.astype(np.float64)
        for _ in range(5):
            wide = np.sin(wide) + wide
        np.testing.assert_allclose(f(x), wide, rtol=1e-5, atol=1e-6)
        return "xla_cpu_small_call" in f.lower(x).compile().as_text()


def test_loops_up_to_two_kilobytes_are_one_kernel():
    assert is_one_kernel(8) and is_one_kernel(200)
    assert not is_one_kernel(4000)


def test_other_options_are_as_before():
    made = xc.CompileOptions()
    made.num_partitions, made.env_option_overrides = 2, [("xla_cpu_enable_fast_math", False)]
    more = with_backend_options(made, {"a_name": "", "b" * 200: "1" * 200})
    assert (more.num_partitions, more.env_option_overrides) == (2, [("xla_cpu_enable_fast_math", False)])
    assert b"a_name" in more.SerializeAsString() and b"b" * 200 in more.SerializeAsString()
    assert with_backend_options(more, {"a_name": "2"}) is more
    assert with_backend_options(made, {}) is made


def test_programs_for_cpus_have_them():
    assert compile_options.options(ft.devices()[0]).SerializeAsString().count(NAME) == 1


@pytest.mark.parametrize("given", ["1", "512"])
def test_the_user_s_own_come_first(given):
    text = (
        "import functorch_like as ft; from functorch_like.backends.xla import compile_options as c; "
        "print(c.options(ft.devices()[0]).SerializeAsString().split(b'byte_threshold')[1:])"
    )
    flags = f"--xla_backend_extra_options={NAME.decode()}={given}"
    done = subprocess.run(
        [sys.executable, "-c", text], env=os.environ | {"XLA_FLAGS": flags}, capture_output=True, text=True, check=True
    )
    (rest,) = eval(done.stdout)
    assert rest[2 : 2 + len(given)] == given.encode()
