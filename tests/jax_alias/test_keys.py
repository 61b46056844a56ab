"""Typed keys under the alias: a dtype of their own, leaves of trees, and under every transformation."""


def test_typed_keys_are_arrays_of_their_own_dtype(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from functorch_like import random as plain
    key = jax.random.key(7)
    assert isinstance(key, jax.Array) and key.shape == () and str(key.dtype) == "key<fry>"
    assert jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and jax.dtypes.issubdtype(key.dtype, jax.dtypes.extended)
    assert not jnp.issubdtype(key.dtype, np.integer) and not jnp.issubdtype(np.float32, jax.dtypes.prng_key)
    np.testing.assert_array_equal(jax.random.key_data(key), [0, 7])
    assert jax.random.key_impl(key) == "threefry2x32"
    assert (jax.random.wrap_key_data(jax.random.key_data(key)) == key).item()

    # The numbers are those of the same key as words.
    words = jax.random.PRNGKey(7)
    assert words.dtype == jnp.uint32 and words.shape == (2,)
    for draw in (jax.random.normal, jax.random.uniform, jax.random.exponential, jax.random.bits):
        np.testing.assert_array_equal(draw(key, (3,)), draw(words, (3,)))
    np.testing.assert_array_equal(jax.random.key_data(jax.random.fold_in(key, 3)), plain.fold_in(plain.key(7), 3))
    np.testing.assert_array_equal(jax.random.key_data(jax.random.split(key, (2, 3))), plain.split(plain.key(7), (2, 3)))
    np.testing.assert_array_equal(jax.random.permutation(key, 5), plain.permutation(plain.key(7), 5))
    np.testing.assert_array_equal(jax.random.poisson(key, 3.0, (2,)), plain.poisson(plain.key(7), 3.0, (2,)))
    np.testing.assert_array_equal(jax.random.choice(key, 9, (2,)), plain.choice(plain.key(7), 9, (2,)))

    # The option makes PRNGKey give typed ones.
    with jax.enable_custom_prng(True):
        assert jnp.issubdtype(jax.random.PRNGKey(0).dtype, jax.dtypes.prng_key)
    """
    run(text)


def test_typed_keys_are_moved_as_arrays_are(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    data = jax.random.key_data
    keys = jax.random.split(jax.random.key(0), (2, 3))
    words = np.asarray(data(keys))
    def same(found, wanted):
        np.testing.assert_array_equal(data(found), wanted)
        assert found.dtype == keys.dtype
    same(keys[1], words[1])
    same(keys[0, 2], words[0, 2])
    same(keys[..., 1], words[:, 1])
    same(keys[:, jnp.array([2, 0])], words[:, [2, 0]])
    same(keys.reshape(6), words.reshape(6, 2))
    same(keys.T, words.transpose(1, 0, 2))
    same(keys.ravel()[None], words.reshape(1, 6, 2))
    same(jnp.stack([keys[0], keys[1]], 1), np.stack([words[0], words[1]], 1))
    same(jnp.concatenate([keys, keys], axis=-1), np.concatenate([words, words], axis=1))
    rows = np.array([[True], [False]])
    same(jnp.where(rows, keys, keys[0, 0]), np.where(rows[..., None], words, words[0, 0]))
    same(jnp.broadcast_to(keys[0, 0], (2,)), np.stack([words[0, 0]] * 2))
    same(jax.lax.dynamic_index_in_dim(keys, 1, 1, keepdims=False), words[:, 1])
    same(jax.lax.select(np.ones((2, 3), bool), keys, keys[::-1]), words)
    same(keys.at[0, 1].set(keys[1, 1]), np.array([[words[0, 0], words[1, 1], words[0, 2]], words[1]]))
    assert (len(keys), keys.ndim, keys.size, jnp.shape(keys), keys.ndim) == (2, 2, 6, (2, 3), 2)
    for row, wanted in zip(keys, words):
        same(row, wanted)
    assert (keys == keys).all() and not (keys == keys[0, 0]).all() and jnp.array_equal(keys, keys)
    try:
        np.asarray(keys)
    except TypeError as error:
        print("key_data" in str(error))
    """
    assert run(text) == "True"


def test_typed_keys_under_transformations(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    key = jax.random.key(1)
    keys = jax.random.split(key, 4)
    draw = lambda k: jax.random.normal(k, (2,))
    wanted = np.stack([draw(k) for k in keys])
    same = lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-6)  # tiers may differ in the last digits
    same(jax.vmap(draw)(keys), wanted)
    same(jax.jit(jax.vmap(draw))(keys), wanted)
    same(jax.lax.map(draw, keys), wanted)
    same(jax.lax.scan(lambda c, k: (c, draw(k)), 0, keys)[1], wanted)
    last, _ = jax.lax.scan(lambda k, _: (jax.random.split(k)[0], None), key, None, length=3)
    again = key
    for _ in range(3):
        again = jax.random.split(again)[0]
    assert (last == again).item()
    out = jax.jit(lambda k: {"k": jax.random.split(k)})(key)["k"]
    assert (out == jax.random.split(key)).all() and out.shape == (2,)
    assert jax.vmap(jax.random.split)(keys).shape == (4, 2) and jax.vmap(jax.random.key)(np.arange(3)).shape == (3,)
    picked = jax.lax.cond(True, lambda a, b: a, lambda a, b: b, key, again)
    assert (picked == key).item()
    slope = jax.grad(lambda x, k: jnp.sum(x * draw(k)))(jnp.ones(2), key)
    same(slope, draw(key))
    shape = jax.eval_shape(jax.random.split, key)
    assert shape.shape == (2,) and shape.dtype == key.dtype
    """
    run(text)


def test_typed_keys_are_leaves_of_trees(run):
    text = """
    import jax
    key = jax.random.key(1)
    tree = {"key": key, "x": (1.0, jax.random.split(key))}
    leaves, structure = jax.tree.flatten(tree)
    assert [jax.numpy.shape(x) for x in leaves] == [(), (), (2,)] and structure.num_leaves == 3
    assert jax.tree.map(lambda x: str(getattr(x, "dtype", "")), tree)["x"][1] == "key<fry>"
    assert jax.tree.unflatten(structure, leaves)["key"] is key
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(tree)[0]]
    assert paths == ["['key']", "['x'][0]", "['x'][1]"]
    assert jax.tree.leaves(tree, is_leaf=lambda x: isinstance(x, tuple))[1] == tree["x"]
    """
    run(text)


def test_typed_keys_of_other_generators(run):
    """The words of keys, splits and folds are those of JAX 0.10.2 on CPUs."""
    text = """
    import jax, jax.numpy as jnp, numpy as np, pickle
    random, data = jax.random, lambda k: np.asarray(jax.random.key_data(k)).tolist()
    split = {"rbg": [3625411723, 1954958720, 3625411723, 1954958720],
             "unsafe_rbg": [3109483441, 1367189518, 2515982561, 3310080778]}
    folded = {"rbg": [3583082021, 1947592014, 3583082021, 1947592014],
              "unsafe_rbg": [3810769997, 2355009018, 1837142617, 748193193]}
    for impl, tag in (("rbg", "key<rbg>"), ("unsafe_rbg", "key<urbg>")):
        key = random.key(7, impl=impl)
        assert str(key.dtype) == tag and key.shape == () and key.itemsize == 16 and random.key_impl(key) == impl
        assert data(key) == [0, 7, 0, 7] and data(random.split(key)[0]) == split[impl]
        assert data(random.fold_in(key, 5)) == folded[impl]
        assert random.bits(key, (2,)).tolist() == [3109483441, 1367189518]
        assert (random.wrap_key_data(random.key_data(key), impl=impl) == key).item()
        keys = random.split(key, (2, 3))
        assert keys.shape == (2, 3) and keys.dtype == key.dtype and data(keys[1, 2]) == data(keys.reshape(6)[5])
        assert data(jnp.stack([keys[0], keys[1]], 1)[2, 0]) == data(keys[0, 2])
        again = jax.jit(lambda k: random.split(k, (2, 3)))(key)
        assert (again == keys).all() and str(again.dtype) == tag
        draws = jax.vmap(random.bits)(keys[0])
        assert draws.tolist() == [random.bits(k).item() for k in keys[0]] and len(set(draws.tolist())) == 3
        last, _ = jax.lax.scan(lambda k, _: (random.split(k)[1], None), key, None, length=2)
        assert data(last) == data(random.split(random.split(key)[1])[1])
        shape = jax.eval_shape(random.split, key)
        assert shape.shape == (2,) and shape.dtype == key.dtype
        assert data(pickle.loads(pickle.dumps(key))) == data(key)
    for meet in (lambda: jnp.stack([random.key(0), random.key(0, impl="rbg")]), lambda: random.key(0) == key):
        try:
            meet()
        except TypeError as error:
            print("combined" in str(error), end=" ")

    made = jax.jit(lambda s: random.key(s))
    assert str(made(7).dtype) == "key<fry>" and random.PRNGKey(7).shape == (2,)
    with jax.default_prng_impl("unsafe_rbg"):
        assert str(random.key(7).dtype) == "key<urbg>"
    jax.config.update("jax_default_prng_impl", "rbg")
    assert str(random.key(7).dtype) == str(made(7).dtype) == "key<rbg>" and random.PRNGKey(7).tolist() == [0, 7, 0, 7]
    assert random.PRNGKey(7, impl="threefry2x32").shape == (2,) and random.normal(random.PRNGKey(7), (3,)).shape == (3,)
    try:
        jax.config.update("jax_default_prng_impl", "mt19937")
    except ValueError as error:
        print("no generator" in str(error))
    """
    assert run(text) == "True True True"


def test_functions_of_elements_take_typed_keys(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    keys = jax.random.split(jax.random.key(3), (2, 3))
    draw = lambda k, scale: scale * jax.random.normal(k, (4,))
    scales = np.arange(3.0, dtype=np.float32)
    wanted = [[draw(keys[i, j], scales[j]) for j in range(3)] for i in range(2)]
    drawn = jnp.vectorize(draw, signature="(),()->(n)")(keys, scales)
    np.testing.assert_allclose(drawn, np.array(wanted), rtol=1e-6)
    folded = jnp.vectorize(jax.random.fold_in, excluded=(1,))(keys, 5)
    assert (folded[1, 2] == jax.random.fold_in(keys[1, 2], 5)).item() and folded.shape == (2, 3)
    assert jnp.vectorize(draw, signature="(),(m)->(m)")(keys[0], np.ones((2, 1, 4), np.float32)).shape == (2, 3, 4)
    """
    run(text)


