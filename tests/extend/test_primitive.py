"""A primitive defined by a user, with every rule and a lowering of its own, under every transformation."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import extend, lax
from functorch_like.errors import ArgumentError, ShapeError, UnsupportedError


def make_fma(**rules):
    """Make a primitive that computes a * b + c."""

    def shape(a, b, c):
        if not a.shape == b.shape == c.shape:
            raise ShapeError(f"fma of {a!r}, {b!r} and {c!r}", fix="broadcast them")
        return a

    def lower(e, a, b, c):
        return e.op("stablehlo.add", [e.op("stablehlo.multiply", [a, b], e.outs), c], e.outs)

    def jvp(primals, tangents):
        (a, b, _), (da, db, dc) = primals, tangents
        parts = [None if da is None else lax.mul(da, b), None if db is None else lax.mul(a, db), dc]
        parts = [p for p in parts if p is not None]
        return fma(*primals), sum(parts[1:], parts[0])

    def batch(axis, args, dims):
        repeat = lambda a: fnp.broadcast_to(a, (axis.size, *a.shape))
        whole = [repeat(a) if d is None else fnp.moveaxis(a, d, 0) for a, d in zip(args, dims, strict=True)]
        return fma(*whole), 0

    filled = {
        "shape": shape, "ref": lambda a, b, c: a * b + c, "lower": lower, "jvp": jvp, "batch": batch,
        "transpose": extend.NotDefined("fma is not linear in all it takes; differentiate it with its jvp rule"),
        "samples": lambda: [extend.SampleInput((extend.ShapedArray((3,), "float32"),) * 3)],
    }  # fmt: skip
    fma = extend.Primitive("fma", **(filled | rules))
    return fma


@pytest.fixture
def fma():
    made = make_fma()
    yield made
    extend.forget(made)


A, B, C = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)


def test_it_runs_eagerly_and_compiled(fma):
    np.testing.assert_allclose(fma(A, B, C), A * B + C, rtol=1e-6)
    np.testing.assert_allclose(ft.jit(fma)(A, B, C), A * B + C, rtol=1e-6)
    assert "fma(" in str(ft.make_jaxpr(fma)(A, B, C))


def test_it_has_derivatives(fma):
    f = lambda a, b: fnp.sum(fma(a, b, a))
    np.testing.assert_allclose(ft.grad(f)(A, B), B + 1, rtol=1e-6)
    np.testing.assert_allclose(ft.jit(ft.grad(f, argnums=1))(A, B), A, rtol=1e-6)
    np.testing.assert_allclose(ft.jvp(f, (A, B), (A, B))[1], np.sum(2 * A * B + A), rtol=1e-5)


def test_it_is_mapped(fma):
    rows = np.stack([A, B, C])
    np.testing.assert_allclose(ft.vmap(fma, in_axes=(0, None, 0))(rows, B, rows), rows * B + rows, rtol=1e-6)


def test_its_errors_are_the_package_s(fma):
    with pytest.raises(ShapeError) as caught:
        fma(A, B, C[:2])
    assert "fma(f32[4], f32[4], f32[2])" in str(caught.value) and "broadcast them" in str(caught.value)


def test_transformations_of_it_are_called_by_its_name(fma):
    with pytest.raises(ShapeError, match=r"under: vmap\(fma\)"):
        ft.vmap(fma)(np.ones((2, 3)), np.ones((2, 3)), np.ones((2, 4)))
    assert str(ft.make_jaxpr(fma)(A, B, C)).startswith("def fma(")


def test_a_missing_rule_gives_the_reason():
    made = make_fma(jvp=extend.NotDefined("fma was left without a derivative; use a * b + c"))
    try:
        with pytest.raises(UnsupportedError, match=r"left without a derivative[\s\S]*use a \* b \+ c"):
            ft.grad(lambda a: fnp.sum(made(a, B, C)))(A)
    finally:
        extend.forget(made)


def test_a_name_is_free_again_after_forget(fma):
    with pytest.raises(ValueError, match="defined twice"):
        make_fma()
    extend.forget(fma)
    again = make_fma()
    assert extend.primitives()["fma"] is again
    extend.forget(again)
    assert "fma" not in extend.primitives()
    with pytest.raises(ArgumentError, match="package's own"):
        extend.forget(extend.primitives()["add"])
