"""The cipher of random numbers on small arrays: one kernel, whose words all readers share."""

import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax


def steps(key, *state):
    """Return the parts of a state after three steps, each of which accepts them all, or none, by a random number."""
    for _ in range(3):
        key, first, second = ft.random.split(key, 3)
        accepted = ft.random.uniform(first) < 0.7
        moved = [x + ft.random.normal(second) for x in state]
        state = [fnp.where(accepted, y, x) for x, y in zip(state, moved, strict=True)]
    return *state, key


PARTS = [fnp.full(k + 1, float(k)) for k in range(6)]


def test_readers_of_words_do_not_compute_the_cipher_again():
    text = ft.jit(steps).lower(ft.random.key(0), *PARTS).compile().as_text()
    ciphers = 3 * 3  # of each step: the split, and two draws
    assert text.count(" xor(") <= ciphers * 50  # one for each of two words has 22


def test_numbers_are_those_of_single_calls():
    key = ft.random.key(3)
    *got, rest = ft.jit(steps)(key, *PARTS)
    with ft.disable_jit():
        *expected, left = steps(key, *PARTS)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert np.asarray(rest).tolist() == np.asarray(left).tolist()


def test_large_draws_are_still_fused_with_what_reads_them():
    text = ft.jit(lambda key: fnp.exp(ft.random.uniform(key, (5000,)))).lower(ft.random.key(0)).compile().as_text()
    assert "inlineable" not in text


def test_loops_that_are_one_kernel_have_the_cipher_inside():
    def walk(key):
        def step(carry, _):
            key, x = carry
            key, draw = ft.random.split(key)
            return (key, x + ft.random.uniform(draw)), None

        return lax.scan(step, (key, fnp.zeros(())), None, length=50)[0][1]

    key, expected = ft.random.key(1), 0.0
    got = float(ft.jit(walk)(key))
    for _ in range(50):
        key, draw = ft.random.split(key)
        expected += float(ft.random.uniform(draw))
    np.testing.assert_allclose(got, expected, rtol=1e-5)
    assert ft.jit(walk).lower(ft.random.key(1)).as_text().count('inlineable = "false"') <= 1  # the loop
