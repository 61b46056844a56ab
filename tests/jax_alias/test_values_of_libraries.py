"""Values that JAX takes and gives where libraries rely on it: limits of dtypes, literals, results of operations."""


def test_limits_are_scalars_of_their_dtype(run):
    text = """
    import copy, pickle
    import jax, jax.numpy as jnp, numpy as np
    for dtype in (jnp.float32, jnp.bfloat16, jnp.float8_e4m3fn, jnp.float16):
        for info in (jnp.finfo(dtype), jax.dtypes.finfo(dtype), pickle.loads(pickle.dumps(jnp.finfo(dtype)))):
            for value in (info.min, info.max, info.eps, info.tiny):
                assert value.dtype == np.dtype(dtype) and value.astype(np.float64) == float(value)
    assert jnp.finfo(jnp.float32).max == np.finfo(np.float32).max and jnp.finfo(jnp.float32).bits == 32
    assert float(jnp.finfo(jnp.bfloat16).eps) == 2.0**-7 and jnp.finfo(jnp.complex64).dtype == np.float32
    assert (jnp.ones(2, jnp.bfloat16) * jnp.finfo(jnp.float32).eps).dtype == np.float32
    """
    run(text)


def test_transpose_takes_an_array_of_axes(run):
    text = """
    import jax.numpy as jnp, numpy as np
    x = np.arange(24.0).reshape(2, 3, 4)
    for axes in (np.array([2, 0, 1]), np.argsort([3, 1, 2])):
        np.testing.assert_array_equal(jnp.asarray(x).transpose(axes), x.transpose(axes))
    assert jnp.asarray(x).transpose(None).shape == jnp.asarray(x).transpose().shape == (4, 3, 2)
    """
    run(text)


def test_literals_of_programs_are_arrays(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from jax.extend.core import Literal
    f = lambda x: (x * np.array(2, np.float32), x * 2.0)
    literals = [v for e in jax.make_jaxpr(f)(3.0).eqns for v in e.invars if isinstance(v, Literal)]
    strong, weak = (v.val for v in literals)
    assert isinstance(strong, jax.Array) and isinstance(strong, np.ndarray) and strong.dtype == np.float32
    assert type(weak) is float
    half = jnp.ones(3, jnp.bfloat16)
    for value in (strong * half, half * strong, jnp.multiply(strong, half), jax.jit(jnp.multiply)(strong, half)):
        assert value.dtype == np.float32 and (np.asarray(value) == 2).all(), value
    np.testing.assert_allclose([jnp.sin(strong), jax.grad(jnp.sin)(strong)], [np.sin(2), np.cos(2)], rtol=1e-6)
    """
    run(text)


def test_an_associative_operation_may_return_another_structure(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from typing import NamedTuple
    class Pair(NamedTuple):
        a: object
        b: object
    x = np.array([1.0, 2.0, 3.0, 4.0])
    op = lambda p, q: Pair(p[0] * q[0], p[1] * q[0] + q[1])  # affine maps
    expected, b = [], 0
    for v in x:
        b = b * v + v
        expected.append(b)
    for way in (lambda f: f, jax.jit):
        out = way(lambda x: jax.lax.associative_scan(op, (x, x)))(x)
        assert type(out) is tuple
        np.testing.assert_allclose(out, [np.cumprod(x), expected])
        backwards = way(lambda x: jax.lax.associative_scan(lambda p, q: [p[0] + q[0]], (x,), reverse=True))(x)
        np.testing.assert_allclose(backwards[0], x[::-1].cumsum()[::-1])
    for wrong in (lambda p, q: [p[0]], lambda p, q: (p[0], p[1][None])):
        try:
            jax.lax.associative_scan(wrong, (x, x))
        except Exception as e:
            print(type(e).__name__)
    """
    assert run(text) == "ArgumentError\nArgumentError"


def test_the_dictionary_of_a_module_has_its_functions(run):
    text = """
    import types
    import jax, jax.numpy as jnp, jax.scipy.special
    for module, some in ((jnp, ("abs", "zeros", "linalg")), (jnp.fft, ("fft",)), (jax.scipy.special, ("erf",))):
        assert {n for n in dir(module)} <= set(vars(module)) and all(n in module.__dict__ for n in some)
        assert all(vars(module)[name] is getattr(module, name) for name in dir(module))
    assert "no_such_name" not in vars(jnp)
    jnp.of_a_library = 3
    assert vars(jnp)["of_a_library"] == 3
    """
    run(text)


def test_select_of_scalars_by_an_array(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    x = jnp.arange(3).reshape(3, 1)
    mapped = jax.vmap(lambda a: jax.lax.select(a <= 1, 0, 1))(x)
    assert mapped.shape == (3, 1) and mapped.tolist() == [[0], [0], [1]]
    assert jax.lax.select(True, jnp.ones(2), jnp.zeros(2)).tolist() == [1, 1]
    keys = jax.random.split(jax.random.key(0), 2)
    assert (jax.lax.select(jnp.array([True, False]), keys, keys[::-1]) == keys[jnp.array([0, 0])]).all()
    """
    run(text)


def test_code_of_functions_can_be_replaced(run):
    text = """
    import inspect, pickle
    import jax, jax.numpy as jnp
    kept = jax.lax.dot_general  # as a layer keeps it
    dims = (((1,), (0,)), ((), ()))
    x = jnp.ones((2, 2))
    assert "out_sharding" not in inspect.signature(kept).parameters and "lhs" in inspect.signature(kept).parameters
    assert pickle.loads(pickle.dumps(kept)) is kept and kept(x, x, dims, out_sharding=None)[0, 0] == 2
    code = kept.__code__
    kept.__code__ = (lambda *args, **kwargs: "replaced").__code__
    assert jax.lax.dot_general(x, x, dims) == "replaced" and (x @ x)[0, 0] == 2
    kept.__code__ = code
    assert kept(x, x, dims)[0, 0] == 2
    """
    run(text)


def test_transforms_of_real_arrays(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    x = np.array([0.5, -1.0, 2.0, 3.0], np.float32)
    for kind, reference in (("FFT", np.fft.fft), (jax.lax.FftType.IFFT, np.fft.ifft), ("RFFT", np.fft.rfft)):
        for way in (lambda f: f, jax.jit):
            got = way(lambda x: jax.lax.fft(x, kind, (4,)))(x)
            assert got.dtype == np.complex64
            np.testing.assert_allclose(got, reference(x.astype(float)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(jax.lax.fft(x[:3], "IRFFT", (4,)), np.fft.irfft(x[:3].astype(float), 4), rtol=1e-5)
    """
    run(text)


def test_loops_show_the_parameters_of_jax(run):
    text = """
    import jax, jax.numpy as jnp
    names = set()
    def walk(jaxpr):
        for e in jaxpr.eqns:
            if e.primitive.name == "while":
                names.add(tuple(sorted(e.params)))
            for value in e.params.values():
                if hasattr(value, "jaxpr"):
                    walk(value.jaxpr)
    walk(jax.make_jaxpr(jnp.gcd)(jnp.array([12, 7]), jnp.array([18, 21])).jaxpr)
    assert names == {("body_jaxpr", "body_nconsts", "cond_jaxpr", "cond_nconsts")}, names
    """
    run(text)
