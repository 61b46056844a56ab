"""Transformations that are made, called and dropped leave nothing behind: no Python memory, no arrays, no objects.

HYPOTHESIS_PROFILE=nightly runs 10,000 cycles.
"""

import gc
import itertools
import os
import tracemalloc

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax

NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
X = np.linspace(0.1, 0.9, 3)


def interpreted(x):
    """A cycle without compilation: rows have kernels of their own already."""
    f = lambda x: fnp.sum(fnp.sin(x) * x)
    ft.grad(f)(x)
    ft.vjp(f, x)[1](1.0)
    ft.linearize(f, x)[1](x)
    ft.jvp(f, (x,), (x,))
    ft.jacrev(f)(x)
    ft.hvp(f, (x,), (x,))
    ft.jet(f, (x,), ([x, x],))
    ft.vmap(ft.grad(f), chunk_size=2)(fnp.ones((3, 3), "float64"))
    ft.vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")(x)
    ft.linear_transpose(lambda x: 2 * x, x)(x)
    ft.make_jaxpr(ft.grad(f))(x)


def compiled(x):
    f = lambda x: fnp.sum(fnp.sin(x) * x)
    g = ft.jit(f)
    ft.grad(g)(x)
    ft.vmap(g)(fnp.ones((2, 3), "float64"))
    ft.jit(ft.hessian(f))(x)
    ft.jit(lambda x: lax.fori_loop(0, 3, lambda i, c: c * x, x))(x)


def live_arrays(x):
    return len(x.device.client.live_arrays())


@pytest.mark.parametrize(
    ("cycle", "count"), [(interpreted, 10_000 if NIGHTLY else 60), (compiled, 1000 if NIGHTLY else 12)]
)
def test_cycles_leave_nothing_behind(cycle, count):
    x = ft.device_put(X)

    def run(times):
        for _ in range(times):
            cycle(x)
        gc.collect()
        return tracemalloc.get_traced_memory()[0], live_arrays(x), len(gc.get_objects())

    tracemalloc.start()
    try:
        run(max(5, count // 10))  # caches of kernels, of shape rules and of C++ fill
        seen = [run(count) for _ in range(4)]
    finally:
        tracemalloc.stop()
    memory, arrays, objects = zip(*seen, strict=True)
    assert arrays[-1] == arrays[0]
    assert abs(objects[-1] - objects[0]) < 100 + count // 100
    # An entry that each cycle left in some cache would be hundreds of bytes. Once a large dictionary may have grown.
    grown = min(after - before for before, after in itertools.pairwise(memory))
    assert grown < 60_000 + 20 * count, f"{grown} bytes in {count} cycles"
