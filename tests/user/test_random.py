"""Random numbers: correct distributions, the same stream everywhere, keys that do not collide."""

import numpy as np
import pytest
from scipy import stats

import functorch_like as ft
from functorch_like import backends, random
from functorch_like.errors import ArgumentError, ConcretizationError, DtypeError, NumberError, ShapeError

KEY = random.key(2024)
MANY = 20_000
#: Bound of p-values. Seeds are fixed; a correct generator falls below it in one of ten thousand tests.
ALPHA = 1e-4


def fits(sample, cdf):
    return stats.kstest(np.asarray(sample, np.float64).ravel(), cdf).pvalue > ALPHA


# ------------------------------------------------------------------------------------------------------ distributions
CONTINUOUS = {
    "uniform": "uniform",
    "normal": "norm",
    "exponential": "expon",
    "gumbel": "gumbel_r",
    "laplace": "laplace",
    "logistic": "logistic",
    "cauchy": "cauchy",
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "cdf"), CONTINUOUS.items())
def test_continuous_distributions(name, cdf, dtype):
    for seed in (0, 1):
        sample = getattr(random, name)(random.key(seed), (MANY,), dtype)
        assert sample.dtype == dtype and sample.shape == (MANY,)
        assert fits(sample, cdf)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_small_floats(name, dtype):
    sample = getattr(random, name)(KEY, (MANY,), dtype)
    assert sample.dtype.name == dtype
    exact = np.sort(np.asarray(getattr(stats, CONTINUOUS[name])().ppf((np.arange(MANY) + 0.5) / MANY)))
    middle = slice(MANY // 20, -MANY // 20)
    ordered = np.sort(np.asarray(sample, np.float64))
    np.testing.assert_allclose(ordered[middle], exact[middle], rtol=0.06, atol=0.06)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_uniform_numbers_stay_below_one(dtype):
    x = np.asarray(random.uniform(KEY, (300_000,), dtype), np.float64)
    assert x.min() >= 0 and x.max() < 1
    assert len(np.unique(x)) > 250


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("bounds", [(1000.0, 1001.0), (-1.0, 0.0), (-1e-4, 1e-4), (0.0, 0.3), (3.0, 3.0)])
def test_uniform_bounds(dtype, bounds):
    low, high = (np.asarray(b, np.dtype(random.uniform(KEY, (), dtype).dtype)).astype(np.float64) for b in bounds)
    x = np.asarray(random.uniform(KEY, (50_000,), dtype, *bounds), np.float64)
    assert (x >= low).all() and ((x < high).all() or low == high)


def test_uniform_takes_arrays_as_bounds():
    low, high = np.arange(3.0), np.arange(3.0)[:, None] + 5
    x = np.asarray(random.uniform(KEY, (1000, 3, 3), minval=low, maxval=high))
    assert (x >= low).all() and (x < high).all()
    np.testing.assert_allclose(x.mean(0), (low + high) / 2, atol=0.3)


@pytest.mark.parametrize("bounds", [(-1.0, 2.0), (1.0, 2.0), (-np.inf, 0.0), (5.0, 6.0), (-0.01, 0.01)])
def test_truncated_normal(bounds):
    x = random.truncated_normal(KEY, *bounds, (MANY,))
    assert fits(x, stats.truncnorm(*bounds).cdf)


def test_tails_of_normal_numbers():
    x = np.asarray(random.normal(KEY, (1_000_000,)), np.float64)
    for z in (2, 3, 4):
        expected = 2 * stats.norm.sf(z) * x.size
        assert abs((abs(x) > z).sum() - expected) < 5 * np.sqrt(expected)
    assert np.isfinite(x).all() and abs(x.mean()) < 5e-3 and abs(x.var() - 1) < 1e-2 and abs((x**3).mean()) < 2e-2


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 1.0])
def test_bernoulli(p):
    x = np.asarray(random.bernoulli(KEY, p, (MANY,)))
    assert x.dtype == bool and abs(x.mean() - p) < 5 * np.sqrt(p * (1 - p) / MANY) + 1e-12


def test_bernoulli_takes_arrays():
    assert random.bernoulli(KEY, np.array([0.0, 1.0])).tolist() == [False, True]
    with pytest.raises(DtypeError, match="takes floats as p"):
        random.bernoulli(KEY, 2)


