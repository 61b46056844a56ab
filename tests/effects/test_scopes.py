"""named_scope, ensure_compile_time_eval and block_until_ready."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.errors import ArgumentError


@ft.named_scope("layer")
def layer(x):
    with ft.named_scope("inner part"):
        y = fnp.sin(x) * 1.0625
    return y + x


def test_scopes_are_in_jaxprs():
    text = str(ft.make_jaxpr(lambda x: fnp.cos(layer(x)))(1.0))
    places = {row.split("= ")[1].split("(")[0]: row.split("# ")[1] for row in text.split("\n")[1:-1]}
    assert places["sin"].endswith("in layer/inner part") and places["add"].endswith("in layer")
    assert " in " not in places["cos"]


def test_scopes_are_in_stablehlo_and_in_compiled_programs():
    lowered = ft.jit(lambda x: fnp.cos(layer(x))).lower(fnp.ones(3))
    assert "layer/inner part/layer" in lowered.as_text(debug_info=True)
    assert "inner part" not in lowered.as_text()
    assert "layer/inner part" in lowered.compile().as_text()


@pytest.mark.parametrize(
    "wrap", [lambda f: ft.grad(f), lambda f: ft.grad(ft.jit(f)), lambda f: ft.vmap(ft.grad(f))], ids=lambda w: ""
)
def test_derivatives_keep_scopes(wrap):
    f = wrap(lambda x: fnp.sum(layer(x)))
    text = str(ft.make_jaxpr(f)(fnp.ones((2, 2)) if "vmap" in wrap.__code__.co_names else fnp.ones(2)))
    assert any("cos(" in row and row.endswith("in layer/inner part") for row in text.split("\n"))
    assert any("mul(" in row and row.endswith("in layer/inner part") for row in text.split("\n"))


def test_scopes_in_loops_and_errors():
    def step(c, x):
        with ft.named_scope("step"):
            return c * x, None

    assert "in step" in str(ft.make_jaxpr(lambda xs: lax.scan(step, 1.0, xs)[0])(fnp.ones(3)))

    def wrong(x):
        with ft.named_scope("step"):
            return fnp.ones(2) + x

    with pytest.raises(ft.errors.ShapeError, match="in wrong"):
        ft.jit(wrong)(fnp.ones(3))
    for name in ("", 3, None):
        with pytest.raises(ArgumentError):
            ft.named_scope(name)


# ---------------------------------------------------------------------------------------------------- at compile time
def test_values_are_there_while_tracing():
    @ft.jit
    def f(x):
        with ft.ensure_compile_time_eval():
            table = fnp.cumsum(fnp.arange(4))
            assert table[-1] == 6  # Python needs the value here
            slope = ft.grad(lambda v: v**3)(2.0)
            rows = ft.vmap(ft.jit(lambda v: v * 2))(table)
            total = lax.fori_loop(0, 3, lambda i, s: s + i, 0)
            size = int(table[-1])
        return fnp.zeros(size) + x * slope, rows, total

    zeros, rows, total = f(1.0)
    assert zeros.tolist() == [12.0] * 6 and rows.tolist() == [0, 2, 6, 12] and int(total) == 3
    assert "cumsum" not in str(f.trace(1.0))


@pytest.mark.parametrize("wrap", [ft.jit, lambda f: ft.vmap(f, axis_size=2, in_axes=None)], ids=lambda w: "")
def test_what_is_traced_stays_traced(wrap):
    def f(x):
        with ft.ensure_compile_time_eval():
            return fnp.sin(x) + int(fnp.arange(3).sum())

    np.testing.assert_allclose(wrap(f)(1.0), np.broadcast_to(np.sin(1.0) + 3, np.shape(wrap(f)(1.0))), rtol=1e-6)
    np.testing.assert_allclose(wrap(ft.grad(f))(1.0), np.broadcast_to(np.cos(1.0), np.shape(wrap(f)(1.0))), rtol=1e-6)
    assert float(f(0.0)) == 3.0
    assert float(ft.jit(lambda x: x + 1)(1.0)) == 2.0  # the block has ended


def test_block_until_ready():
    tree = {"a": ft.jit(lambda x: x @ x)(fnp.ones((50, 50))), "b": [3, None, "text"]}
    same = ft.block_until_ready(tree)
    assert same["a"] is tree["a"] and same["b"] == [3, None, "text"]
