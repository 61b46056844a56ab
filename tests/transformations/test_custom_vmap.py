"""custom_vmap: vmap uses the user's rule, under all transformations."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.custom_batching import custom_vmap, sequential_vmap

XS = ft.device_put(np.linspace(0.1, 1.0, 3))


def marked(seen=None):
    """Return sin(x) * y with a rule that adds 100: results show its use, and derivatives stay the same."""

    @custom_vmap
    def f(x, y):
        return fnp.sin(x) * y

    @f.def_vmap
    def rule(axis_size, in_batched, x, y):
        if seen is not None:
            seen.append((axis_size, in_batched, x.shape, y.shape))
        wide = lambda v, b: v if b else fnp.broadcast_to(v, (axis_size, *v.shape))
        return fnp.sin(wide(x, in_batched[0])) * wide(y, in_batched[1]) + 100, True

    return f


WAYS = pytest.mark.parametrize("way", [lambda g: g, ft.jit], ids=["plain", "jit"])


@WAYS
def test_the_rule_is_given_leading_axes(way):
    seen = []
    f = marked(seen)
    matrix = np.ones((2, 3))
    np.testing.assert_allclose(ft.vmap(way(f), (0, None))(XS, 2.0), 100 + 2 * np.sin(XS), rtol=1e-12)
    np.testing.assert_allclose(way(ft.vmap(f, (1, None), 1))(matrix, matrix[:, 0]), np.full((2, 3), 100 + np.sin(1)))
    assert seen == [(3, (True, False), (3,), ()), (3, (True, False), (3, 2), (2,))]


@WAYS
def test_without_a_batch_the_function_is_used(way):
    f = marked()
    assert float(way(f)(0.0, 1.0)) == 0.0
    assert ft.vmap(lambda y: y + way(f)(0.0, 1.0))(fnp.zeros(2)).tolist() == [0.0, 0.0]


def test_nested_maps_use_the_rule_once_if_it_is_not_made_of_the_function():
    f = marked()
    both = ft.vmap(ft.vmap(f, (None, 0)), (0, None))(XS, XS)
    np.testing.assert_allclose(both, 100 + np.sin(XS)[:, None] * np.asarray(XS), rtol=1e-12)


def test_a_rule_made_of_the_function_itself_is_used_by_each_map():
    @custom_vmap
    def total(x):
        return fnp.sum(x) + 1

    total.def_vmap(lambda size, batched, x: (total(x), False))
    # Each element of both maps gets the whole sum, because the rule returns one result for all of them.
    assert float(total(fnp.ones((2, 3, 4)))) == 25.0
    got = ft.vmap(total)(fnp.ones((2, 3)))
    assert got.tolist() == [7.0, 7.0]


@WAYS
def test_results_that_are_not_batched(way):
    @custom_vmap
    def f(x, y):
        return {"x": x * y, "y": y}

    f.def_vmap(lambda size, batched, x, y: ({"x": x * y, "y": y}, {"x": True, "y": False}))
    out = ft.vmap(way(f), (0, None), {"x": 0, "y": None})(fnp.ones(3), 2.0)
    assert out["x"].tolist() == [2.0] * 3 and float(out["y"]) == 2.0


# --------------------------------------------------------------------------------------------------------- derivatives
@WAYS
def test_forward_mode_uses_the_rule(way):
    f = marked()
    push = lambda x: ft.jvp(way(f), (x, 2.0), (fnp.ones_like(x), 1.0))
    out, slope = ft.vmap(push)(XS)
    np.testing.assert_allclose(out, 100 + 2 * np.sin(XS), rtol=1e-6)
    np.testing.assert_allclose(slope, 2 * np.cos(XS) + np.sin(XS), rtol=1e-6)
    out, slope = ft.jvp(lambda x: way(ft.vmap(f, (0, None)))(x, 2.0), (XS,), (XS,))
    np.testing.assert_allclose(out, 100 + 2 * np.sin(XS), rtol=1e-6)
    np.testing.assert_allclose(slope, 2 * np.cos(XS) * np.asarray(XS), rtol=1e-6)


def test_tangents_that_only_some_elements_have():
    """A tangent may be mapped where its primal is not, and the other way round."""
    f = marked()
    out, slope = ft.vmap(lambda dx: ft.jvp(lambda x: f(x, 2.0), (XS[0],), (dx,)))(XS)
    np.testing.assert_allclose(out, np.full(3, 100 + 2 * np.sin(0.1)), rtol=1e-6)
    np.testing.assert_allclose(slope, 2 * np.cos(0.1) * np.asarray(XS), rtol=1e-6)
    slope = ft.vmap(lambda x: ft.jvp(lambda v: f(v, 2.0), (x,), (XS[0],))[1])(XS)
    np.testing.assert_allclose(slope, 2 * np.cos(XS) * 0.1, rtol=1e-6)


@WAYS
def test_reverse_mode(way):
    f = marked()
    np.testing.assert_allclose(ft.vmap(way(ft.grad(f)), (0, None))(XS, 2.0), 2 * np.cos(XS), rtol=1e-6)
    np.testing.assert_allclose(ft.vmap(ft.grad(way(f)), (0, None))(XS, 2.0), 2 * np.cos(XS), rtol=1e-6)
    loss = lambda x: way(ft.vmap(f, (0, None)))(x, 2.0).sum()
    np.testing.assert_allclose(ft.grad(loss)(XS), 2 * np.cos(XS), rtol=1e-6)
    np.testing.assert_allclose(ft.grad(way(ft.grad(lambda x: f(x, 2.0))))(XS[0]), -2 * np.sin(0.1), rtol=1e-6)


@WAYS
def test_with_custom_vjp_around_it_reverse_mode_uses_the_rule(way):
    inner = marked()

    @ft.custom_vjp
    def f(x, y):
        return inner(x, y)

    f.defvjp(lambda x, y: (inner(x, y), (x, y)), lambda r, g: (g * r[1] * fnp.cos(r[0]), g * fnp.sin(r[0])))
    value, slope = ft.vmap(ft.value_and_grad(way(f)), (0, None))(XS, 2.0)
    np.testing.assert_allclose(value, 100 + 2 * np.sin(XS), rtol=1e-6)
    np.testing.assert_allclose(slope, 2 * np.cos(XS), rtol=1e-6)


# ---------------------------------------------------------------------------------------------------------- sequential
@WAYS
def test_sequential_vmap_is_a_loop(way):
    runs = []

    def fun(x, p):
        runs.append(x.shape)
        return {"out": fnp.sin(x) * p["w"]}

    f = sequential_vmap(fun)
    mapped = lambda x: ft.vmap(way(f), (0, None))(x, {"w": 2.0})["out"]
    np.testing.assert_allclose(mapped(XS), 2 * np.sin(XS), rtol=1e-12)
    assert set(runs) == {()}
    assert "scan(" in str(ft.make_jaxpr(mapped)(XS))
    np.testing.assert_allclose(ft.grad(lambda x: mapped(x).sum())(XS), 2 * np.cos(XS), rtol=1e-12)
    twice = ft.vmap(mapped)(fnp.stack([XS, 2 * XS]))
    np.testing.assert_allclose(twice, 2 * np.sin(np.stack([XS, 2 * XS])), rtol=1e-12)
    assert set(runs) == {()}


@pytest.mark.parametrize("way", [lambda f: f, ft.jit])
@pytest.mark.parametrize(
    ("rule", "error"),
    [
        (lambda size, batched, x: (fnp.stack([x, x], 1), True), ft.errors.ShapeError),
        (lambda size, batched, x: (x.astype("float64"), True), ft.errors.DtypeError),
        (lambda size, batched, x: (x, False), ft.errors.ShapeError),
    ],
)
def test_what_a_rule_returns_is_held_against_the_function(way, rule, error):
    f = custom_vmap(lambda x: fnp.sin(x))
    f.def_vmap(rule)
    with pytest.raises(error, match="does not return what it should"):
        ft.vmap(way(f))(fnp.arange(3.0))


def test_a_function_that_only_runs_on_values_has_its_rule_all_the_same():
    f = custom_vmap(lambda x: x if x > 0 else -x)
    f.def_vmap(lambda size, batched, x: (fnp.abs(x), True))
    np.testing.assert_array_equal(ft.vmap(f)(fnp.asarray([-1.0, 2.0])), [1, 2])
