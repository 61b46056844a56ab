"""Traced values, numbers and positions behave as JAX's do, where that differs without the alias."""


def test_traced_values_are_not_hashable_and_pass_the_way_to_the_host(run):
    text = """
    import jax, jax.numpy as jnp
    from collections.abc import Hashable
    def f(x):
        try:
            hash(x)
        except TypeError as e:
            print(isinstance(x, Hashable), "unhashable" in str(e))
        return x.sum()
    x = jnp.ones((2, 2))
    f(x), jax.grad(f)(x), jax.vmap(f)(x), jax.jit(f)(x)
    same = lambda x: jnp.sin(jax.device_get({"x": x, "name": "x", "host": jnp.ones(2)})["x"])
    print(jax.grad(same)(0.0), jax.jit(same)(0.0), type(jax.device_get([x, 1.0])[0]).__name__)
    """
    assert run(text).splitlines() == ["False True"] * 4 + ["1.0 0.0 ndarray"]


def test_positions_out_of_bounds_are_those_of_jax(run):
    text = """
    import jax, jax.numpy as jnp
    x = jnp.arange(6.).reshape(2, 3)
    for way in (lambda f: f, jax.jit):
        print(way(lambda x: x[5, 1:])(x), way(lambda x: x[..., -7])(x), way(lambda x: x[-4, jnp.array([0, 9])])(x))
        assert (way(lambda x: x.at[2].set(9.).at[0, -4].add(9.).at[:, 3].multiply(9.))(x) == x).all()
        assert way(lambda x: x.at[0, 7].get(mode="fill", fill_value=8.))(x) == 8
        print(way(jax.grad(lambda x: x[7, 0]))(x).tolist())
    from jax.scipy.spatial.transform import Rotation
    turns = Rotation.from_rotvec(jnp.ones((2, 3)))
    assert len(list(turns)) == 2 and len(list(x)) == 2 and len(list(jax.random.split(jax.random.key(0), 3))) == 3
    try:
        x[:0][0]
    except IndexError:
        print("empty")
    """
    rows = ["[4. 5.] [0. 3.] [0. 2.]", "[[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]"]
    assert run(text).splitlines() == [*rows, *rows, "empty"]


def test_scalars_of_numpy_are_strong_inside_of_jit_as_well(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    half = jnp.ones(2, "bfloat16")
    f, i = np.float32(1.5), np.int32(2)
    cases = [lambda: jnp.exp(f), lambda: jnp.abs(f), lambda: jnp.sum(f), lambda: jax.nn.gelu(f),
             lambda: jnp.add(f, 1.0), lambda: jnp.hypot(f, jnp.asarray(1.0)), lambda: jnp.where(True, f, f),
             lambda: jnp.ldexp(f, i)]
    for case in cases:
        for way in (lambda g: g, jax.jit):
            out = way(case)()
            assert out.dtype == jnp.float32 and not out.weak_type, case
            assert way(lambda x: case() * x)(half).dtype == jnp.float32
    for way in (lambda g: g, jax.jit):
        assert way(jnp.unwrap)(half).dtype == jnp.bfloat16
    """
    run(text)


def test_scalars_of_numpy_as_results_are_strong(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    table = np.arange(4)
    f = lambda: (np.float32(1), np.int64(3), np.bool_(True), table[2], 1, 2.0)
    loop = lambda: jax.lax.scan(lambda c, _: (c, np.float32(2)), 0, None, length=2)[1]
    branch = lambda: jax.lax.cond(jnp.bool_(True), lambda: np.int32(1), lambda: np.int32(2))
    for way in (jax.jit, lambda g: lambda: jax.eval_shape(g)):
        assert [x.weak_type for x in way(f)()] == [False] * 4 + [True] * 2
        assert [x.dtype for x in way(f)()] == ["float32", "int32", "bool", "int32", "int32", "float32"]
        assert not way(loop)().weak_type and not way(branch)().weak_type
    """
    run(text)


def test_functions_of_integers_compute_in_floats_as_in_jax(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    x, y = jnp.arange(1, 4), jnp.array([1, 2])
    for made in (
        jnp.convolve(x, y), jnp.correlate(x, y), jnp.polymul(x, y), jnp.polyder(x), jax.scipy.signal.convolve(x, y),
        jax.scipy.signal.correlate2d(x[None], y[None]),
    ):
        assert made.dtype == jnp.float32
    assert jnp.promote_types("uint8", int) == "uint8" and jnp.promote_types("float16", float) == "float16"
    assert jnp.promote_types(int, "bool") == "int32" and jnp.promote_types("int8", "uint8") == "int16"
    assert jnp.bincount(jnp.array([-1, -1, 1, 3, 10]), length=5).tolist() == [2, 1, 0, 1, 0]
    assert jnp.isscalar(np.array(1.0)) and not jnp.isscalar(np.ones(1))
    """
    run(text)


def test_indices_of_a_traced_start(run):
    text = """
    import jax, jax.numpy as jnp
    x = jnp.arange(10)
    assert x[jax.ds(4, 2)].tolist() == jax.jit(lambda x, i: x[jax.ds(i, 2)])(x, 4).tolist() == [4, 5]
    assert jax.jit(lambda x, i: x.at[jax.ds(i, 2)].set(0))(x, 4).tolist() == [0, 1, 2, 3, 0, 0, 6, 7, 8, 9]
    """
    run(text)


def test_tangents_of_numbers_are_weak(run):
    text = """
    import jax, jax.numpy as jnp
    for f in (lambda x: 3 * jnp.sin(x), lambda x: 1.0):
        assert all(y.weak_type for y in map(jnp.asarray, jax.jvp(f, (2.0,), (3.0,))))
    assert not jax.jvp(jnp.sin, (jnp.float32(2),), (jnp.float32(3),))[1].weak_type
    """
    run(text)


def test_traced_values_are_array_like(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from jax.typing import ArrayLike
    def f(x):
        assert isinstance(x, ArrayLike) and isinstance(x, jax.Array)
        return 2.0 * x
    for call in (jax.grad(f), jax.jit(f), lambda x: jax.vmap(f)(x[None]), f):
        call(jnp.float32(1))
    assert all(isinstance(x, ArrayLike) for x in (1, 1.0, True, 1j, np.ones(2), np.float32(1)))
    assert not isinstance([1], ArrayLike) and not isinstance("x", ArrayLike)
    assert (ArrayLike | None) and (ArrayLike | "MyType")
    """
    run(text)


def test_reshaped_arrays_of_numpy_can_be_read_under_jit(run):
    text = """
    import warnings
    import jax, jax.numpy as jnp, numpy as np
    values = np.arange(6.0).reshape(2, 3)
    @jax.jit
    def f(x):
        rows = jnp.reshape(values > 2, (3, -1)).all(-1)
        assert isinstance(rows, np.ndarray) and not rows[0] and rows[2]
        return jnp.reshape(x, (3, 2)) + jnp.reshape(values, (3, 2))
    got = f(values)
    assert isinstance(got, jax.Array) and got.dtype == jnp.float32
    np.testing.assert_allclose(got, 2 * values.reshape(3, 2))
    np.testing.assert_array_equal(jnp.reshape(values, 6, order="F"), values.ravel(order="F"))
    try:
        jnp.reshape(values, (5,))
    except ValueError as error:
        assert "6 elements" in str(error)
    else:
        raise AssertionError("six elements fit no five")
    """
    run(text)
