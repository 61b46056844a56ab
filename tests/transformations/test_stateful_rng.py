"""Random generators that keep their own state."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import random
from functorch_like.experimental.random import stateful_rng


def key(count, seed=7):
    return random.fold_in(random.key(seed), count)


def test_each_draw_has_the_key_of_its_number():
    rng = stateful_rng(7)
    np.testing.assert_array_equal(rng.key(), key(0))
    np.testing.assert_array_equal(rng.key((2,)), random.split(key(1), 2))
    np.testing.assert_array_equal(rng.random((3,)), random.uniform(key(2), (3,)))
    np.testing.assert_array_equal(rng.integers(2, 9, (3,)), random.randint(key(3), (3,), 2, 9))
    np.testing.assert_array_equal(rng.integers(np.array([5, 9])), random.randint(key(4), (2,), 0, np.array([5, 9])))
    low = np.array([0.0, 5.0], np.float32)
    np.testing.assert_allclose(rng.uniform(low, 7), random.uniform(key(5), (2,)) * (7 - low) + low, rtol=1e-6)
    np.testing.assert_allclose(rng.normal(1, 2, 4), random.normal(key(6), (4,)) * 2 + 1, rtol=1e-5)
    assert rng.normal(dtype="float16").dtype == "float16" and int(rng._counter[...]) == 8


def test_jit_closes_over_it_and_takes_it():
    rng, same = stateful_rng(7), stateful_rng(7)
    draw = ft.jit(rng.uniform)
    taken = ft.jit(lambda rng: rng.uniform())
    for count in range(2):
        wanted = random.uniform(key(count))
        np.testing.assert_allclose([draw(), taken(same)], [wanted] * 2, rtol=1e-6)
    assert int(rng._counter[...]) == int(same._counter[...]) == 2
    assert float(ft.jit(lambda seed: stateful_rng(seed).uniform())(7)) == pytest.approx(float(random.uniform(key(0))))


def test_children_are_independent():
    children = stateful_rng(7).spawn(3)
    keys = random.split(key(0), 3)
    for child, base in zip(children, keys, strict=True):
        np.testing.assert_array_equal(child.key(), random.fold_in(base, 0))
    mapped = ft.vmap(lambda rng, x: x + rng.uniform())(stateful_rng(7).split(3), fnp.zeros(3))
    np.testing.assert_allclose(mapped, [random.uniform(random.fold_in(k, 0)) for k in keys], rtol=1e-6)


def test_seeds():
    assert not np.array_equal(stateful_rng().key(), stateful_rng().key())
    with pytest.raises(ft.errors.ArgumentError, match="no seed"):
        ft.jit(lambda: stateful_rng().uniform())()
