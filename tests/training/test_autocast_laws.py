"""autocast of random programs with nested transformations: avals stay, products become narrow, nothing else changes."""

import os
from unittest import mock

import numpy as np
from hypothesis import given, settings

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.ir.jaxpr import inner_jaxprs
from functorch_like.testing import programs as drawn
from functorch_like.testing.programs import N, total
from functorch_like.testing.strategies import programs

EXAMPLES = {"ci": 20, "thin": 5}.get(os.environ.get("HYPOTHESIS_PROFILE", "ci"), settings.default.max_examples)
MATRIX = np.linspace(-0.5, 0.5, N * N).reshape(N, N)


def with_products(f, dtype):
    """Return a program with matrix products before and after it."""
    matrix = fnp.asarray(MATRIX, dtype)

    def g(x, w):
        y = f(matrix @ x if fnp.ndim(x) else x, w)
        return total(y) * fnp.sum(matrix @ matrix)

    return g


def orders(f):
    cast = ft.autocast
    mapped = lambda g: ft.vmap(g, in_axes=(0, None))
    yield "autocast", cast(f), f, False
    yield "grad(autocast)", ft.grad(cast(f)), ft.grad(f), False
    yield "autocast(grad)", cast(ft.grad(f)), ft.grad(f), False
    yield "autocast(jit(grad))", cast(ft.jit(ft.grad(f))), ft.jit(ft.grad(f)), False
    yield "autocast(vmap)", cast(mapped(f)), mapped(f), True
    yield "vmap(autocast)", mapped(cast(f)), mapped(f), True


def specs(f, dtype, mapped):
    x, w = ((N,) * rank for rank in f.ranks)
    return ft.ShapeDtypeStruct((4, *x) if mapped else x, dtype), ft.ShapeDtypeStruct(w, dtype)


def wide_products(jaxpr):
    return sum(
        (e.prim.name == "dot_general" and e.inputs[0].aval.dtype == fnp.float32)
        + sum(map(wide_products, inner_jaxprs(e.params)))
        for e in jaxpr.equations
    )


@settings(max_examples=EXAMPLES)
@given(programs(smooth=True))
def test_avals_stay_and_products_are_narrow(f):
    g = with_products(f, "float32")
    for name, cast, plain, mapped in orders(g):
        args = specs(f, "float32", mapped)
        with mock.patch.multiple(drawn, K=drawn.K.astype("float32"), M=drawn.M.astype("float32")):
            got, want = ft.make_jaxpr(cast)(*args), ft.make_jaxpr(plain)(*args)
        assert got.out_avals == want.out_avals, name
        assert wide_products(want) and not wide_products(got), name


@settings(max_examples=EXAMPLES)
@given(programs(smooth=True))
def test_programs_of_float64_are_as_they_were(f):
    g = with_products(f, "float64")
    for name, cast, plain, mapped in orders(g):
        args = specs(f, "float64", mapped)
        assert str(ft.make_jaxpr(cast)(*args)) == str(ft.make_jaxpr(plain)(*args)), name
