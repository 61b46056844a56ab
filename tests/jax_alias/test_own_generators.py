"""Generators of random numbers that programs define by functions of keys, and the one whose state no program sees."""

#: A generator that counts, in NumPy: bits are i * odd + key, of a width; keys have shape (3,).
COUNTING = """
import jax, jax.numpy as jnp, numpy as np
import jax.extend.random as jer

ODD = 2654435761

def seed(s):
    assert s.shape == () and s.dtype == "int32"
    return jnp.stack([s.astype("uint32"), jnp.uint32(1), jnp.uint32(2)])

def split(key, shape):
    assert key.shape == (3,) and type(shape) is tuple
    count = jnp.arange(int(np.prod(shape)), dtype="uint32").reshape(*shape, 1)
    return key * jnp.uint32(5) + count

def random_bits(key, width, shape):
    count = jnp.arange(int(np.prod(shape)), dtype="uint32").reshape(shape)
    return (count * jnp.uint32(ODD) + key[0]).astype(f"uint{width}")

def fold_in(key, number):
    assert key.shape == (3,) and number.dtype == "uint32"
    return key + number

impl = jer.define_prng_impl(
    key_shape=(3,), seed=seed, split=split, random_bits=random_bits, fold_in=fold_in, name="counting", tag="cnt")

def bits(key, n, width=32):
    return (np.arange(n, dtype=np.uint32) * np.uint32(ODD) + np.uint32(key)).astype(f"uint{width}")
"""


def program(text):
    """Return a program of the generator and a text of four spaces' indentation."""
    return COUNTING + "\n".join(line.removeprefix("    ") for line in text.splitlines())


def test_keys_of_a_generator_that_is_defined_by_functions(run):
    text = """
    key = jax.random.key(7, impl=impl)
    assert key.shape == () and jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and key.dtype.itemsize == 12
    np.testing.assert_array_equal(jax.random.key_data(key), [7, 1, 2])
    assert jax.random.key_data(jax.random.key(-1, impl=impl))[0] == 2**32 - 1
    np.testing.assert_array_equal(jax.random.PRNGKey(3, impl=impl), [3, 1, 2])
    np.testing.assert_array_equal(
        jax.random.key_data(jax.random.split(key, (2, 2))), np.arange(4).reshape(2, 2, 1) + [35, 5, 10])
    np.testing.assert_array_equal(jax.random.key_data(jax.random.fold_in(key, 4)), [11, 5, 6])
    words = np.arange(6, dtype=np.uint32).reshape(2, 3)
    again = jax.random.wrap_key_data(words, impl=impl)
    assert again.shape == (2,) and again.dtype == key.dtype != jax.random.key(0).dtype
    np.testing.assert_array_equal(jax.random.key_data(again[::-1]), words[::-1])
    assert jax.random.key_impl(key) == impl and jax.random.key(1, impl=key.dtype).dtype == key.dtype
    seeds = jer.random_seed(np.arange(6, dtype=np.int32).reshape(2, 3), impl=impl)
    assert seeds.shape == (2, 3) and jax.random.key_data(seeds)[1, 2, 0] == 5
    assert jer.seed_with_impl(impl, 7) == key and jnp.stack([key, key]).shape == (2,)
    print(key.dtype, repr(again), impl)
    """
    assert run(program(text)).splitlines() == [
        "key<cnt> Array((2,), dtype=key<cnt>) overlaying:",
        "[[0 1 2]",
        " [3 4 5]] cnt",
    ]


def test_numbers_of_a_generator_that_is_defined_by_functions(run):
    text = """
    key = jax.random.key(7, impl=impl)
    for way in (lambda f: f, jax.jit):
        for width in (8, 16, 32):
            drawn = way(lambda key: jax.random.bits(key, (2, 3), f"uint{width}"))(key)
            np.testing.assert_array_equal(drawn, bits(7, 6, width).reshape(2, 3))
        uniform = way(lambda key: jax.random.uniform(key, (5,)))(key)
        np.testing.assert_array_equal(uniform, (bits(7, 5) >> 9) / np.float32(2**23))
        keys = jax.random.split(key, 3)
        mapped = way(jax.vmap(lambda key: jax.random.bits(key, (4,))))(keys)
        np.testing.assert_array_equal(mapped, [bits(35 + i, 4) for i in range(3)])
    last, each = jax.lax.scan(lambda key, _: (jax.random.split(key, 1)[0], jax.random.bits(key)), key, None, length=3)
    np.testing.assert_array_equal(each, [7, 35, 175])
    assert jax.random.key_data(last)[0] == 875
    """
    run(program(text))


