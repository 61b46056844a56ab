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
