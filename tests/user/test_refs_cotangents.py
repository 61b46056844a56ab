"""Pullbacks that add cotangents to Refs: `vjp(...)[1].with_refs(...)`."""

import numpy as np
import pytest

import functorch_like as ft
from functorch_like import ad
from functorch_like import numpy as fnp
from functorch_like.errors import ArgumentError, ShapeError


def test_a_cotangent_is_added_to_a_ref():
    total = ft.new_ref(2.0)
    _, pullback = ft.vjp(fnp.sin, 1.0)
    for n in (1, 2):
        assert pullback.with_refs(total)(1.0) == (ad.GradRef(),)
        np.testing.assert_allclose(total[...], 2 + n * np.cos(1.0), rtol=1e-6)
    np.testing.assert_allclose(pullback(1.0)[0], np.cos(1.0), rtol=1e-6)


def test_each_argument_has_its_own():
    w, x = fnp.arange(6.0).reshape(2, 3), fnp.arange(3.0)
    _, pullback = ft.vjp(lambda w, x, i: (w @ x)[i], w, x, 1)
    total = ft.new_ref(fnp.ones((2, 3)))
    out = pullback.with_refs(total, ad.GradValue(), ad.DontWant())(2.0)
    assert out[0] == ad.GradRef() and out[2] == ad.DidntWant()
    np.testing.assert_array_equal(out[1], 2 * w[1])
    np.testing.assert_array_equal(total[...], 1 + 2 * np.array([[0, 0, 0], [0, 1, 2]]))


def test_trees_of_arguments():
    tree = {"a": fnp.ones(2), "b": fnp.full(2, 3.0)}
    _, pullback = ft.vjp(lambda t: t["a"] * t["b"], tree)
    ones = fnp.ones(2)
    assert pullback.with_refs(ad.DontWant())(ones) == ({"a": ad.DidntWant(), "b": ad.DidntWant()},)
    total = ft.new_ref(fnp.zeros(2))
    (out,) = pullback.with_refs({"a": ad.GradValue(), "b": total})(ones)
    assert out["a"].tolist() == [3.0, 3.0] and out["b"] == ad.GradRef() and total[...].tolist() == [1.0, 1.0]


def test_gradients_of_parts_of_a_batch_are_added_up_in_compiled_loops():
    loss = lambda w, x: (fnp.tanh(x @ w) ** 2).mean()

    @ft.jit
    def summed(w, parts):
        total = ft.new_ref(fnp.zeros_like(w))

        def step(_, x):
            value, pullback = ft.vjp(lambda w: loss(w, x), w)
            pullback.with_refs(total)(1.0)
            return None, value

        _, values = ft.lax.scan(step, None, parts)
        return ft.freeze(total), values

    numbers = np.random.default_rng(0).normal(size=(5, 7, 3)).astype(np.float32)
    w = fnp.asarray(numbers[0, :3])
    total, values = summed(w, fnp.asarray(numbers))
    expected = sum(ft.grad(loss)(w, x) for x in numbers)
    np.testing.assert_allclose(total, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(values, [loss(w, x) for x in numbers], rtol=1e-6)


def test_a_jitted_function_returns_what_stands_for_cotangents():
    _, pullback = ft.vjp(lambda x, y: x * y, 2.0, 3.0)
    assert ft.jit(lambda ct: pullback.with_refs(ad.DontWant(), ad.GradValue())(ct))(1.0) == (ad.DidntWant(), 2.0)


def test_what_is_refused():
    _, pullback = ft.vjp(lambda x, y: x * y, fnp.ones(2), fnp.ones(2))
    with pytest.raises(ArgumentError, match="got 1 objects for 2 arguments"):
        pullback.with_refs(ad.GradValue())
    with pytest.raises(ArgumentError, match="with_refs got 3"):
        pullback.with_refs(ad.GradValue(), 3)
    with pytest.raises(ShapeError):
        pullback.with_refs(ft.new_ref(fnp.zeros(3)), ad.DontWant())(fnp.ones(2))