def test_rademacher():
    x = np.asarray(random.rademacher(KEY, (MANY,), "int8"))
    assert x.dtype == np.int8 and set(x) == {-1, 1} and abs(x.mean()) < 5 / np.sqrt(MANY)
    assert set(np.asarray(random.rademacher(KEY, (50,), "float32"))) == {-1.0, 1.0}


# ----------------------------------------------------------------------------------------------------------- integers
@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("int32", -3, 4), ("int32", 0, 1000), ("uint8", 0, 256), ("int8", -128, 128), ("uint16", 5, 12),
        ("int64", -5, 2), ("int64", -(2**63), -(2**63) + 11), ("uint32", 2**32 - 9, 2**32),
        ("uint64", 2**63, 2**63 + 7),
    ],
)  # fmt: skip
def test_randint(dtype, low, high):
    x = np.asarray(random.randint(KEY, (50_000,), low, high, dtype))
    assert x.dtype == dtype
    counts = np.bincount((x.astype(object) - low).astype(int), minlength=high - low)
    assert len(counts) == high - low and stats.chisquare(counts).pvalue > ALPHA


@pytest.mark.parametrize("low", [0, -(2**62)])
@pytest.mark.parametrize("span", [2**64, 3 * 2**62, 2**40 + 1])
def test_randint_of_large_spans(low, span):
    dtype = "int64" if low < 0 else "uint64"
    if low + span > 2 ** (63 if low < 0 else 64):
        low = -(2**63)
    x = (np.asarray(random.randint(KEY, (MANY,), low, low + span, dtype)).astype(object) - low) / span
    assert fits(x, "uniform")


def test_high_words_of_products():
    words = np.array([0, 1, 2**32 - 1, 2**32, 2**64 - 1, 0x123456789ABCDEF0], np.uint64)
    x, y = (v.ravel() for v in np.meshgrid(words, words))
    exact = [(int(a) * int(b)) >> 64 for a, b in zip(x, y, strict=True)]
    assert np.asarray(ft.jit(random.discrete._high_word)(x, y)).tolist() == exact


def test_randint_of_nothing_gives_its_lower_bound():
    assert random.randint(KEY, (2,), 5, 5).tolist() == [5, 5]
    assert random.randint(KEY, (2,), 5, 3).tolist() == [5, 5]
    assert random.randint(KEY, (2,), 0, 0, "uint8").tolist() == [0, 0]
    assert random.randint(KEY, (3,), np.array([0, 9, 5]), np.array([1, 10, 2])).tolist() == [0, 9, 5]


def test_randint_refuses_what_does_not_fit():
    with pytest.raises(NumberError, match="300"):
        random.randint(KEY, (2,), 300, 301, "int8")
    with pytest.raises(NumberError, match="out of bounds"):
        random.randint(KEY, (2,), 0, 300, "int8")
    with pytest.raises(DtypeError, match="minval"):
        random.randint(KEY, (2,), 0.5, 3)
    with pytest.raises(DtypeError, match="float32"):
        random.randint(KEY, (2,), 0, 3, "float32")


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_bits(width):
    x = np.asarray(random.bits(KEY, (9_999,), f"uint{width}"))
    assert x.dtype == f"uint{width}" and x.shape == (9_999,)
    ones = np.array([(x >> np.array(i, x.dtype)) & np.array(1, x.dtype) for i in range(width)]).astype(int)
    assert (abs(ones.mean(1) - 0.5) < 5 * 0.5 / np.sqrt(x.size)).all()
    across = np.corrcoef(ones) - np.eye(width)
    assert abs(across).max() < 5.5 / np.sqrt(x.size)
    along = [np.corrcoef(row[:-1], row[1:])[0, 1] for row in ones]
    assert max(map(abs, along)) < 5.5 / np.sqrt(x.size)


def test_bits_are_those_of_the_cipher():
    from functorch_like.primitives import threefry2x32

    words = threefry2x32.ref(*(np.uint32(w) for w in (0, 7, 0, 0)))
    assert random.bits(random.key(7), 2).tolist() == [int(w) for w in words]
    assert random.bits(random.key(7), (), "uint64").item() == (int(words[0]) << 32) + int(words[1])


