"""Promotion under the alias: Python's types count as its numbers do, limits of dtypes are scalars of their dtype."""


def test_types_of_python_and_limits_of_dtypes(run):
    text = """
    import pickle
    import jax, jax.numpy as jnp, numpy as np
    for python, dtype in ((int, "int8"), (float, "bfloat16"), (float, "float16"), (int, "float16"), (bool, "uint8")):
        assert jnp.result_type(python, dtype) == jnp.dtype(dtype), (python, dtype)
    assert jnp.result_type(float, "int8") == jnp.result_type(float) == jnp.float32
    assert jnp.result_type(complex, "float16") == jnp.complex64
    for dtype in ("float16", "float32", "bfloat16"):
        limits, expected = jnp.finfo(dtype), jax.dtypes.finfo(dtype)
        for name in ("eps", "max", "min", "tiny", "smallest_normal"):
            assert getattr(limits, name).dtype == jnp.dtype(dtype)
            assert getattr(limits, name) == getattr(expected, name)
            if dtype != "bfloat16":
                assert getattr(limits, name) == getattr(np.finfo(dtype), name)
        assert isinstance(limits.bits, int) and limits.dtype == jnp.dtype(dtype)
        assert (jnp.ones(2, "bfloat16") * limits.eps).dtype == jnp.promote_types(dtype, "bfloat16")
    assert pickle.loads(pickle.dumps(jnp.finfo("float32"))).eps == np.finfo("float32").eps
    """
    run(text)


def test_dtypes_of_64_bits_are_no_types_of_python(run):
    text = """
    import itertools
    import jax, jax.numpy as jnp, numpy as np
    names = ("bool", "int32", "int64", "float32", "float64", "complex128")
    for x64 in (False, True):
        jax.config.update("jax_enable_x64", x64)
        for a, b in itertools.product(names, names):
            if {a[:3], b[:3]} != {"int", "flo"}:  # JAX keeps the float's width
                assert jnp.promote_types(np.dtype(a), np.dtype(b)) == np.promote_types(a, b), (a, b)
        for wide, python in (("int64", int), ("float64", float), ("complex128", complex)):
            assert jnp.promote_types(np.dtype(wide), python) in (wide, jnp.zeros(0, wide).dtype)
            assert jnp.promote_types("float16", python) == ("complex64" if python is complex else "float16")
            assert not jax.eval_shape(lambda x: x * jnp.ones(2), jnp.zeros(2, np.dtype(wide))).weak_type
        for exact in (float, complex, np.float64, np.float64(1), np.ones(2), np.ones(2, complex)):
            assert jnp.finfo(exact).eps == np.finfo("float64").eps and jnp.finfo(exact).bits == 64
        assert jnp.finfo(jnp.ones(2)).bits == (64 if x64 else 32)
        assert jnp.iinfo(np.ones(2, "int8")).max == 127 and jnp.iinfo(np.uint64(1)).bits == jnp.iinfo(int).bits == 64
    """
    run(text)


def test_dtypes_of_convolutions(run):
    text = """
    import jax.numpy as jnp
    for f in (jnp.convolve, jnp.correlate, jnp.polymul):
        for a in ("int8", "bfloat16", "float16", "float32", "bool"):
            for b in ("int8", "bfloat16", "float16", "float32"):
                x, y = jnp.ones(3, a), jnp.ones(2, b)
                common = jnp.promote_types(a, b)
                assert f(x, y).dtype == (common if jnp.issubdtype(common, jnp.inexact) else jnp.float32), (a, b)
    """
    run(text)


def test_powers_of_numbers_to_integers_are_strong(run):
    text = """
    import jax, jax.numpy as jnp
    half = jnp.ones(3, "bfloat16")
    for dtype in ("int8", "uint32", "int32"):
        n = jnp.arange(3, dtype=dtype)
        for base, expected in ((2.0, "float32"), (jnp.asarray(2.0), "float32"), (1j, "complex64"), (2, dtype)):
            for f in (lambda n: base**n, jax.jit(lambda n: base**n), lambda n: jax.vmap(lambda k: base**k)(n)):
                power = f(n)
                assert power.dtype == expected and not power.weak_type, (dtype, base)
        assert (2.0**n * half).dtype == jnp.float32 and (2.0 * n * half).dtype == half.dtype
        assert jnp.allclose(2.0**n, jnp.array([1.0, 2.0, 4.0]))
    # A known exponent of rank 0 counts as a number, one of booleans or of a weak type as before.
    assert (2.0 ** jnp.int32(2)).weak_type and not jax.jit(lambda n: 2.0**n)(jnp.int32(2)).weak_type
    assert (2.0 ** jnp.array([True])).weak_type and (half**half.astype(int)).dtype == half.dtype
    assert (2 ** jnp.array([True])).dtype == jnp.int32 and not (2 ** jnp.array([True])).weak_type
    """
    run(text)


def test_values_of_numpy_beside_weak_traced_numbers(run):
    text = """
    import operator
    import jax, jax.numpy as jnp, numpy as np
    operators = (operator.add, operator.mul, operator.sub, operator.truediv, operator.pow, jnp.maximum, jnp.where)
    cases = ((np.float32(2), False), (np.float16(2), False), (np.array(2, "float32"), False), (np.int8(2), True),
             (np.array([2], "int16"), True))
    for value, weak in cases:
        for f in operators:
            f = (lambda a, b: jnp.where(True, a, b)) if f is jnp.where else f
            for k, g in enumerate((lambda w: f(value, w), lambda w: f(w, value))):
                # The power of a weak number to an array of integers is strong.
                expected = weak and not (f is operator.pow and k and value.ndim)
                for result in (jax.jit(g)(3.0), jax.jit(jax.vmap(g))(jnp.asarray(3.0) * jnp.ones(2, int))):
                    dtype = "float32" if weak else value.dtype
                    assert result.dtype == dtype and result.weak_type == expected, (value, f, result.weak_type)
    """
    run(text)


def test_functions_of_narrow_integers_and_booleans(run):
    text = """
    import jax, jax.numpy as jnp
    jax.config.update("jax_enable_x64", True)
    for dtype in ("int8", "uint8", "int32"):
        assert jnp.vander(jnp.arange(3, dtype=dtype)).dtype == dtype
    assert jnp.polyint(jnp.array([True, False])).dtype == "float64"
    assert jax.lax.select_n(1, jnp.zeros(3), jnp.ones(3)).tolist() == [1, 1, 1]
    assert jax.nn.one_hot(jnp.array([0.0, 2.0, 0.5]), 3).tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0]]
    half, small = jnp.ones(3, "float16"), jnp.arange(3, dtype="int8")
    for name in ("relu6", "leaky_relu", "elu", "celu", "selu", "hard_sigmoid"):
        made = getattr(jax.nn, name)(small)
        assert made.weak_type and made.dtype == "float64" and (made * half).dtype == "float16", name
    assert jax.nn.relu(jnp.array([True])).dtype == "int64" and jax.nn.identity(jnp.array([True])).dtype == "bool"
    """
    run(text)
