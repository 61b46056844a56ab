"""Derivatives that neither overflow nor vanish, as some of their factors do."""

import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp


def test_slopes_of_quotients_of_float16():
    """The derivative of x / y by y is -(x / y) / y. XLA rewrites this with y * y, which is infinite in float16 here."""
    x, y = np.float16(600), np.float16(400)
    slope = ft.jit(ft.grad(lambda x, y: fnp.sum(x / y), argnums=1))(fnp.asarray([x]), fnp.asarray([y]))
    np.testing.assert_allclose(slope, [-float(x) / float(y) ** 2], rtol=2e-3)
    both = ft.jit(lambda x, y: x / y / y)(fnp.asarray([x]), fnp.asarray([y]))
    np.testing.assert_allclose(both, [float(x) / float(y) ** 2], rtol=2e-3)


def test_small_tangents_of_roots_of_float16():
    """Half of the smallest subnormal number is 0, and its product with the slope of the root is not."""
    x, least = (fnp.asarray(v, "float16") for v in (1e-4, np.finfo(np.float16).smallest_subnormal))
    expected = float(least) * 0.5 / float(x) ** 0.5
    for jit in (lambda f: f, ft.jit):
        _, tangent = jit(lambda x, t: ft.jvp(fnp.sqrt, (x,), (t,)))(x, least)
        np.testing.assert_allclose(float(tangent), expected, rtol=0.02)
        _, pull = ft.vjp(jit(fnp.sqrt), x)
        np.testing.assert_allclose(float(pull(least)[0]), expected, rtol=0.02)
