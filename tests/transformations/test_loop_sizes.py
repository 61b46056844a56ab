"""Sizes of loops: residuals of reverse mode, dead code, and jaxprs whose size does not depend on the length."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.ir.jaxpr import Jaxpr
from functorch_like.ir.passes import dead_code, simplify

RNG = np.random.default_rng(0)
W, XS, H = RNG.normal(size=(3, 3)) * 0.5, RNG.normal(size=(4, 3)), RNG.normal(size=3)
ALL = (0, 1, 2)


def scans(jaxpr):
    """Yield the scan equations of a jaxpr and of its inner jaxprs."""
    for e in jaxpr.equations:
        if e.prim.name == "scan":
            yield e
        for value in e.params.values():
            if isinstance(value, Jaxpr):
                yield from scans(value)


def size(jaxpr):
    """Return the number of equations of a jaxpr and its inner jaxprs."""
    held = [v for e in jaxpr.equations for v in e.params.values() if isinstance(v, Jaxpr)]
    return len(jaxpr.equations) + sum(map(size, held))


def test_invariant_residuals_are_not_stacked():
    def loss(w, xs, h):
        def step(c, x):
            return fnp.tanh((fnp.exp(w) + w.T) @ c) * fnp.sum(fnp.cos(w)), c * x

        last, ys = lax.scan(step, h, xs)
        return fnp.sum(last) + fnp.sum(ys)

    forward, backward = scans(ft.make_jaxpr(ft.grad(loss, ALL))(W, XS, H))
    stacked = [v.aval.shape for v in forward.outputs if v.aval.shape[:1] == (4,)]
    assert (4, 3, 3) not in stacked, "what is made of the weight alone is the same in all steps"
    assert len(stacked) <= 4, stacked  # ys, the carry, tanh, and the product's derivative
    assert [a.aval.shape for a in backward.inputs].count((4, 3, 3)) == 0
    assert any(a.aval.shape == (3, 3) for a in backward.inputs)
    names = [e.prim.name for e in forward.params["jaxpr"].equations]
    assert "cos" not in names, "residuals of the weight alone are computed before the loop"
    # slices that are residuals are passed on, not stacked again
    by_h = list(scans(ft.make_jaxpr(ft.grad(loss, 2))(W, XS, H)))[1]
    assert XS.shape in [a.aval.shape for a in by_h.inputs]


def test_no_residual_is_dead():
    def loss(w, xs, h):
        last, _ = lax.scan(lambda c, x: (fnp.tanh(w @ c + x), fnp.exp(c)), h, xs)
        return fnp.sum(last)  # the stacked results are not used

    for k in ALL:
        jaxpr = ft.jit(ft.grad(loss, k)).trace(W, XS, H).jaxpr
        forward, backward = scans(dead_code(jaxpr))
        read = {a for e in jaxpr.equations for a in e.inputs} | set(jaxpr.outputs)
        assert all(v in read for v in forward.outputs[1:])
        body = backward.params["jaxpr"]
        used = {a for e in body.equations for a in e.inputs} | set(body.outputs)
        assert all(v in used for v in body.inputs)
        assert "exp" not in [e.prim.name for e in forward.params["jaxpr"].equations]


@pytest.mark.parametrize(("batch", "after"), [(63, True), (64, False)])
def test_products_of_large_batches_are_added_up_in_the_loop(batch, after):
    def loss(w, xs):
        start = fnp.zeros((batch, 80), "float64")
        return fnp.sum(lax.scan(lambda c, x: (fnp.tanh(c @ w + x), None), start, xs)[0])

    draw = np.random.default_rng(0)
    w, xs, change = (draw.normal(size=s) * 0.1 for s in ((80, 80), (5, batch, 80), (80, 80)))
    _, backward = scans(ft.make_jaxpr(ft.grad(loss))(w, xs))
    assert ((80, 80) not in [v.aval.shape for v in backward.outputs]) == after
    numeric = (loss(w + 1e-5 * change, xs) - loss(w - 1e-5 * change, xs)) / 2e-5
    np.testing.assert_allclose((ft.grad(loss)(w, xs) * change).sum(), numeric, rtol=1e-6)


def test_a_shared_weights_cotangent_is_one_product_after_the_loop():
    def loss(w, xs, h):
        return fnp.sum(lax.scan(lambda c, x: (fnp.tanh(w @ c + w.T @ x), None), h, xs)[0])

    jaxpr = ft.make_jaxpr(ft.grad(loss))(W, XS, H)
    _, backward = scans(jaxpr)
    assert (3, 3) not in [v.aval.shape for v in backward.outputs]
    assert sum(e.prim.name == "dot_general" for e in jaxpr.equations) == 2
    # This does not apply if factors are larger than the weight, or if one step's product is large enough by itself.
    several = lambda w, xs: fnp.sum(lax.scan(lambda c, x: (fnp.tanh(c + x @ w), None), np.zeros(xs.shape[1]), xs)[0])
    for rows, width, apart in ((64, 2, False), (4, 2, False), (64, 64, False), (1, 2, True), (8, 64, True)):
        shape = (4, rows, width) if rows > 1 else (4, 1, width)
        _, backward = scans(ft.make_jaxpr(ft.grad(several))(np.ones(width), RNG.normal(size=shape)))
        assert ((width,) not in [v.aval.shape for v in backward.outputs]) == apart, (rows, width)


def test_the_cotangent_of_a_matrix_needs_no_transposition():
    w, x = np.ones((3, 2), np.float32), np.ones((4, 3), np.float32)
    slopes = ft.make_jaxpr(ft.grad(lambda w, x: fnp.sum((x @ w) ** 2), (0, 1)))(w, x)
    assert "transpose" not in [e.prim.name for e in slopes.equations]


def test_jaxprs_do_not_grow_with_the_length():
    def network(depth, width=3):
        ws = RNG.normal(size=(depth, width, width)) * 0.3

        def loss(ws, x):
            return fnp.sum(lax.scan(lambda c, w: (fnp.tanh(w @ c), None), x, ws)[0] ** 2)

        return loss, ws

    squared = lambda f: lambda w, x: fnp.sum(f(w, x) ** 2)
    sizes = {}
    for depth in (2, 100):
        loss, ws = network(depth)
        nests = {
            "plain": loss,
            "grad": ft.grad(loss),
            "grad of grad": ft.grad(squared(ft.grad(loss))),
            "vmap of grad": ft.vmap(ft.grad(loss), in_axes=(None, 0)),
        }
        x = {name: np.ones((5, 3) if "vmap" in name else 3) for name in nests}
        for name, nest in nests.items():
            jaxpr = ft.make_jaxpr(nest)(ws, x[name])
            sizes.setdefault(name, []).append((size(jaxpr), size(simplify(jaxpr))))
            assert sizes[name][-1][1] <= sizes[name][-1][0]
    assert all(two == hundred for two, hundred in sizes.values()), sizes
    assert sizes["plain"][0][0] < 10
    assert sizes["grad"][0][0] < 30, sizes
    assert sizes["grad of grad"][0][0] < 120, sizes


def test_dead_carries_and_results_leave_the_loop():
    def f(xs):
        def step(c, x):
            a, b, d = c
            return (a + x, fnp.cos(a) + b, fnp.sin(d)), (fnp.exp(d), a)

        return lax.scan(step, (xs[0], xs[1], xs[2]), xs)

    kept = lambda pick: next(iter(scans(dead_code(ft.make_jaxpr(lambda xs: pick(f(xs)))(XS[:, 0])))))
    names = lambda e: [q.prim.name for q in e.params["jaxpr"].equations]
    assert names(kept(lambda out: out[0][0])) == ["add"]
    assert sorted(names(kept(lambda out: out[0][1]))) == ["add", "add", "cos"]  # needs a, whose last value is unused
    assert sorted(names(kept(lambda out: out[1][0]))) == ["exp", "sin"]
    assert names(kept(lambda out: out[1][1])) == ["add"]
    want = np.cumsum(XS[:, 0]) + XS[0, 0]
    np.testing.assert_allclose(ft.jit(lambda xs: f(xs)[0][0])(XS[:, 0]), want[-1])
    np.testing.assert_allclose(ft.jit(lambda xs: f(xs)[1][1])(XS[:, 0]), np.r_[XS[0, 0], want[:-1]])
