"""Tests of the meanings of primitives themselves: published test vectors, and collectives inside vmap."""

import numpy as np
import pytest

import functorch_like as ft
from functorch_like import primitives
from functorch_like.errors import ArgumentError

# Random123 (Salmon et al., SC 2011), kat_vectors, threefry2x32 with 20 rounds: key, counter, result.
THREEFRY = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]


@pytest.mark.parametrize(("key", "counter", "want"), THREEFRY)
def test_threefry_gives_the_published_bits(key, counter, want):
    words = [np.full((2,), word, np.uint32) for word in (*key, *counter)]
    for got in (primitives.threefry2x32.ref(*words), primitives.threefry2x32(*words)):
        assert [int(np.asarray(bits)[1]) for bits in got] == list(want)


# The same, philox4x32 with 10 rounds: key, counter, result.
PHILOX = [
    ((0, 0), (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 4, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0xA4093822, 0x299F31D0),
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("key", "counter", "want"), PHILOX)
def test_philox_gives_the_published_bits(key, counter, want):
    words = [np.full((2,), word, np.uint32) for word in (*key, *counter)]
    for got in (primitives.philox4x32.ref(*words), primitives.philox4x32(*words)):
        assert [int(np.asarray(bits)[1]) for bits in got] == list(want)


@pytest.mark.parametrize(("algorithm", "words"), [("three_fry", THREEFRY[0][2]), ("philox", PHILOX[0][2])])
def test_the_generator_is_the_cipher_of_its_counter(algorithm, words):
    state, bits = primitives.rng_bit_generator(
        np.zeros(2, np.uint64), shape=(len(words),), dtype=np.dtype(np.uint32), algorithm=algorithm
    )
    assert np.asarray(bits).tolist() == list(words)
    assert np.asarray(state).tolist() == [0, 1]


X = np.array([[1.0, 4.0], [5.0, 2.0], [3.0, 2.0]], np.float32)


@pytest.mark.parametrize(
    ("primitive", "want"), [("psum", X.sum(0)), ("pmax", X.max(0)), ("pmin", X.min(0))], ids=["psum", "pmax", "pmin"]
)
def test_a_collective_reduces_over_the_axis_it_names(primitive, want):
    over = lambda x: getattr(primitives, primitive)(x, axis_name="i")
    np.testing.assert_array_equal(ft.vmap(over, axis_name="i")(X), np.broadcast_to(want, X.shape))
    nested = ft.vmap(ft.vmap(over, axis_name="j"), axis_name="i")  # the inner axis has no effect
    np.testing.assert_array_equal(nested(X), np.broadcast_to(want, X.shape))
    np.testing.assert_array_equal(ft.jit(nested)(X), np.broadcast_to(want, X.shape))


def test_psum_of_what_is_not_mapped_counts_the_axis():
    one = np.ones((), np.float32)
    assert np.asarray(ft.vmap(lambda x: primitives.psum(one, axis_name="i"), axis_name="i")(X)).tolist() == [3.0] * 3


def test_axis_index_counts():
    assert np.asarray(ft.vmap(lambda x: primitives.axis_index(axis_name="i"), axis_name="i")(X)).tolist() == [0, 1, 2]


def test_the_extreme_over_an_axis_shares_its_derivative_among_ties():
    loss = lambda x: primitives.reduce_sum(
        ft.vmap(lambda v: primitives.pmin(v, axis_name="i"), axis_name="i")(x), axes=(0, 1)
    )
    np.testing.assert_allclose(ft.grad(loss)(X), [[3, 0], [0, 1.5], [0, 1.5]])


def test_an_unbound_axis_is_named_with_those_that_are_bound():
    with pytest.raises(ArgumentError) as caught:
        ft.vmap(lambda x: primitives.psum(x, axis_name="rows"), axis_name="batch")(X)
    assert "'rows'" in str(caught.value) and "'batch'" in str(caught.value)