# --------------------------------------------------------------------------------------------------------------- keys
def test_seeds():
    assert random.key(-1).tolist() == [2**32 - 1] * 2 and random.key(2**40 + 3).tolist() == [256, 3]
    for seed, dtype in [(7, "int32"), (-7, "int64"), (-7, "int8"), (2**40, "int64"), (200, "uint8")]:
        array = ft.numpy.asarray(seed, dtype)
        assert random.key(array).tolist() == random.key(seed).tolist() == ft.jit(random.key)(array).tolist()
    assert random.PRNGKey(3).tolist() == random.key_data(random.key(3)).tolist() == [0, 3]
    assert len({tuple(np.asarray(random.key(s))) for s in range(-500, 500)}) == 1000


def test_folds_of_different_numbers_differ():
    keys = {tuple(np.asarray(random.fold_in(KEY, i))) for i in (*range(-50, 50), 2**32, 2**33, 2**63)}
    assert len(keys) == 103
    assert random.fold_in(KEY, -1).tolist() == ft.jit(random.fold_in)(KEY, ft.numpy.asarray(-1)).tolist()


def test_splits_begin_alike_and_never_meet():
    assert random.split(KEY, 7)[:3].tolist() == random.split(KEY, 3).tolist()
    assert random.split(KEY, (2, 3)).reshape(6, 2).tolist() == random.split(KEY, 6).tolist()
    children = {tuple(k) for k in np.asarray(random.split(KEY, 5000))}
    words = np.asarray(random.bits(KEY, 10_000)).tolist()
    assert len(children) == 5000 and not children & set(zip(words[::2], words[1::2], strict=True))


def test_streams_of_split_keys_are_independent():
    draws = np.asarray(ft.vmap(lambda k: random.normal(k, (2000,)))(random.split(KEY, 20)))
    across = np.corrcoef(draws) - np.eye(20)
    assert abs(across).max() < 5 / np.sqrt(2000)
    shifted = np.corrcoef(draws[:, :-1], draws[:, 1:])[:20, 20:]
    assert abs(shifted).max() < 5 / np.sqrt(2000)
    assert fits(draws.sum(0) / np.sqrt(20), "norm")


def test_neighbouring_seeds_are_independent():
    draws = np.asarray(ft.vmap(lambda s: random.uniform(random.key(s), (500,)))(ft.numpy.arange(40)))
    assert abs(np.corrcoef(draws) - np.eye(40)).max() < 5.5 / np.sqrt(500)


FUNCTIONS = {
    "bits8": lambda k: random.bits(k, (7,), "uint8"),
    "bits64": lambda k: random.bits(k, (3,), "uint64"),
    "uniform": lambda k: random.uniform(k, (2, 3), minval=-1.0),
    "normal": lambda k: random.normal(k, (5,)),
    "truncated_normal": lambda k: random.truncated_normal(k, -1.0, 1.0, (3,)),
    "randint": lambda k: random.randint(k, (3,), 0, 9),
    "randint64": lambda k: random.randint(k, (3,), 0, 9, "int64"),
    "bernoulli": lambda k: random.bernoulli(k, 0.3, (9,)),
    "permutation": lambda k: random.permutation(k, 7),
    "independent": lambda k: random.permutation(k, np.arange(12).reshape(3, 4), 1, independent=True),
    "choice": lambda k: random.choice(k, 10, (3,), p=np.arange(10.0)),
    "choice once": lambda k: random.choice(k, 10, (3,), False, p=np.arange(10.0)),
    "categorical": lambda k: random.categorical(k, np.zeros((2, 4))),
    "split": lambda k: random.split(k, 3),
    "fold_in": lambda k: random.fold_in(k, 3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_stream_is_the_same_everywhere(name):
    f, keys = FUNCTIONS[name], random.split(KEY, 3)
    eager = np.stack([np.asarray(f(k)) for k in keys])
    for transformed in (ft.vmap(f), ft.jit(ft.vmap(f)), ft.vmap(ft.jit(f))):
        np.testing.assert_array_equal(np.asarray(transformed(keys)), eager)
    np.testing.assert_array_equal(np.asarray(ft.jit(f)(keys[0])), eager[0])


def test_derivatives_pass_through_what_scales():
    slope = ft.grad(lambda s: ft.numpy.sum(s * random.normal(KEY, (5,))))(2.0)
    np.testing.assert_allclose(slope, np.asarray(random.normal(KEY, (5,))).sum(), rtol=1e-6)
    width = ft.grad(lambda high: ft.numpy.sum(random.uniform(KEY, (5,), maxval=high)))(2.0)
    np.testing.assert_allclose(width, np.asarray(random.uniform(KEY, (5,))).sum(), rtol=1e-5)


# ----------------------------------------------------------------------------------------------------------- sampling
def test_permutations_are_equally_likely():
    drawn = ft.vmap(lambda k: random.permutation(k, 4))(random.split(KEY, 24_000))
    kinds, counts = np.unique(np.asarray(drawn), axis=0, return_counts=True)
    assert len(kinds) == 24 and stats.chisquare(counts).pvalue > ALPHA


def test_permutations_of_arrays():
    x = np.arange(12.0).reshape(3, 4)
    whole = np.asarray(random.permutation(KEY, x, axis=1))
    assert sorted(map(tuple, whole.T)) == sorted(map(tuple, x.T))
    each = np.asarray(random.permutation(KEY, np.tile(np.arange(50), (3, 1)), axis=-1, independent=True))
    assert (np.sort(each, 1) == np.arange(50)).all() and not (each[0] == each[1]).all()
    assert random.permutation(KEY, np.zeros((0, 3))).shape == (0, 3) and random.permutation(KEY, 0).shape == (0,)


P = np.array([0.0, 0.1, 0.2, 0.0, 0.3, 0.4, 0.0, 0.0])


def test_choice_by_weights():
    counts = np.bincount(np.asarray(random.choice(KEY, 8, (MANY,), p=3 * P)), minlength=8)
    assert not counts[P == 0].any() and stats.chisquare(counts[P > 0], MANY * P[P > 0]).pvalue > ALPHA
    for weights in (P > 0, 5 * (P > 0)):  # of any real dtype
        counts = np.bincount(np.asarray(random.choice(KEY, 8, (MANY,), p=weights)), minlength=8)
        assert not counts[P == 0].any() and stats.chisquare(counts[P > 0]).pvalue > ALPHA
    with pytest.raises(DtypeError, match="takes real p"):
        random.choice(KEY, 8, p=P * 1j)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 1000])
