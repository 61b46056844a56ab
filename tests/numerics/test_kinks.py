"""First and second derivatives at kinks are numbers, although a rule could divide zero by zero."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp

FUNCTIONS = {
    "size": lambda x: fnp.abs(x + 1j * x),
    "sign": lambda x: fnp.real(fnp.sign(x + 1j * x)),
    "norm": lambda x: fnp.linalg.norm(fnp.stack([x, 2 * x])),
    **{
        f"norm of order {order}": lambda x, order=order: fnp.linalg.norm(fnp.stack([x, 2 * x]), order)
        for order in (1, 2.5, 3, 4, np.inf)
    },
    "vector norm": lambda x: fnp.linalg.vector_norm(fnp.stack([[x, 2 * x], [x, x]]), ord=3),
    "complex norm": lambda x: fnp.linalg.norm(fnp.stack([x + 1j * x, 2 * x + 0j])),
}


@pytest.mark.parametrize("fun", FUNCTIONS.values(), ids=FUNCTIONS)
def test_at_zero(fun):
    for derived in (ft.grad(fun), ft.grad(ft.grad(fun)), ft.jacfwd(ft.grad(fun)), ft.jit(ft.grad(ft.jacfwd(fun)))):
        assert np.asarray(derived(0.0)) == 0


def test_the_sign_turns_away_from_zero():
    """The sign of z(t) = 1 + it has the angle atan(t), so its derivatives are known in closed form."""
    turned = lambda t: fnp.imag(fnp.sign(1 + 1j * t))
    t = 0.75
    np.testing.assert_allclose(ft.grad(turned)(t), (1 + t**2) ** -1.5, rtol=1e-6)
    np.testing.assert_allclose(ft.grad(ft.grad(turned))(t), -3 * t * (1 + t**2) ** -2.5, rtol=1e-6)
