"""Quotients that overflow only because XLA rewrites them as a product."""

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
