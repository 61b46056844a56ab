"""A block in which no key may be used twice."""

import threading

import numpy as np
import pytest
from support.messages import refusal, says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import random

KEY = random.key(3)
DRAWS = {
    "normal": lambda key: random.normal(key, (2,)),
    "uniform": random.uniform,
    "bernoulli": random.bernoulli,
    "randint": lambda key: random.randint(key, (2,), 0, 9),
    "choice": lambda key: random.choice(key, 5, (2,)),
    "permutation": lambda key: random.permutation(key, 5),
    "gamma": lambda key: random.gamma(key, 2.0),
    "dirichlet": lambda key: random.dirichlet(key, fnp.ones(3)),
    "poisson": lambda key: random.poisson(key, 2.0),
    "multivariate_normal": lambda key: random.multivariate_normal(key, fnp.zeros(2), fnp.eye(2)),
    "categorical": lambda key: random.categorical(key, fnp.zeros(3)),
    "split": random.split,
    "bits": random.bits,
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_second_use_names_both(name):
    with random.check_key_reuse():
        DRAWS[name](random.key(1))
        DRAWS[name](random.key(2))
    with random.check_key_reuse():
        random.exponential(KEY)
        message = refusal(lambda: DRAWS[name](KEY), ft.errors.KeyReuseError, RuntimeError)
    says(message.head, f"random.{name} got a key that random.exponential has used", "test_key_reuse.py")
    says(message.at, "test_key_reuse.py")
    says(message.remedy, "split", "clone")


def test_keys_with_the_same_words_are_one_key():
    with random.check_key_reuse():
        first, _ = random.split(random.key(5))
        random.normal(first)
        refusal(lambda: random.normal(random.split(random.key(5))[0]), ft.errors.KeyReuseError)
        refusal(lambda: random.normal(np.asarray(first)), ft.errors.KeyReuseError)


def test_a_loop_on_one_line():
    with random.check_key_reuse(), pytest.raises(ft.errors.KeyReuseError):
        [random.normal(KEY) for _ in range(2)]


def test_what_does_not_use_a_key():
    with random.check_key_reuse():
        for step in range(3):
            random.normal(random.fold_in(KEY, step))
        random.wrap_key_data(random.key_data(KEY))
        list(ft.data.batches(np.arange(6), 2, random.key(4), epochs=2))
        random.normal(KEY)


def test_a_clone_allows_one_more_use():
    with random.check_key_reuse():
        copy = random.clone(KEY)
        random.normal(KEY)
        assert random.normal(copy) == random.normal(random.clone(KEY))
        refusal(lambda: random.normal(KEY), ft.errors.KeyReuseError)


@pytest.mark.parametrize("typed", [False, True])
def test_traced_keys(typed):
    def twice(key):
        return random.normal(key) + random.normal(key)

    def once(key):
        first, second = random.split(key)
        return random.normal(first) + random.normal(second)

    key = random.key(7, impl="rbg") if typed else KEY
    keys = random.split(key, 4)
    with random.check_key_reuse():
        for transformed in (ft.jit, ft.vmap, lambda f: ft.jit(ft.vmap(f)), lambda f: lambda k: ft.lax.map(f, k)):
            argument = key if transformed is ft.jit else keys
            transformed(once)(argument)
            refusal(lambda t=transformed, a=argument: t(twice)(a), ft.errors.KeyReuseError)


def test_a_branch_takes_its_key_as_an_operand():
    with random.check_key_reuse():
        drawn = ft.lax.cond(fnp.asarray(True), lambda k: random.normal(k), lambda k: random.uniform(k), random.key(8))
    assert drawn == random.normal(random.key(8))


def test_outside_of_a_block_and_in_other_threads_nothing_is_checked():
    random.normal(KEY)
    with random.check_key_reuse():
        random.normal(KEY)
        with random.check_key_reuse():
            random.normal(KEY)
        refusal(lambda: random.normal(KEY), ft.errors.KeyReuseError)
        other = threading.Thread(target=lambda: done.append((random.normal(KEY), random.normal(KEY))))
        done: list[object] = []
        other.start()
        other.join()
        assert done
    random.normal(KEY)
