"""Arrays too large for any memory: the error names the array and its size, and nothing is allocated."""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.errors import CompileError, OutOfMemoryError, bytes_text

# HUGE takes 364 TiB in float32; the address space of a process has 128 TiB.
N = 10**7
HUGE = (N, N)


@pytest.mark.parametrize(
    "make",
    [
        lambda: fnp.zeros(HUGE),
        lambda: fnp.ones(HUGE),
        lambda: fnp.full(HUGE, 2.0),
        lambda: fnp.empty(HUGE),
        lambda: fnp.zeros_like(fnp.ones(3), shape=HUGE),
        lambda: fnp.arange(10**14),
        lambda: fnp.arange(0.0, 1e14, 1.0),
        lambda: fnp.linspace(0.0, 1.0, 10**14),
        lambda: fnp.eye(N),
        lambda: fnp.identity(N),
        lambda: fnp.tri(N),
        lambda: fnp.broadcast_to(fnp.ones(3), (N, N, 3)),
        lambda: fnp.tile(fnp.ones(3), N * N),
        lambda: lax.broadcasted_iota("int32", HUGE, 0),
        lambda: ft.jit(lambda x: fnp.broadcast_to(x, HUGE))(1.0),
        lambda: ft.jit(lambda x: fnp.zeros(HUGE) + x)(1.0),
        lambda: ft.vmap(lambda x: fnp.broadcast_to(x, (N, N)))(fnp.ones(3)),
    ],
)
def test_no_memory_for_an_array(make: Any) -> None:
    with pytest.raises(OutOfMemoryError, match=r"[TP]iB(.|\n)*test_sizes.py(.|\n)*what to do: ") as caught:
        make()
    assert isinstance(caught.value, MemoryError)
    assert isinstance(caught.value, CompileError)  # the class behind JAX's name for XLA's errors
    assert "cannot compile" not in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_the_array_is_named() -> None:
    with pytest.raises(OutOfMemoryError) as caught:
        fnp.zeros(HUGE)
    assert f"f32[{N},{N}] takes {bytes_text(4 * N * N)}" in str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: fnp.zeros((2**40, 2**40)),
        lambda: fnp.ones(2**63),
        lambda: fnp.full(2**70, 1.0),
        lambda: fnp.zeros((2**40, 2**40, 0)),
        lambda: fnp.eye(2**33),
        lambda: fnp.arange(2**62),
        lambda: fnp.broadcast_to(fnp.ones(3), (2**40, 2**40, 3)),
        lambda: fnp.tile(fnp.ones(3), (2**40, 2**40)),
        lambda: lax.iota("int32", 2**62),
        lambda: ft.jit(lambda x: fnp.broadcast_to(x, (2**40, 2**40)).sum())(1.0),
        lambda: ft.jit(lambda x: fnp.broadcast_to(x, (2**31, 2**31)))(1.0),
        lambda: ft.eval_shape(lambda x: fnp.broadcast_to(x, (2**31, 2**31)), 1.0),
        lambda: ft.ShapeDtypeStruct((2**40, 2**40), "float32"),
    ],
)
def test_bytes_beyond_64_bits_do_not_end_the_process(make: Any) -> None:
    with pytest.raises(ft.errors.ShapeError, match="no array is that large"):
        make()


def test_large_intermediates_that_fuse_are_computed() -> None:
    assert float(ft.jit(lambda x: fnp.broadcast_to(x, (2**10, 2**10)).max())(3.0)) == 3
    assert fnp.zeros((10**14, 0)).shape == (10**14, 0)


FILLING = """
import resource
import numpy as np
import functorch_like as ft, functorch_like.numpy as fnp

x = fnp.ones(20_000_000)  # 80 MB, which the C library asks the system for and gives back

def halved(x):
    return fnp.sin(x) / 2

f, g = ft.jit(halved), ft.jit(lambda x, k: x * k, static_argnums=1)
derivative = ft.grad(lambda x: fnp.sin(x).sum())
calls = {
    "halved": lambda: f(x),
    "<lambda>": lambda: g(x, 2),
    "add(f32[20000000], f32[20000000])": lambda: x + x,
    "subtract(i32[], f32[20000000])": lambda: 1 - x,
    "tanh(f32[20000000])": lambda: fnp.tanh(x),
    "__neg__": lambda: -x,
    "sqrt": lambda: ft.lax.sqrt(x),
    "softmax": lambda: ft.nn.softmax(x),
    "__getitem__": lambda: x[1:],
    "set": lambda: x.at[3].set(1.0),
    "astype": lambda: x.astype("int32"),
    "normal": lambda: ft.random.normal(ft.random.key(0), x.shape),
    "sin": lambda: derivative(x),
}
for call in calls.values():
    call()
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
before = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (used, before[1]))
held = []
try:
    while len(held) < 100:
        held.append(f(x))
except MemoryError:
    pass
for name, call in calls.items():
    try:
        call()
        print(name, "had memory")
    except ft.errors.OutOfMemoryError as e:
        told = str(e)
        parts = told.startswith(name), "one allocation of 76.3 MiB" in told, "at: " in told, "what to do: " in told
        if not all(parts):
            print(name, parts, told)
resource.setrlimit(resource.RLIMIT_AS, before)
assert np.isclose(np.asarray(f(x)[:3]), np.sin(1) / 2).all()
print("done")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the addresses of a process as Linux does")
def test_memory_that_runs_out_in_calls_that_do_not_enter_python() -> None:
    """The second call of a function runs in C++; the package adds a name and a remedy to the error of C++."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", FILLING],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "FT_PLATFORM": "cpu",
            "FT_CPU_KEPT_MEMORY": "0",
        },  # memory that one call frees is not kept for the next one
        timeout=120,
    )
    assert done.stdout == "done\n", done.stdout + done.stderr


