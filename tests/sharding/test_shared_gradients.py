"""Gradients inside of `shard_map` with `check_vma=True`: values that are the same on all devices count as one."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.sharding import PartitionSpec as P

N = 4
X = np.linspace(-1, 1, 24).reshape(8, 3)
W = np.array([0.5, -1.0, 2.0])


@pytest.fixture(scope="module")
def line():
    return ft.make_mesh((N,), ("i",))


def on_devices(body, mesh, **options):
    """Apply `body(w, part)`, with w whole on each device and the rows of X split."""
    return ft.shard_map(body, mesh=mesh, in_specs=(P(), P("i")), out_specs=P(), **options)(W, X)


def numeric(f, x, eps=1e-5):
    """Return the gradient of a function of a float64 vector, by central differences."""
    steps = eps * np.eye(len(x))
    return np.array([(f(x + d) - f(x - d)) / (2 * eps) for d in steps])


def cubes(w, x=X):
    return ((x @ w) ** 3).mean()


def total(w, x=X):
    return ((x @ w) ** 3).sum()


#: Of each loss on a device the function whose gradient is meant.
LOSSES = {
    "a mean": (lambda w, x: lax.pmean(cubes(w, x), "i"), cubes),
    "a sum": (lambda w, x: lax.psum(total(w, x), "i"), total),
    "of the device": (total, total),
    "a mean and a part without data": (
        lambda w, x: lax.pmean(cubes(w, x), "i") + (w**2).sum(),
        lambda w: cubes(w) + (w**2).sum(),
    ),
    "a part without data alone": (lambda w, x: (w**2).sum() + 0 * lax.psum(x.sum(), "i"), lambda w: (w**2).sum()),
    "a largest value": (lambda w, x: lax.pmax((x @ w).max(), "i"), lambda w: (X @ w).max()),
    "gathered": (lambda w, x: (lax.all_gather(x @ w, "i") ** 2).sum() / N, lambda w: ((X @ w) ** 2).sum()),
    "with a checkpoint": (
        ft.checkpoint(lambda w, x: lax.pmean(fnp.sin(x @ w).mean(), "i")),
        lambda w: np.sin(X @ w).mean(),
    ),
    "of a loop": (
        lambda w, x: lax.pmean(lax.fori_loop(0, 3, lambda i, c: fnp.sin(c + (x @ w).mean()), 0.0), "i"),
        lambda w: np.mean([_thrice(m) for m in (X @ w).reshape(N, -1).mean(1)]),
    ),
}


def _thrice(m):
    c = 0.0
    for _ in range(3):
        c = np.sin(c + m)
    return c


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("way", ["grad", "value_and_grad", "vjp", "jacrev", "jit"])
def test_gradients_of_losses(line, name, way):
    loss, meant = LOSSES[name]
    ways = {
        "grad": lambda w, x: ft.grad(loss)(w, x),
        "value_and_grad": lambda w, x: ft.value_and_grad(loss)(w, x)[1],
        "vjp": lambda w, x: ft.vjp(lambda w: loss(w, x), w)[1](1.0)[0],
        "jacrev": lambda w, x: ft.jacrev(loss)(w, x),
        "jit": lambda w, x: ft.jit(ft.grad(loss))(w, x),
    }
    np.testing.assert_allclose(on_devices(ways[way], line), numeric(meant, W), rtol=1e-6, atol=1e-8)


def _steps(w, slope, count):
    for _ in range(count):
        w = w - 0.01 * slope(w)
    return w


mean = LOSSES["a mean"][0]
INSIDE = {
    "scan": lambda w, x: lax.scan(lambda w, _: (w - 0.01 * ft.grad(mean)(w, x), None), w, None, length=3)[0],
    "fori_loop": lambda w, x: lax.fori_loop(0, 3, lambda i, w: w - 0.01 * ft.grad(mean)(w, x), w),
    "while_loop": lambda w, x: lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] - 0.01 * ft.jit(ft.grad(mean))(c[1], x)), (0, w)
    )[1],
    "cond": lambda w, x: lax.cond(
        w[0] > 0, lambda w: lax.fori_loop(0, 3, lambda i, w: w - 0.01 * ft.grad(mean)(w, x), w), lambda w: w, w
    ),
}


@pytest.mark.parametrize("name", INSIDE)
def test_gradients_in_control_flow(line, name):
    want = _steps(W, lambda w: numeric(cubes, w), 3)
    np.testing.assert_allclose(on_devices(INSIDE[name], line), want, rtol=1e-6)


def test_gradients_of_gradients(line):
    slope = lambda w: numeric(cubes, w, 1e-4)
    norm = lambda w: (slope(w) ** 2).sum()
    twice = lambda w, x: ft.grad(lambda w: (ft.grad(mean)(w, x) ** 2).sum())(w)
    np.testing.assert_allclose(on_devices(twice, line), numeric(norm, W, 1e-4), rtol=1e-4)
    hessian = on_devices(lambda w, x: ft.hessian(mean)(w, x), line)
    np.testing.assert_allclose(
        hessian, [numeric(lambda w, k=k: slope(w)[k], W, 1e-4) for k in range(3)], rtol=1e-4, atol=1e-5
    )
    outside = ft.grad(
        lambda w: (ft.shard_map(ft.grad(mean), mesh=line, in_specs=(P(), P("i")), out_specs=P())(w, X) ** 2).sum()
    )
    np.testing.assert_allclose(outside(W), numeric(norm, W, 1e-4), rtol=1e-4)


def test_gradients_for_each_example(line):
    """The first `vmap` maps over weights, the second over examples of a device."""
    pairs = np.stack([W, 2 * W])
    each = ft.shard_map(ft.vmap(ft.grad(mean), (0, None)), mesh=line, in_specs=(P(), P("i")), out_specs=P())(pairs, X)
    np.testing.assert_allclose(each, [numeric(cubes, w) for w in pairs], rtol=1e-6)
    rows = lambda w, x: ft.vmap(ft.grad(lambda w, row: (row @ w) ** 3), (None, 0))(lax.pcast(w, "i", to="varying"), x)
    own = ft.shard_map(rows, mesh=line, in_specs=(P(), P("i")), out_specs=P("i"))(W, X)
    np.testing.assert_allclose(own, [numeric(lambda w, row=row: (row @ w) ** 3, W) for row in X], rtol=1e-6)


def test_the_gradient_of_the_device_s_own_part(line):
    own = lambda w, x: ft.grad(total)(lax.pcast(w, "i", to="varying"), x)[None]
    got = ft.shard_map(own, mesh=line, in_specs=(P(), P("i")), out_specs=P("i"))(W, X)
    np.testing.assert_allclose(got, [numeric(lambda w, x=x: total(w, x), W) for x in X.reshape(N, 2, 3)], rtol=1e-6)
    by_hand = on_devices(lambda w, x: lax.psum(ft.grad(total)(w, x), "i"), line, check_vma=False)
    np.testing.assert_allclose(by_hand, numeric(total, W), rtol=1e-6)
    with pytest.raises(ft.errors.ArgumentError, match="pcast has no to='reduced'"):
        on_devices(lambda w, x: lax.pcast(w, "i", to="reduced"), line)
    with pytest.raises(ft.errors.AxisNameError, match="no axis named 'i'"):
        lax.pcast(W, "i", to="varying")


def test_one_of_two_axes():
    mesh = ft.make_mesh((2, 4), ("a", "b"))
    w = np.stack([W, 2 * W])  # a row for each place along "a"
    loss = lambda w, x: lax.pmean(((x @ w[0]) ** 3).mean(), "b")
    got = ft.shard_map(ft.grad(loss), mesh=mesh, in_specs=(P("a"), P("b")), out_specs=P("a"))(w, X)
    np.testing.assert_allclose(got, [numeric(cubes, row) for row in w], rtol=1e-6)


def with_rule(fun, bwd):
    made = ft.custom_vjp(fun)
    made.defvjp(lambda *args: (fun(*args), args), bwd)
    return made


RULES = {
    "a loss": (
        lambda w, x: with_rule(mean, lambda r, g: (g * ft.grad(mean)(*r), fnp.zeros_like(r[1])))(w, x),
        lambda w: numeric(cubes, w),
    ),
    "a cut of the cotangent of a loss": (
        lambda w, x: with_rule(lambda y: y, lambda r, g: (fnp.clip(g, -0.5, 0.5),))(mean(w, x)),
        lambda w: 0.5 * numeric(cubes, w),
    ),
    "a cut of the cotangent of weights": (
        lambda w, x: mean(with_rule(lambda w: w, lambda r, g: (fnp.clip(g, -0.3, 0.3),))(w), x),
        lambda w: np.clip(numeric(cubes, w), -0.3, 0.3),
    ),
}


def _layer(w, x):
    """A product whose rule gives the part of the device."""
    return with_rule(lambda w, x: x @ w, lambda r, g: (g @ r[1], g[:, None] * r[0]))(w, x)


RULES["a layer"] = lambda w, x: lax.pmean((_layer(w, x) ** 3).mean(), "i"), lambda w: numeric(cubes, w)
RULES["a layer, and a loss of the device"] = lambda w, x: (_layer(w, x) ** 3).sum(), lambda w: numeric(total, w)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit, ft.checkpoint], ids=["plain", "jit", "checkpoint"])
def test_rules_of_users_see_one_value(line, name, wrap):
    loss, meant = RULES[name]
    np.testing.assert_allclose(on_devices(ft.grad(wrap(loss)), line), meant(W), rtol=1e-6)


def _thrice_cut(w, x):
    cut = with_rule(lambda w: w * 1, lambda r, g: (fnp.clip(g, -0.3, 0.3),))
    last, _ = lax.scan(lambda c, _: (1.5 * cut(c), None), w, None, length=3)
    return mean(last, x)


def _cut_in_a_loop(w):
    g = numeric(cubes, 1.5**3 * w)
    for _ in range(3):
        g = np.clip(1.5 * g, -0.3, 0.3)
    return g


#: The losses that are the same on all devices.
SHARED = {k: v for k, v in RULES.items() if k != "a layer, and a loss of the device"}
SHARED["a cut in a loop"] = (_thrice_cut, _cut_in_a_loop)


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit, ft.checkpoint], ids=["plain", "jit", "checkpoint"])
@pytest.mark.parametrize("way", [ft.grad, lambda f: ft.jit(ft.grad(f)), ft.jacrev], ids=["grad", "jit", "jacrev"])
def test_rules_of_users_see_one_value_where_all_is_differentiated(line, name, wrap, way):
    loss, meant = SHARED[name]
    whole = ft.shard_map(wrap(loss), mesh=line, in_specs=(P(), P("i")), out_specs=P())
    np.testing.assert_allclose(way(lambda w: whole(w, X))(W), meant(W), rtol=1e-6)


def test_rules_for_examples_where_all_is_differentiated(line):
    loss, meant = RULES["a cut of the cotangent of weights"]
    whole = ft.shard_map(loss, mesh=line, in_specs=(P(), P("i")), out_specs=P())
    pairs = np.stack([W, 2 * W])
    each = ft.vmap(ft.grad(whole), (0, None))(pairs, X)
    np.testing.assert_allclose(each, [meant(w) for w in pairs], rtol=1e-6)


def test_the_second_derivative_through_a_rule(line):
    """The rule cuts cotangents, so that only those elements have second derivatives whose slope is small."""
    loss = lambda w, x: mean(with_rule(lambda w: w, lambda r, g: (fnp.clip(g, -0.3, 0.3),))(w), x)
    whole = ft.shard_map(loss, mesh=line, in_specs=(P(), P("i")), out_specs=P())
    slope = lambda w: np.clip(numeric(cubes, w, 1e-4), -0.3, 0.3)
    want = [numeric(lambda w, k=k: slope(w)[k], W, 1e-4) for k in range(3)]
    np.testing.assert_allclose(ft.jacrev(ft.grad(whole))(W, X), want, rtol=1e-3, atol=1e-5)


def test_values_that_are_the_same_are_kept_once_for_the_gradient(line):
    whole = ft.shard_map(
        lambda w, x: lax.pmean((x @ fnp.sin(w) ** 2).mean(), "i"), mesh=line, in_specs=(P(), P("i")), out_specs=P()
    )
    residuals = ft.jit(lambda w: ft.vjp(lambda w: whole(w, X), w)[1])(fnp.asarray(W))
    assert all(leaf.sharding.is_fully_replicated for leaf in ft.tree.leaves(residuals) if leaf.shape[-1:] == (3,))
