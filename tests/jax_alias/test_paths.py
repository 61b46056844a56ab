"""Functions with `control_flow="paths"` under JAX's names, where NumPy's arrays of 64 bits count as 32-bit ones."""

import pytest

PROGRAMS = {
    "branch": ("lambda x: x if x > 0 else -x", "(1.0,), (-1.0,), (3.0,)"),
    "size": ("lambda n: jnp.zeros(int(n)).sum() + n", "(3,), (4,)"),
    "mask": ("lambda x: x[x > 1]", "(np.arange(4, dtype='float32'),)"),
    "loop": ("root", "(2.0,), (100.0,)"),
    "count": ("steps", "(8.0,), (100.0,), (3.0,), (1000.0,)"),
    "range": ("total", "(3,), (5,), (100,)"),
    "branches in a loop": ("turns", "(1.0,), (2.0,), (5.0,)"),
}
TEXT = """
import jax, jax.numpy as jnp, numpy as np

def root(a):
    x = a
    while jnp.abs(x * x - a) > 1e-3:
        x = 0.5 * (x + a / x)
    return x

def steps(x):
    n = 0
    while x > 1:
        x = x / 2
        n += 1
    return x, jnp.asarray(n)

def total(n):
    s = jnp.int32(0)
    for i in range(n):
        s = s + i
    return s

def turns(x):
    for _ in range(4):
        x = x - 1 if x > 3 else x * 2
    return x

f = {fun}
followed = jax.jit(f, control_flow="paths")
for args in [{args}] * 2:
    want = f(*map(jnp.asarray, args))
    jax.tree.map(np.testing.assert_allclose, followed(*args), want)
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_paths_are_followed(run, name):
    fun, args = PROGRAMS[name]
    run(TEXT.format(fun=fun, args=args))


def test_paths_are_differentiated_and_mapped(run):
    run("""
    import jax, jax.numpy as jnp, numpy as np
    f = jax.jit(lambda x: jnp.sum(x**3) if jnp.sum(x) > 0 else jnp.sum(x**2), control_flow="paths")
    x = jnp.array([[1., 2.], [-1., -2.]])
    np.testing.assert_allclose(jax.grad(f)(x[0]), 3 * x[0] ** 2, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(f)(x[1]), 2 * x[1], rtol=1e-6)
    for mapped in (jax.vmap(f)(x), jax.lax.map(f, x)):
        np.testing.assert_allclose(mapped, [9.0, 5.0], rtol=1e-6)
    """)


def test_tracebacks_begin_with_the_program(run):
    text = run("def f(x):\n    return 1 / 0\nimport jax\njax.jit(f)(1.0)", fails=True)
    assert "ZeroDivisionError" in text and "runpy" not in text and "as_jax" not in text and 'File "<string>"' in text