def test_choice_of_any_number(n):
    weights = np.random.default_rng(0).uniform(0, 1, n).astype(np.float32)
    weights[::3] *= n < 7
    weights = weights if weights.sum() else np.ones(n, np.float32)
    x = np.asarray(random.choice(KEY, n, (MANY,), p=weights))
    expected = MANY * weights.astype(np.float64) / weights.sum()
    kept = expected > 0
    counts = np.bincount(x, minlength=n)
    assert not counts[~kept].any()
    assert (
        kept.sum() == 1 or stats.chisquare(counts[kept], expected[kept] * (MANY / expected[kept].sum())).pvalue > ALPHA
    )


def test_choice_without_replacement():
    draws = np.asarray(ft.vmap(lambda k: random.choice(k, 8, (2,), False, p=P))(random.split(KEY, MANY)))
    assert (draws[:, 0] != draws[:, 1]).all()
    first = np.bincount(draws[:, 0], minlength=8)
    assert stats.chisquare(first[P > 0], MANY * P[P > 0]).pvalue > ALPHA
    pairs = np.zeros((8, 8))
    np.add.at(pairs, (draws[:, 0], draws[:, 1]), 1)
    expected = MANY * P[:, None] * P / (1 - P[:, None]) * (1 - np.eye(8))
    likely = expected > 0
    assert stats.chisquare(pairs[likely], expected[likely]).pvalue > ALPHA
    assert sorted(random.choice(KEY, np.array([3, 1, 2]), (3,), False).tolist()) == [1, 2, 3]


def test_choice_from_arrays():
    x = np.arange(24).reshape(2, 3, 4)
    assert random.choice(KEY, x, (5, 2), axis=1).shape == (2, 5, 2, 4)
    taken = np.asarray(random.choice(KEY, x, axis=-1))
    assert taken.shape == (2, 3) and any((taken == x[..., i]).all() for i in range(4))


def test_categorical():
    p = np.array([0.1, 0.2, 0.7], np.float32)
    counts = np.bincount(np.asarray(random.categorical(KEY, np.log(p), shape=(MANY,))))
    assert stats.chisquare(counts, MANY * p.astype(float) / p.sum(dtype=float)).pvalue > ALPHA
    with np.errstate(divide="ignore"):
        sure = np.log(np.eye(4, dtype=np.float32))
    assert random.categorical(KEY, sure).tolist() == [0, 1, 2, 3]
    assert random.categorical(KEY, sure[:, :2], axis=0, shape=(5, 2)).tolist() == [[0, 1]] * 5