def test_a_generator_of_the_package_as_functions_gives_its_numbers(run):
    text = """
    theirs = jer.threefry_prng_impl
    own = jer.define_prng_impl(
        key_shape=(1, 2), seed=lambda s: theirs.seed(s)[None], name="threefry2x32",  # names need not be unique
        split=lambda key, shape: theirs.split(key[0], shape)[..., None, :],
        random_bits=lambda key, width, shape: theirs.random_bits(key[0], width, shape),
        fold_in=lambda key, number: theirs.fold_in(key[0], number)[None])
    a, b = jax.random.key(3, impl=own), jax.random.key(3)
    assert a.dtype != b.dtype and own != theirs
    draws = {
        "normal": (), "exponential": (), "gumbel": (), "bits": (),
        "gamma": (2.0,), "poisson": (3.0,), "beta": (2.0, 3.0),
    }
    for name, parameters in draws.items():
        draw = lambda key: getattr(jax.random, name)(key, *parameters, shape=(5,))
        np.testing.assert_array_equal(draw(a), draw(b), err_msg=name)
    np.testing.assert_array_equal(jax.random.permutation(a, 9), jax.random.permutation(b, 9))
    np.testing.assert_array_equal(jax.random.randint(a, (3,), 0, 1000), jax.random.randint(b, (3,), 0, 1000))
    np.testing.assert_array_equal(
        jax.random.key_data(jax.random.fold_in(a, 5))[0], jax.random.key_data(jax.random.fold_in(b, 5)))
    for impl, words in ((jer.rbg_prng_impl, 4), (jer.unsafe_rbg_prng_impl, 4), (theirs, 2)):
        key = jax.random.key(9, impl=impl)
        assert impl.key_shape == (words,) and jax.random.key_impl(key) == impl.name
        data = jax.random.key_data(key)
        np.testing.assert_array_equal(impl.seed(9), data)
        np.testing.assert_array_equal(impl.split(data, (2,)), jax.random.key_data(jax.random.split(key)))
        np.testing.assert_array_equal(impl.fold_in(data, 4), jax.random.key_data(jax.random.fold_in(key, 4)))
        np.testing.assert_array_equal(impl.random_bits(data, 16, (3,)), jax.random.bits(key, (3,), "uint16"))
    one = [jnp.uint32([n]) for n in (0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3)]
    print(*(hex(int(word[0])) for word in jer.threefry2x32_p.bind(*one)))  # known answers of the authors
    """
    assert run(program(text)) == "0xc4923a9c 0x483df7a0"


def test_faults_of_functions_of_keys_are_named(run):
    text = """
    functions = {"seed": seed, "split": split, "random_bits": random_bits, "fold_in": fold_in}
    for change in (
        {"seed": lambda s: jnp.zeros(4, "uint32")},
        {"split": lambda key, shape: jnp.zeros((*shape, 3), "int32")},
        {"random_bits": lambda key, width, shape: jnp.zeros(shape, "uint8")},
        {"key_shape": (0,)},
    ):
        try:
            made = jer.define_prng_impl(**{"key_shape": (3,), **functions, **change, "name": "bad"})
            key = jax.random.key(0, impl=made)
            jax.random.split(key)
            jax.random.bits(key, (2,), "uint32")
        except Exception as error:
            print(type(error).__name__, str(error).splitlines()[0])
    """
    lines = run(program(text)).splitlines()
    assert lines[0] == "ShapeError seed of the generator 'bad' gave u32[4]"
    assert "split of the generator 'bad_" in lines[1] and lines[1].endswith("gave i32[2,3]")
    assert "random_bits of the generator 'bad_" in lines[2] and lines[2].endswith("gave u8[2]")
    assert lines[3] == "ArgumentError define_prng_impl: key_shape=(0,) has no words"


def test_rng_uniform_draws_other_numbers_at_each_call(run):
    text = """
    import jax, jax.extend, jax.numpy as jnp, numpy as np, pytest
    from jax import lax

    x = np.asarray(lax.rng_uniform(2.0, 6.0, (40_000,)), np.float64)
    assert x.min() >= 2 and x.max() < 6 and len(np.unique(x)) > 30_000
    np.testing.assert_allclose([x.mean(), x.var()], [4, 4**2 / 12], rtol=0.02)
    n = lax.rng_uniform(-1, 3, (4000,))
    assert n.dtype == "int32" and set(n.tolist()) == {-1, 0, 1, 2}
    assert lax.rng_uniform(jnp.bfloat16(0), jnp.bfloat16(1), (2, 3)).dtype == "bfloat16"
    assert lax.rng_uniform(0.0, 1.0, (0, 2)).shape == (0, 2)

    @jax.jit
    def f(high):
        equal = [lax.rng_uniform(0.0, high, ()) for _ in range(2)]
        _, ys = lax.scan(lambda c, _: (c, lax.rng_uniform(0.0, high, (3,))), 0, None, length=4)
        return jnp.stack([*equal, *ys.ravel()])

    assert len(set(np.concatenate([f(1.0), f(1.0)]).tolist())) == 28
    for wrong in [(0.0, 1, (2,)), (0j, 1j, (2,)), (jnp.zeros(2), 1.0, (2,)), (0.0, 1.0, (-1,))]:
        with pytest.raises((TypeError, ValueError), match="rng_uniform"):
            lax.rng_uniform(*wrong)
    for transform in (jax.vmap, jax.jacfwd):
        with pytest.raises(NotImplementedError, match="rng_uniform"):
            transform(lambda a: lax.rng_uniform(a, 1.0, ()))(jnp.zeros(2))
    assert jax.extend.core.primitives.rng_uniform_p is lax.rng_uniform_p
    print("done")
    """
    assert run(text) == "done"
