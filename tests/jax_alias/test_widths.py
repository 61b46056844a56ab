"""Widths under the alias: 64-bit arrays of NumPy, and 64-bit dtypes, count as 32-bit ones unless `jax_enable_x64`."""

import os
import subprocess
import sys


def test_numpys_arrays_are_32_bits_wide(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    x, n, z = np.linspace(0.1, 0.3, 3), np.arange(3), np.array([1j])
    def widths(*fs):
        for f in fs:
            out = f()
            dtype = str(getattr(out, "dtype", out))
            assert "64" not in dtype.replace("complex64", "") and "128" not in dtype, (f.__code__.co_firstlineno, dtype)
    f32 = jnp.ones(3)
    identity = lambda x: x + 0
    for _ in range(2):  # a second call takes another way
        widths(
            lambda: jnp.asarray(x), lambda: jnp.array(n), lambda: jnp.asarray(z), lambda: jax.device_put(x),
            lambda: jax.jit(identity)(x), lambda: jax.jit(identity)(np.float64(1)), lambda: jnp.sin(x),
            lambda: jnp.sum(n), lambda: f32 * x, lambda: x * f32, lambda: f32.at[0].set(x[0]), lambda: f32 + n,
            lambda: jax.grad(lambda x: (x**2).sum())(x), lambda: jax.jit(lambda: f32 + x)(), lambda: jax.lax.add(x, x),
            lambda: jax.vmap(jnp.sin)(x), lambda: jax.lax.scan(lambda c, x: (c + x, x), 0.0, x)[1],
            lambda: jax.jit(lambda: x)(), lambda: jnp.zeros_like(x), lambda: jnp.where(True, x, 1.0),
            lambda: jnp.array([np.float64(1)]), lambda: jnp.array([x, x]), lambda: jax.eval_shape(identity, x),
            lambda: jax.eval_shape(identity, jax.ShapeDtypeStruct((3,), np.float64)), lambda: jax.typeof(x),
            lambda: jnp.result_type(x), lambda: jnp.linspace(0, 1, 3), lambda: jnp.searchsorted(x, x),
            lambda: jax.pure_callback(lambda a: np.float64(a), jax.ShapeDtypeStruct((3,), np.float32), x),
            lambda: jax.vjp(jnp.sin, x)[1](x)[0], lambda: jax.jvp(jnp.sin, (x,), (x,))[1],
        )
    np.testing.assert_allclose(jax.jit(identity)(x), x, rtol=1e-6)
    np.testing.assert_array_equal(jax.jit(identity)(n), n)
    step = jax.jit(lambda c, x: c + x)
    for value in (jnp.asarray(x), x, jnp.asarray(x), x, x):  # of one signature, and of two widths
        np.testing.assert_allclose(step(f32, value), 1 + x, rtol=1e-6)
    assert x.dtype == np.float64  # which nobody has written to
    """
    run(text)


def test_dtypes_that_are_named_are_32_bits_wide(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    for made in (
        jnp.zeros(3, dtype="float64"), jnp.full(3, 1, np.float64), jnp.ones(3).astype(np.float64), jnp.float64(1),
        jnp.array([1.0], np.float64), jnp.linspace(0, 1, 3, dtype=np.float64), jnp.sum(jnp.ones(3), dtype=np.float64),
        jax.lax.convert_element_type(1.0, np.float64), jax.random.normal(jax.random.key(0), (2,), dtype=np.float64),
        jax.lax.full((3,), 1.0, np.float64), jnp.eye(3, dtype=jnp.float64),
    ):
        assert made.dtype == jnp.float32
    assert jnp.arange(3, dtype=np.int64).dtype == jnp.int64(1).dtype == jnp.int32
    assert jnp.zeros(1, np.complex128).dtype == jnp.complex64 and jnp.zeros(1, jnp.uint64).dtype == jnp.uint32
    assert jnp.dtype("float64") == np.float64 and jnp.issubdtype("float64", np.float64)
    assert jnp.finfo(np.float64).bits == 64 and jax.dtypes.canonicalize_dtype(np.float64) == np.float32
    # A seed is an int, and so has 32 bits, too.
    key = jax.random.key(2**40 + 7)
    assert jax.random.key_data(key).tolist() == [0, 7]
    # Programs of the package compute in 64 bits all the same.
    folds = [jax.random.key_data(jax.random.fold_in(key, n)).tolist() for n in (1, 1 + 2**32)]
    assert folds[0] != folds[1]
    draw = lambda k: (jax.random.permutation(k, 9), jax.random.randint(k, (3,), 0, 9), jax.random.poisson(k, 3.0, (3,)))
    jax.tree.map(np.testing.assert_array_equal, jax.vmap(draw)(key[None]), jax.tree.map(lambda x: x[None], draw(key)))
    """
    run(text)


def test_64_bits_are_there_when_asked_for(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    x = np.linspace(0, 1, 3)
    f = jax.jit(lambda x: x + 1)
    assert f(x).dtype == np.float32
    with jax.enable_x64(True):
        wide = f(x)
        assert wide.dtype == np.float64 and jnp.zeros(3, "float64").dtype == np.float64
        np.testing.assert_array_equal(wide, x + 1)
    assert f(x).dtype == np.float32 and f(wide).dtype == np.float64 and (wide * wide).dtype == np.float64
    jax.config.update("jax_enable_x64", True)
    assert f(x).dtype == np.float64 and jnp.asarray(np.arange(3)).dtype == np.int64
    jax.config.update("jax_enable_x64", False)
    assert f(x).dtype == np.float32
    """
    run(text)


def test_the_environment_asks_for_64_bits_and_nothing_changes_without_the_alias():
    program = "import jax, jax.numpy as jnp, numpy as np; print(jnp.asarray(np.ones(1)).dtype, jnp.ones(1).dtype)"
    environment = dict(os.environ, JAX_ENABLE_X64="1")
    command = [sys.executable, "-m", "functorch_like.as_jax", "-c", program]
    out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert out.split() == ["float64", "float64"]
    import functorch_like as ft

    assert ft.jit(lambda x: x)(ft.numpy.asarray([1.0], "float64")).dtype == "float64"


def test_functions_of_the_package_compute_in_64_bits_and_return_32(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from jax.scipy import special
    x = np.linspace(0.5, 2.5, 6).reshape(2, 3)
    key = jax.random.key(0)
    functions = (
        lambda x: jnp.sum(jax.nn.softmax(x, where=x > 1, axis=-1)), lambda x: special.betainc(x, 2.0, 0.5).sum(),
        lambda x: special.i0e(x).sum(), lambda x: special.gammainc(x, x).sum(), lambda x: jnp.linalg.norm(x),
        lambda x: jax.random.gamma(key, x).sum(), lambda x: jnp.interp(x, x[0], x[1]).sum(), lambda x: jnp.var(x),
        lambda x: jnp.quantile(x, 0.3), lambda x: jnp.linalg.det(x @ x.T), lambda x: jnp.fft.rfft(x).real.sum(),
        lambda x: jax.image.resize(x, (4, 4), "linear").sum(), lambda x: jax.random.dirichlet(key, x).sum(),
    )
    for f in functions:
        for g in (f, jax.jit(f), jax.grad(f), jax.jit(jax.grad(f)), lambda x: jax.vmap(f)(x[None])):
            wide, narrow = g(x), g(jnp.float32(x))
            assert wide.dtype == narrow.dtype == np.float32
            np.testing.assert_allclose(wide, narrow, rtol=1e-5, atol=1e-6)
    for made in (jax.random.poisson(key, x), jax.random.binomial(key, 10, x / 3), jnp.unique(x), jnp.histogram(x)[0]):
        assert made.dtype.itemsize == 4
    for made in (
        jnp.broadcast_to(x, x.shape), jnp.broadcast_arrays(x, x)[0], jnp.moveaxis(x, 0, 0), jnp.swapaxes(x, 1, 1),
        jax.lax.reshape(x, x.shape), jax.lax.expand_dims(x, ()),
        jax.lax.convert_element_type(np.float32(x), np.float32),
    ):
        assert isinstance(made, jax.Array) and made.dtype == np.float32
    assert set(jax.random.randint(key, (50,), np.array([0.0]), np.array([2.7])).tolist()) == {0, 1}
    assert jax.random.randint(key, (), 0, 2**32, "uint32").dtype == np.uint32
    """
    run(text)


def test_pullbacks_of_scalars_keep_the_width_of_the_packages_constants(run):
    text = """
    import jax, jax.numpy as jnp, jax.scipy.special as special, numpy as np
    for f, slope in ((special.dawsn, 0.5755636), (special.erfcx, -0.5126888)):
        value, pull = jax.vjp(f, jnp.float32(0.5))
        for cotangent in (1.0, jnp.float32(1)):
            (ct,) = pull(cotangent)
            assert ct.dtype == np.float32
            np.testing.assert_allclose(ct, slope, rtol=1e-6)
    """
    run(text)


def test_32_bit_integers_promote_to_32_bits(run):
    text = """
    import jax, jax.numpy as jnp
    a, b = jnp.ones(2, jnp.uint32), jnp.ones(2, jnp.int32)
    add = jax.jit(lambda a, b: a + b)
    def dtypes():
        both = a + b, add(a, b), jnp.where(True, a, b), jnp.concatenate([a, b]), jnp.maximum(a, b)
        return {str(x.dtype) for x in both} | {str(jnp.promote_types("uint32", "int32"))}
    assert dtypes() == {"int32"}
    with jax.enable_x64(True):
        assert dtypes() == {"int64"}
    assert dtypes() == {"int32"}
    """
    run(text)


def test_numpys_scalars_are_arrays_of_their_dtype(run):
    """Expected dtypes are those that JAX 0.10.2 gave."""
    text = """
    import operator, jax, jax.numpy as jnp, numpy as np
    from jax import lax
    half, byte = jnp.ones(2, "bfloat16"), jnp.ones(2, "int8")
    dtype = lambda x: str(jax.typeof(x).dtype)
    for f in (operator.add, operator.mul, operator.truediv, operator.pow, jnp.add, jnp.maximum, jnp.hypot, jnp.arctan2):
        for two in (np.float32(2), np.array(2, "f"), np.float64(2)):
            for way in (lambda f: f, jax.jit):
                assert dtype(way(f)(half, two)) == dtype(way(f)(two, half)) == "float32", f
            assert dtype(jax.jit(lambda x: f(x, two))(half)) == "float32", f
        assert dtype(f(half, 2.0)) == dtype(f(2, half)) == "bfloat16", f
    assert dtype(byte + np.int64(1)) == dtype(np.int32(1) * byte) == "int32"
    assert dtype(byte // np.uint8(2)) == "int16" and dtype(byte + np.bool_(1)) == "int8"
    for exponent in (np.int64(2), np.array(2), 2):  # of powers, it counts as a Python int
        assert dtype(byte**exponent) == dtype(jnp.power(byte, exponent)) == "int8"
        assert (jnp.full(2, 3, "int8") ** exponent).tolist() == [9, 9]
    assert dtype(jnp.array([1, np.float16(2)])) == dtype(jnp.array([[np.float16(2)], [1.5]])) == "float16"
    assert dtype(jnp.array([np.int8(2), 3])) == "int8" and dtype(jnp.array([3, half.dtype.type(2)])) == "bfloat16"
    assert jnp.result_type(np.float32(2), half) == jnp.result_type(np.array(2, "f"), half) == np.float32
    assert jnp.result_type(2.0, half) == half.dtype
    forward = lambda f: lambda x: jax.jvp(f, (x,), (jnp.float32(1),))[1]
    for ahead in (jax.grad, forward, lambda f: lambda x: jax.vjp(f, x)[0]):
        seen = []
        found = ahead(lambda x: seen.append(dtype(x * half)) or x * 2)(np.float32(2))
        assert seen[0] == "float32" and not found.weak_type
    assert lax.add(1, 2).weak_type and lax.add(1.0, 2.0).weak_type and lax.max(1, jnp.asarray(2)).weak_type
    assert not jnp.full_like(np.float32(1), 2).weak_type
    for moved in (lax.broadcast(np.float32(1), (2,)), lax.expand_dims(np.float32(1), (0,))):
        assert not moved.weak_type
    assert dtype(jnp.cumsum(byte)) == dtype(jnp.cumprod(byte)) == "int8" and dtype(jnp.cumsum(byte > 0)) == "int32"
    """
    run(text)


def test_sequences_of_wide_ints_are_refused_as_single_ints_are(run):
    run("""
    import jax.numpy as jnp
    for value, wide in ((2**31, 2**31), ([2**31, 1], 2**31), ([[0], [-2**31 - 1]], -2**31 - 1)):
        try:
            jnp.asarray(value)
        except OverflowError as e:
            assert f"the Python int {wide} does not fit int32" in str(e) and "jax_enable_x64" in str(e), e
        else:
            raise AssertionError(value)
    assert jnp.asarray([2**31, 1], "uint32").tolist() == [2**31, 1]
    """)


def test_read_only_arrays_of_rank_0_are_32_bits_wide(run):
    run("""
    import jax, jax.numpy as jnp, numpy as np
    # `broadcast_to` gives views that cannot be written to, as numpyro's numbers of values of a distribution are.
    for number, dtype in ((3, "int32"), (0.5, "float32"), (1j, "complex64")):
        view = np.broadcast_to(number, ())
        assert not view.flags.writeable
        vector, unravel = jax.flatten_util.ravel_pytree({"a": view})
        for made in (view + jnp.zeros((), dtype), jnp.asarray(view), vector, jax.lax.transpose(view, ())):
            assert made.dtype == dtype and np.all(made == number), made
        assert jax.jit(lambda: view * 2)().dtype == dtype
        if number != 3:
            assert jax.vjp(lambda x: x * view, jnp.ones((), dtype))[1](view)[0].dtype == dtype
    assert jax.lax.fori_loop(0, np.broadcast_to(3, ()) - 1, lambda i, c: c + i, np.broadcast_to(4, ())) == 5
    count = jax.jit(lambda n: jax.lax.fori_loop(0, jnp.stack([np.broadcast_to(3, ())])[n] - 1, lambda i, c: c + 1, 0))
    assert count(0) == 2
    """)
