"""Keys of four words, whose bits come from XLA's generator: words as in JAX 0.10.2, and distributions."""

import numpy as np
import pytest

import functorch_like as ft
from functorch_like import random
from functorch_like.errors import ArgumentError, ShapeError

SEED = 2**40 + 7
# Results of JAX 0.10.2 on CPUs for key(SEED, impl="rbg") and the second of two keys split from it.
SPLITS = [[2775665504, 110793307, 2775665504, 110793307], [1038896816, 4099356745, 1038896816, 4099356745],
          [980683688, 2277133135, 980683688, 2277133135]]  # fmt: skip
FOLDED = {
    5: [3418116641, 3417061141, 3418116641, 3417061141],
    2**32 - 1: [3244401132, 234517132, 3244401132, 234517132],
}
BITS = {
    "uint8": [[221, 117, 72], [204, 192, 178]],
    "uint16": [[733, 53365, 31816], [22220, 45504, 12210]],
    "uint32": [[3544449757, 509857909, 3477765192], [3604109004, 4291473856, 1116221362]],
    "uint64": [
        [2189823048306393821, 15479530306876898376, 4794134249178051008],
        [16263549749323707067, 12156273818533767121, 7410390974163348261],
    ],
}


def test_words_are_those_of_jax():
    key = random.key(SEED, impl="rbg")
    assert key.tolist() == [256, 7, 256, 7] == ft.jit(lambda s: random.key(s, impl="rbg"))(np.int64(SEED)).tolist()
    assert random.split(key, 3).tolist() == SPLITS and random.split(key, (1, 2)).tolist() == [SPLITS[:2]]
    second = random.split(key)[1]
    assert {n: random.fold_in(second, n).tolist() for n in FOLDED} == FOLDED
    assert {t: random.bits(second, (2, 3), t).tolist() for t in BITS} == BITS
    assert ft.jit(lambda k: random.fold_in(random.bits(k, 4), 5))(key).shape == (4,)


def test_questions_about_keys_of_four_words():
    key = random.key(7, impl="rbg")
    assert random.key_impl(key) == "rbg" and random.key_impl(random.key(7)) == "threefry2x32"
    assert random.wrap_key_data(random.key_data(key), impl="rbg").tolist() == key.tolist()
    with pytest.raises(ArgumentError, match="give 4 words"):
        random.wrap_key_data(random.key(7), impl="rbg")
    with pytest.raises(ArgumentError, match=r"(?s)there is no generator 'mt19937'.*'threefry2x32', 'rbg'"):
        random.key(7, impl="mt19937")
    with pytest.raises(ArgumentError, match="use 'rbg'"):
        random.key(7, impl="unsafe_rbg")
    with pytest.raises(ShapeError, match="vmap"):
        random.normal(random.split(key), (3,))


@pytest.mark.parametrize("name", ["bits", "normal", "gamma", "poisson", "permutation"])
def test_a_mapped_key_gives_what_it_gives_alone(name):
    keys = random.split(random.key(3, impl="rbg"), 3)
    draw = {
        "bits": lambda k: random.bits(k, (5,)),
        "normal": lambda k: random.normal(k, (5,)),
        "gamma": lambda k: random.gamma(k, 0.7, (5,)),
        "poisson": lambda k: random.poisson(k, 30.0, (5,)),
        "permutation": lambda k: random.permutation(k, 6),
    }[name]
    alone = np.stack([draw(k) for k in keys])
    for mapped in (ft.vmap(draw), ft.jit(ft.vmap(draw)), lambda k: ft.lax.map(draw, k)):
        np.testing.assert_allclose(mapped(keys), alone, rtol=2e-6)
    different = ft.vmap(lambda x: random.bits(keys[0]) + x, randomness="different")(np.zeros(3, np.uint32))
    assert len(set(different.tolist())) == 3


def test_distributions_have_their_moments():
    n, key = 20_000, random.key(11, impl="rbg")
    for draw, mean, deviation in (
        (random.normal, 0.0, 1.0),
        (random.uniform, 0.5, 12**-0.5),
        (random.exponential, 1.0, 1.0),
        (lambda k, n: random.gamma(k, 2.0, n), 2.0, 2**0.5),
        (lambda k, n: random.poisson(k, 30.0, n), 30.0, 30**0.5),
        (lambda k, n: random.beta(k, 2.0, 2.0, n), 0.5, 20**-0.5),
        (lambda k, n: random.randint(k, n, 0, 10), 4.5, 8.25**0.5),
    ):
        x = np.asarray(draw(key, (n,)), np.float64)
        assert abs(x.mean() - mean) < 5 * deviation / n**0.5 and abs(x.std() / deviation - 1) < 0.06
    both = np.stack([random.normal(k, (n,)) for k in random.split(key)])
    assert abs(np.corrcoef(both)[0, 1]) < 5 / n**0.5
