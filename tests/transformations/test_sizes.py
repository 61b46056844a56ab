"""Number of equations of programs, as traced and after each pass: tracing stays linear, and residuals are used."""

import itertools

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.ir import passes
from functorch_like.ir.jaxpr import Jaxpr

PASSES = (passes.dead_code, passes.fold_constants, passes.common_subexpressions)


def size(jaxpr):
    """Return the number of equations of a jaxpr and its inner jaxprs."""
    inner = (v for e in jaxpr.equations for v in e.params.values() if isinstance(v, Jaxpr))
    return len(jaxpr.equations) + sum(map(size, inner))


def sizes(f, *args):
    """Return the sizes of a program, as traced and after each pass."""
    jaxpr = ft.make_jaxpr(f)(*args)
    found = [size(jaxpr)]
    for step in PASSES:
        jaxpr = step(jaxpr)
        found.append(size(jaxpr))
    return found


def repeated(transform, f, times):
    for _ in range(times):
        f = transform(f)
    return f


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["plain", "jit"])
def test_nested_gradients_of_tanh(wrap):
    """Each further reverse mode turns an equation into two or three, not more."""
    levels = [sizes(repeated(ft.grad, wrap(fnp.tanh), k), 1.0) for k in range(6)]
    assert all(earlier >= later for row in levels for earlier, later in itertools.pairwise(row)), levels
    assert all(after[0] < 3 * before[0] + 3 for before, after in itertools.pairwise(levels)), levels
    assert levels[5][0] < 180, levels


def test_nested_forward_derivatives_grow_by_a_polynomial_after_the_passes():
    forward = lambda f: lambda x: ft.jvp(f, (x,), (1.0,))[1]
    levels = [sizes(repeated(forward, fnp.tanh, k), 1.0)[-1] for k in range(6)]
    assert levels[5] < 3 * levels[3], levels


def unrolled(steps):
    def f(x):
        for _ in range(steps):
            x = fnp.sin(x) * 1.01 + x
        return x

    return f


@pytest.mark.parametrize("transform", [lambda f: f, ft.grad, lambda f: ft.grad(ft.jit(f)), ft.hessian, ft.vmap])
def test_an_unrolled_loop_of_a_thousand_steps_is_linear(transform):
    argument = np.ones(2, np.float32) if transform is ft.vmap else 1.0
    few, many = (sizes(transform(unrolled(n)), argument) for n in (100, 1000))
    assert all(m <= 10.2 * f for f, m in zip(few, many, strict=True)), (few, many)
    assert many[0] <= 30_000, many


def test_a_scan_of_a_hundred_layers_is_as_large_as_one_of_two():
    def network(ws, x):
        return fnp.sum(lax.scan(lambda c, w: (fnp.tanh(c @ w), None), x, ws)[0])

    x = np.ones(3, np.float32)
    for transform in (ft.grad, ft.hessian, lambda f: ft.vmap(ft.grad(f), in_axes=(None, 0))):
        args = lambda n, t=transform: (np.ones((n, 3, 3), np.float32), x if t in (ft.grad, ft.hessian) else x[None])
        few, many = (sizes(transform(network), *args(n)) for n in (2, 100))
        assert few == many


# --------------------------------------------------------------------------------------------------------- residuals
def calls(jaxpr):
    return [e for e in jaxpr.equations if e.prim.name in ("call", "scan")]


@pytest.mark.parametrize(
    "f",
    [
        ft.jit(lambda x, w: (fnp.sin(x) * w, fnp.tanh(fnp.exp(w) * x))),
        ft.jit(lambda x, w: (ft.jit(lambda x: fnp.sin(x) * w)(x), fnp.cos(w))),
        lambda x, w: lax.scan(lambda c, y: (fnp.sin(c * w) * y, fnp.cos(c)), x, fnp.ones((4, 3), "float64")),
    ],
    ids=["jit", "jit in jit", "scan"],
)
def test_every_residual_is_read(f):
    """After dead-code elimination, each output of the known half is read, also where only one result is used."""
    for k in (0, 1):
        jaxpr = passes.dead_code(
            ft.make_jaxpr(ft.grad(lambda x, w, k=k: fnp.sum(f(x, w)[k]), (0, 1)))(np.ones(3), np.ones(3))
        )
        read = {a for e in jaxpr.equations for a in e.inputs if hasattr(a, "aval")} | set(jaxpr.outputs)
        for e in calls(jaxpr):
            unused = [v for v in e.outputs if v not in read]
            # The last value of a carry that the scan itself needs may have no reader.
            assert len(unused) <= (e.params.get("num_carry", 0)), jaxpr


def test_a_residual_that_is_an_argument_is_not_returned():
    known = calls(
        ft.make_jaxpr(ft.grad(lambda x, w: ft.jit(lambda x, w: fnp.sum(x * w))(x, w), (0, 1)))(np.ones(3), np.ones(3))
    )
    assert len(known[0].outputs) == 1  # only the value: x and w are available anyway