# ------------------------------------------------------------------------------------------------------------- errors
@pytest.mark.parametrize("key", [0, 1.5, None, np.zeros(2), np.zeros(2, np.int32)])
def test_what_is_no_key(key):
    for f in (random.normal, random.split, random.bits):
        with pytest.raises(DtypeError, match=r"random\.key\(seed\)"):
            f(key)


def test_arrays_of_keys_are_mapped():
    with pytest.raises(ShapeError, match="vmap"):
        random.normal(random.split(KEY))
    with pytest.raises(ShapeError, match=r"u32\[3\]"):
        random.normal(np.zeros(3, np.uint32))


def test_wrong_arguments():
    with pytest.raises(NumberError, match="64 bits"):
        random.key(2**64)
    with pytest.raises(DtypeError, match="integer"):
        random.key(1.5)
    with pytest.raises(ArgumentError, match="4 of 3"):
        random.choice(KEY, 3, (4,), replace=False)
    with pytest.raises(ShapeError, match="does not broadcast"):
        random.uniform(KEY, (3,), minval=np.zeros((2, 3)))
    with pytest.raises(ShapeError, match="negative"):
        random.normal(KEY, (-1,))
    with pytest.raises(ConcretizationError, match="static_argnums"):
        ft.jit(lambda n: random.normal(KEY, (n,)))(3)
    with pytest.raises(DtypeError, match="int32"):
        random.normal(KEY, (3,), "int32")


def test_shapes_of_all_sorts():
    assert random.normal(KEY, [2, 3]).shape == (2, 3) and random.normal(KEY, 3).shape == (3,)
    assert random.normal(KEY).shape == () and random.normal(KEY, (0, 3)).shape == (0, 3)
    assert random.normal(KEY, np.array([2, 1])).shape == (2, 1)


@pytest.mark.parametrize(("low", "high", "dtype"), [(0, 128, "int8"), (5, 300, "int8"), (-300, 300, "int8"),
                                                    (10, 256, "uint8"), (0, 70000, "uint16")])  # fmt: skip
@pytest.mark.parametrize("numbers", ["native", "jax"])
def test_arrays_of_bounds_beyond_the_dtype_include_its_last_integer(low, high, dtype, numbers):
    info = np.iinfo(dtype)
    with backends.random.flags(numbers=numbers):
        bounds = np.array(low, np.int32), np.array(high, np.int32)
        drawn = np.asarray(random.randint(random.key(0), (40 * (info.max - info.min),), *bounds, dtype=dtype))
    first = max(low, info.min)
    assert drawn.dtype == dtype and drawn.min() == first and drawn.max() == info.max
    assert stats.chisquare(np.bincount(drawn.astype(int) - first)).pvalue > ALPHA


@pytest.mark.parametrize("numbers", ["native", "jax"])
@pytest.mark.parametrize(
    ("dtype", "bounds"),
    [("int8", "uint16"), ("uint8", "int8"), ("int64", "uint64"), ("uint64", "int64"), ("int32", "int64"),
     ("uint32", "int64")],
)  # fmt: skip
def test_each_pair_of_bounds_in_arrays_of_another_dtype(dtype, bounds, numbers):
    own, info = np.iinfo(bounds), np.iinfo(dtype)
    ends = [e + k for e in (own.min, own.max, info.min, info.max, 0) for k in range(-3, 4)]
    ends = np.array([e for e in ends if own.min <= e <= own.max], bounds)
    low, high = (x.ravel() for x in np.meshgrid(ends, ends))
    with backends.random.flags(numbers=numbers):
        drawn = np.asarray(random.randint(random.key(1), (200, low.size), low, high, dtype=dtype))
        inside = ft.jit(lambda low, high: random.randint(random.key(1), (200, low.size), low, high, dtype=dtype))
        np.testing.assert_array_equal(inside(low, high), drawn)
    for column, a, b in zip(drawn.T.tolist(), low.tolist(), high.tolist(), strict=True):
        first, last = max(min(a, info.max), info.min), min(b - 1, info.max)
        last = max(first, last)
        assert first <= min(column) and max(column) <= last, (a, b)
        if last - first < 10:
            assert set(column) == set(range(first, last + 1)), (a, b)