def test_generators_are_named_by_dtypes_of_keys(run):
    text = """
    import jax
    dtype = jax.random.key_dtype("rbg")
    key = jax.random.key(3, dtype=dtype)
    assert key.dtype == dtype and jax.random.key_impl(key) == "rbg"
    assert jax.random.key_dtype() == jax.random.key(0).dtype
    assert (jax.random.wrap_key_data(jax.random.key_data(key), dtype=dtype) == key).item()
    """
    run(text)


def test_the_environment_chooses_numbers(run):
    text = "import jax; print(jax.random.bits(jax.random.key(0), (2,)).tolist())"
    assert run(text) == "[4070199207, 4202968722]"
    assert run(text, JAX_THREEFRY_PARTITIONABLE="0") == "[928981903, 3453687069]"
    native = run("import functorch_like as ft; print(ft.random.bits(ft.random.key(0), (2,)).tolist())", alias=False)
    assert run(text, FT_RANDOM_NUMBERS="native") == native


def test_numbers_are_those_of_jax(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    key = jax.random.key(0)
    assert jax.random.bits(key, (2,)).tolist() == [4070199207, 4202968722]
    np.testing.assert_allclose(jax.random.normal(key, (2,)), [1.6226422, 2.0252647], rtol=1e-6)
    assert jax.random.permutation(key, 6).tolist() == [0, 1, 5, 4, 3, 2]
    assert jax.random.key_data(jax.random.fold_in(key, 3)).tolist() == [2467461003, 3840466878]
    with jax.threefry_partitionable(False):
        earlier = jax.random.bits(key, (2,)).tolist()
    assert earlier == [928981903, 3453687069] and jax.config.jax_threefry_partitionable
    """
    run(text)


def test_arrays_are_filled_with_typed_keys_and_made_of_their_dtype(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    key = jax.random.key(5)
    keys = jax.random.split(key, 3)
    words = np.asarray(jax.random.key_data(keys))
    def same(found, wanted):
        assert found.dtype == keys.dtype
        np.testing.assert_array_equal(jax.random.key_data(found), wanted)
    same(jnp.array(keys, dtype=keys.dtype), words)
    same(jnp.asarray([key, key], keys.dtype), [[0, 5]] * 2)
    same(jax.jit(lambda k: jnp.asarray(k, dtype=k.dtype))(keys), words)
    same(jnp.zeros((2,), key.dtype), np.zeros((2, 2)))
    same(jnp.ones(2, dtype=key.dtype), np.ones((2, 2)))
    same(jnp.full((2,), 7, key.dtype), np.full((2, 2), 7))
    same(jnp.full((2, 3), keys), [words] * 2)
    same(jax.lax.full((2,), key), [[0, 5]] * 2)
    same(jnp.full_like(keys, key), [[0, 5]] * 3)
    same(jax.lax.full_like(keys, 3), np.full((3, 2), 3))
    same(jax.tree.map(jnp.zeros_like, {"a": keys})["a"], np.zeros((3, 2)))
    same(jax.vmap(jnp.zeros_like)(keys), np.zeros((3, 2)))
    same(jnp.empty_like(keys, shape=(2, 2)), np.zeros((2, 2, 2)))
    same(jnp.zeros_like(jax.ShapeDtypeStruct((2,), key.dtype)), np.zeros((2, 2)))
    same(jnp.select([jnp.array([True, False, True])], [keys], key), [words[0], [0, 5], words[2]])
    assert jnp.zeros_like(jax.random.key(0, impl="rbg")).dtype != key.dtype
    other = jax.random.key(0, impl="rbg")
    for wrong in (lambda: jnp.array(key, jnp.uint32), lambda: jnp.asarray(other, dtype=key.dtype),
                  lambda: jnp.zeros_like(keys, dtype=jnp.float32), lambda: jnp.full((2,), key, "float32")):
        try:
            wrong()
        except (TypeError, ValueError) as error:
            assert "key_data" in str(error), error
        else:
            raise AssertionError("words became keys, or keys became numbers")
    assert jnp.zeros_like(words).dtype == jnp.uint32 and jnp.full((2,), 1.5).dtype == jnp.float32
    """
    run(text)


def test_floats_are_folded_in_as_integers(run):
    run("""
    import jax, jax.numpy as jnp, numpy as np
    key = jax.random.PRNGKey(3)
    two = jax.random.fold_in(key, 2)
    for data in (2.7, jnp.float32(2.7), jnp.int8(2)):
        assert (jax.random.fold_in(key, data) == two).all()
    large = jax.random.fold_in(key, 3_000_000_000)
    assert large.tolist() == [4022169022, 44305153]  # as in JAX
    for data in (3e9, np.float64(3e9), np.float32(3e9), np.array(3e9), jnp.float32(3e9)):
        assert (jax.random.fold_in(key, data) == large).all(), data
    assert (jax.jit(jax.random.fold_in)(key, jnp.float32(3e9)) == large).all()
    """)


def test_shapes_of_keys_stand_for_keys_as_libraries_of_checkpoints_use_them(run):
    text = """
    import numpy as np
    import jax, jax.numpy as jnp
    from jax._src.tree_util import flatten_one_level

    keys = jax.random.split(jax.random.key(3), 4)
    shape = jax.eval_shape(lambda: {"k": keys, "x": jnp.ones(2)})["k"]
    own = jax.ShapeDtypeStruct(keys.shape, keys.dtype)
    assert isinstance(shape, jax.ShapeDtypeStruct) and shape == own and shape.dtype == keys.dtype
    assert repr(shape) == "ShapeDtypeStruct(shape=(4,), dtype=key<fry>)" and jnp.shape(shape) == (4,)

    draw = lambda tree: jax.vmap(jax.random.normal)(tree["k"])
    lowered = jax.jit(draw).lower({"k": own})
    np.testing.assert_array_equal(lowered.compile()({"k": keys}), draw({"k": keys}))
    assert jax.eval_shape(draw, {"k": own}) == jax.ShapeDtypeStruct((4,), "float32")
    assert jax.eval_shape(lambda k: k[:2], own) == jax.ShapeDtypeStruct((2,), keys.dtype)
    assert len(jax.make_jaxpr(draw)({"k": own}).in_avals) == 1
    words = jax.random.key(0, impl="rbg")
    assert jax.jit(jax.random.bits).lower(jax.ShapeDtypeStruct((), words.dtype)).compile()(words).shape == ()
    for leaf in (keys, shape):
        try:
            flatten_one_level(leaf)
        except ValueError:
            continue
        raise AssertionError("keys are leaves")
    """
    run(text)


def test_primitives_of_libraries_take_typed_keys(run):
    text = """
    import jax, jax.extend.core, jax.numpy as jnp, numpy as np
    from jax import lax
    from jax.interpreters import ad, batching, mlir

    # A choice that is the first operand, but for a batch of predicates, as in equinox's loops.
    choose_p = jax.extend.core.Primitive("choose")
    choose_p.def_impl(lambda pred, x, y: x)
    choose_p.def_abstract_eval(lambda pred, x, y: jax.core.ShapedArray(x.shape, x.dtype))
    mlir.register_lowering(choose_p, mlir.lower_fun(lambda pred, x, y: x, multiple_results=False))
    batching.primitive_batchers[choose_p] = lambda args, dims: (jax.vmap(lax.select, in_axes=dims)(*args), 0)
    # Two results of which one is a key, linear in the number.
    pair_p = jax.extend.core.Primitive("pair")
    pair_p.multiple_results = True
    pair_p.def_impl(lambda key, x: [key, x * 3])
    pair_p.def_abstract_eval(lambda key, x: [key, x])
    ad.primitive_jvps[pair_p] = lambda primals, tangents: (
        pair_p.bind(*primals), [ad.Zero.from_primal_value(primals[0]), tangents[1] * 3])

    keys, others = jax.random.split(jax.random.key(0), 3), jax.random.split(jax.random.key(1), 3)
    words = lambda keys: np.asarray(jax.random.key_data(keys))
    choose = lambda pred, x, y: choose_p.bind(pred, x, y)
    preds = jnp.array([True, False, True])
    for f in (choose, jax.jit(choose)):
        one = f(True, keys[0], others[0])
        assert jnp.issubdtype(one.dtype, jax.dtypes.prng_key) and one.shape == ()
        np.testing.assert_array_equal(words(one), words(keys)[0])
        assert f(True, keys, others).shape == (3,)
        np.testing.assert_array_equal(
            words(jax.vmap(f)(preds, keys, others)), np.where(preds[:, None], words(keys), words(others)))
        np.testing.assert_array_equal(
            words(jax.vmap(f, (0, None, 0))(preds, keys[1], others)),
            np.where(preds[:, None], words(keys)[1], words(others)))

    def body(carry):
        key, i = carry
        return choose(i < 5, jax.random.fold_in(key, i), key), i + 1
    expected = keys[0]
    for i in range(3):
        expected = jax.random.fold_in(expected, i)
    last, _ = lax.while_loop(lambda carry: carry[1] < 3, body, (keys[0], 0))
    np.testing.assert_array_equal(words(last), words(expected))

    def g(x):
        key, y = pair_p.bind(keys[2], x)
        assert key.dtype == keys.dtype
        return y * jax.random.uniform(key)
    np.testing.assert_allclose(jax.jvp(g, (2.0,), (1.0,))[1], 3 * jax.random.uniform(keys[2]), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.grad(g))(2.0), 3 * jax.random.uniform(keys[2]), rtol=1e-6)
    """
    run(text)