@pytest.mark.parametrize("stop", [math.inf, -math.inf, math.nan])
def test_a_range_has_an_end(stop: float) -> None:
    with pytest.raises(ft.errors.ArgumentError, match=r"fnp.arange .* has no end"):
        fnp.arange(0.0, stop)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (3, "3 bytes"),
        (999, "999 bytes"),
        (1000, "0.977 KiB"),
        (2**10, "1 KiB"),
        (1023 * 2**10, "0.999 MiB"),
        (400 * 2**30, "400 GiB"),
        (2**80, "1.05e+06 EiB"),
    ],
)
def test_bytes_as_text(count: int, text: str) -> None:
    assert bytes_text(count) == text


# ------------------------------------------------------------------------------------------------------- dimensions
def nested(depth: int, innermost: Any = 1.0) -> Any:
    tree = innermost
    for _ in range(depth):
        tree = [tree]
    return tree


def test_sequences_are_nested_as_deep_as_numpys_arrays_are() -> None:
    assert fnp.array(nested(64)).ndim == np.array(nested(64)).ndim == 64


_CYCLE: list[Any] = [1.0]
_CYCLE.append(_CYCLE)


@pytest.mark.parametrize(
    "make",
    [
        lambda: fnp.array(nested(65)),
        lambda: fnp.asarray(nested(70)),
        lambda: fnp.array(nested(5000)),
        lambda: fnp.array(_CYCLE),
        lambda: fnp.array(nested(70, fnp.ones(3))),
        lambda: fnp.stack(nested(70)),
        lambda: fnp.ones((1,) * 65),
        lambda: fnp.reshape(fnp.ones(1), (1,) * 65),
        lambda: fnp.expand_dims(fnp.ones(3), tuple(range(70))),
        lambda: fnp.ones(3)[(None,) * 65],
        lambda: fnp.array(1.0, ndmin=70),
    ],
)
def test_more_dimensions_than_arrays_have(make: Any) -> None:
    with pytest.raises(ft.errors.ShapeError, match=r"at most 64(.|\n)*test_sizes.py(.|\n)*what to do: "):
        make()


def test_a_deep_list_where_an_array_is_wanted() -> None:
    with pytest.raises(ft.errors.DtypeError, match="of type list is not an array"):
        fnp.sum(nested(5000))


# --------------------------------------------------------------------------------------------------------- donation
@pytest.mark.parametrize("warm", [False, True])
def test_an_array_donated_twice(warm: bool) -> None:
    f = ft.jit(lambda x, y: (x + 1, y * 2), donate_argnums=(0, 1))
    if warm:
        f(fnp.ones(3), fnp.ones(3))
    x = fnp.ones(3)
    with pytest.raises(ft.errors.DonatedError, match=r"args\[0\] and args\[1\] are the same(.|\n)*fnp.copy"):
        f(x, x)
    assert float(x.sum()) == 3  # x was not donated
    assert f(x, fnp.copy(x))[1].tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("call", "places"),
    [
        (lambda x: ft.jit(lambda p, q: (p + 1, q * 2), donate_argnums=0)(x, x), r"args\[0\] and args\[1\]"),
        (lambda x: ft.jit(lambda p: (p["a"] + 1, p["b"]), donate_argnums=0)({"a": x, "b": x}), r"args\[0\]\['a'\] and"),
        (lambda x: ft.jit(lambda p, q: (p + 1, q), donate_argnames="p")(p=x, q=x), r"kwargs\['p'\] and kwargs\['q'\]"),
        (lambda x: ft.jit(lambda p: p + x, donate_argnums=0)(x), "closes over it"),
        (
            lambda x: ft.jit(lambda p, q: (p + 1, q), donate_argnums=(0, 1)).lower(x, x).compile()(x, x),
            r"args\[0\] and",
        ),
    ],
)
def test_an_array_donated_and_used_elsewhere_in_the_call(call: Any, places: str) -> None:
    with pytest.raises(ft.errors.DonatedError, match=places + r"(.|\n)*test_sizes.py(.|\n)*what to do: "):
        call(fnp.ones((8, 8)))
