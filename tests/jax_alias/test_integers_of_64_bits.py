"""Floats of integers with `jax_enable_x64`: float64 of Python's numbers and of 64 bits, float32 of narrower arrays."""


def test_narrow_integers_become_float32(run):
    run("""
    import jax, jax.numpy as jnp, numpy as np
    jax.config.update("jax_enable_x64", True)
    functions = (
        jnp.sin, jnp.mean, jnp.std, jnp.median, jnp.linalg.norm, jnp.cov, jnp.trapezoid, lambda x: x / x,
        lambda x: jnp.arctan2(x, x), lambda x: jnp.logaddexp(x, x), lambda x: jnp.interp(x, x, x),
        lambda x: jnp.quantile(x, jnp.float32(0.5)), lambda x: jax.scipy.special.betainc(x, x, x),
        lambda x: jnp.linspace(x[0], x[1], 3), jax.scipy.special.gammaln, jax.nn.softmax,
        lambda x: jax.scipy.stats.norm.pdf(x, x, x),
    )
    for dtype in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        x = jnp.ones(3, dtype)
        expected = "float64" if "64" in dtype else "float32"
        for k, f in enumerate(functions):
            assert jax.eval_shape(f, x).dtype == expected, (k, dtype)
        assert jnp.fft.fft(x).dtype == ("complex128" if "64" in dtype else "complex64")
        np.testing.assert_allclose(jnp.exp(x), np.exp(np.ones(3)), rtol=1e-6)
    # Numbers of Python are wide, and make narrow integers wide floats.
    assert jnp.sin(1).dtype == "float64" and jnp.sin(1).weak_type
    assert (jnp.ones(3, "int8") * 2.5).dtype == "float64" and (jnp.ones(3, "int8") ** -1.0).dtype == "float64"
    assert jnp.rint(jnp.ones(3, "int32")).dtype == "float64"
    assert jnp.sin(np.arange(3)).dtype == "float64" and jnp.sin(np.int16(3)).dtype == "float32"
    """)


def test_ranks_of_matrices_are_wide(run):
    run("""
    import jax, jax.numpy as jnp
    x = jnp.ones((2, 3, 3), "float32")
    results = lambda: (jnp.linalg.matrix_rank(x), jnp.linalg.matrix_rank(x, tol=1), jnp.linalg.lstsq(x[0], x[0])[2])
    assert all(r.dtype == "int32" and (r == 1).all() for r in results())
    jax.config.update("jax_enable_x64", True)
    assert all(r.dtype == "int64" and (r == 1).all() for r in results())
    """)


def test_integers_of_booleans_and_of_searches_are_narrow(run):
    run("""
    import jax, jax.numpy as jnp, numpy as np
    jax.config.update("jax_enable_x64", True)
    b, x = jnp.array([True, True]), jnp.arange(5.0)
    for f in (jnp.floor_divide, jnp.mod, jnp.fmod, jnp.power, jnp.left_shift):
        assert f(b, b).dtype == "int32", f
    assert jnp.square(b).dtype == (b**2).dtype == "int32" and jnp.sum(b).dtype == "int64"
    for side in ("left", "right"):
        for given in (jnp.array([-1.0, 2.0, 2.5, 9.0]), 3.0, jnp.arange(4)):
            expected = np.searchsorted(np.arange(5.0), given, side)
            for f in (jnp.searchsorted, jax.jit(jnp.searchsorted, static_argnames="side")):
                result = f(x, given, side=side)
                assert result.dtype == "int32" and (result == expected).all()
    for bins in (x, x[::-1]):
        result = jnp.digitize(jnp.array([0.5, 4.0]), bins)
        assert result.dtype == "int32" and (result == np.digitize([0.5, 4.0], bins)).all()
    assert jnp.vander(jnp.arange(3, dtype="int32")).dtype == "int32"
    """)


def test_floats_of_angles_and_of_divided_elements(run):
    run("""
    import jax, jax.numpy as jnp, numpy as np
    jax.config.update("jax_enable_x64", True)
    for dtype in ("int8", "int32", "int64"):
        angles = jnp.angle(jnp.array([-2, 3], dtype))
        assert angles.dtype == "float64"
        np.testing.assert_allclose(angles, [np.pi, 0], rtol=1e-15)
        x = jnp.array([7, 9], dtype)
        for value in (np.int8(3), np.float32(3), 3, 3.0, jnp.array(3, "bfloat16"), jnp.array(3, "int64")):
            result = x.at[0].divide(value)
            assert result.dtype == (x / x).dtype, (dtype, value)
            np.testing.assert_allclose(result, [7 / 3, 9], rtol=1e-15 if dtype == "int64" else 1e-6)
    assert jnp.tri(3).dtype == "float32" and jnp.tri(2, 3, 1, "int8").tolist() == [[1, 1, 0], [1, 1, 1]]
    """)


def test_without_it_all_become_float32(run):
    run("""
    import jax, jax.numpy as jnp
    for dtype in ("bool", "int8", "uint32"):
        assert jnp.sin(jnp.ones(3, dtype)).dtype == "float32"
    """)


def test_integers_beyond_32_bits_do_not_become_arrays(run):
    run("""
    import jax, jax.numpy as jnp, numpy as np
    f, i, u = jnp.ones(2), jnp.ones(2, "int32"), jnp.ones(2, "uint32")
    for case in (
        lambda: jnp.array(2**31), lambda: jnp.asarray([1, 2**31]), lambda: jax.device_put(2**40), lambda: i + 2**31,
        lambda: jax.jit(lambda x: x)(2**31), lambda: jnp.atleast_1d(-(2**40)),
        lambda: jax.lax.scan(lambda c, x: (c, x), 2**40, f), lambda: jnp.sin(2**40),
    ):
        try:
            result = case()
        except OverflowError:
            continue
        raise AssertionError(result)
    assert jnp.uint32(2**32 - 1) == 2**32 - 1 and jnp.array(2**32 - 1, "uint32").dtype == "uint32"
    assert jnp.float32(2**40) == 2.0**40
    jax.random.split(jax.random.PRNGKey(2**40))
    jax.random.fold_in(jax.random.key(0), 2**32 - 1)
    jax.config.update("jax_enable_x64", True)
    assert jnp.array(2**40) == 2**40 and (jnp.ones(2, "int64") + 2**40).dtype == "int64"
    """)


def test_positions_of_narrow_dtypes_in_a_program(run):
    run("""
    import jax, jax.numpy as jnp
    x = jnp.arange(600.0).reshape(300, 2)
    for dtype in ("uint8", "int8", "int16", "uint32"):
        i = jnp.array(120, dtype)
        assert jax.jit(lambda: x[i])().tolist() == [240, 241]
        assert jax.jit(lambda: x[i, 1])() == 241 and jax.jit(lambda j: x[i, j])(jnp.int32(1)) == 241
    """)


def test_sums_of_booleans_and_means_of_integers_over_a_named_axis_are_narrow(run):
    run("""
    import jax, jax.numpy as jnp, numpy as np
    from jax import lax
    jax.config.update("jax_enable_x64", True)
    over = lambda f: jax.vmap(lambda x: f(x, "i"), axis_name="i")
    x = jnp.array([[True, False], [True, True]])
    sums = over(lax.psum)(x)
    assert sums.dtype == "int32" and (sums == np.array([2, 1])).all()
    for dtype in ("bool", "int8", "uint16", "int32", "int64"):
        means = over(lax.pmean)(x.astype(dtype))
        assert means.dtype == ("float64" if dtype == "int64" else "float32")
        np.testing.assert_allclose(means, [[1, 0.5]] * 2)
    """)
