"""Complex derivatives, in JAX's conventions: against differences along the real and the imaginary axis.

A tangent of f: C -> C at z is the real-linear map dz -> f_x Re dz + f_y Im dz. A cotangent w pairs with it as
Re(w dz), without conjugation. So grad of a real f is f_x - i f_y, and grad of a holomorphic f is f'.
"""

import numpy as np
import pytest
from support.messages import refusal, says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, testing

Z, DZ, W = 0.6 + 0.3j, -0.4 + 0.9j, 0.7 - 1.1j
X, DX = 0.6, -0.8
wrapped = pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["plain", "jit"])

C_TO_C = {
    "sine": (lambda z: fnp.sin(z) * z, True),
    "quotient": (lambda z: fnp.exp(z) / (z + 2), True),
    "power": (lambda z: z**3 + z ** (1.5 + 0.5j), True),
    "root": (lambda z: fnp.sqrt(z) + fnp.log(z), True),
    "conjugate": (lambda z: fnp.conj(z) * z * z, False),
    "modulus": (lambda z: z * abs(z), False),
    "parts": (lambda z: fnp.real(z) * z + 1j * fnp.imag(z) ** 2, False),
    "direction": (lambda z: z / abs(z), False),
}
C_TO_R = {
    "modulus": lambda z: abs(z),
    "square": lambda z: fnp.real(z * fnp.conj(z)) ** 2,
    "parts": lambda z: fnp.sin(fnp.real(z)) * fnp.imag(z),
    "angle": lambda z: fnp.angle(z),
}
R_TO_C = {
    "spiral": lambda x: x * fnp.exp(2j * x),
    "parts": lambda x: fnp.sin(x) + 1j * x**2,
    "root": lambda x: fnp.sqrt(x - 1 + 0j),
}


def partial(f, z, along, h=1e-4):
    """The derivative along a direction, by central differences of fourth order."""
    kind = np.complex128 if np.iscomplexobj(z) else np.float64
    at = lambda k: np.asarray(f(ft.device_put(kind(z + k * h * along))))
    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h)


def close(got, want, rtol=1e-8):
    np.testing.assert_allclose(np.asarray(got), want, rtol=rtol, atol=1e-10)


def arrays(*xs):
    return [fnp.asarray(np.asarray(x)) for x in xs]


@wrapped
@pytest.mark.parametrize("name", C_TO_C)
def test_complex_to_complex(name, wrap):
    f, holomorphic = C_TO_C[name]
    z, dz, w = arrays(Z, DZ, W)
    fx, fy = partial(f, Z, 1), partial(f, Z, 1j)
    pushed = fx * DZ.real + fy * DZ.imag
    pulled = (W * fx).real - 1j * (W * fy).real
    close(wrap(lambda z, t: ft.jvp(f, (z,), (t,))[1])(z, dz), pushed)
    close(ft.linearize(wrap(f), z)[1](dz), pushed)
    close(wrap(lambda z, w: ft.vjp(f, z)[1](w)[0])(z, w), pulled)
    close(ft.linear_transpose(ft.linearize(wrap(f), z)[1], z)(w)[0], pulled)
    if holomorphic:
        close(fy, 1j * fx)
        close(wrap(ft.grad(f, holomorphic=True))(z), fx)
        value, slope = ft.value_and_grad(f, holomorphic=True)(z)
        close(value, np.asarray(f(z)))
        close(slope, fx)
        for jacobian in (ft.jacfwd, ft.jacrev):
            close(wrap(jacobian(f, holomorphic=True))(z), fx)
        _, terms = ft.jet(f, (z,), ([dz],))
        close(terms[0], fx * DZ)
    else:
        assert abs(fy - 1j * fx) > 1e-3


@wrapped
@pytest.mark.parametrize("name", C_TO_R)
def test_complex_to_real(name, wrap):
    f = C_TO_R[name]
    z, dz = arrays(Z, DZ)
    fx, fy = partial(f, Z, 1), partial(f, Z, 1j)
    close(wrap(lambda z, t: ft.jvp(f, (z,), (t,))[1])(z, dz), fx * DZ.real + fy * DZ.imag)
    slope = wrap(ft.grad(f))(z)
    close(slope, fx - 1j * fy)
    assert slope.dtype == np.complex128
    close(wrap(ft.jacrev(f))(z), fx - 1j * fy)
    assert f(z - 1e-3 * np.conj(slope)) < f(z), "the way down is the conjugate of the gradient"
    second = ft.jvp(ft.grad(f), (z,), (dz,))[1]
    along = lambda g: partial(g, Z, 1) * DZ.real + partial(g, Z, 1j) * DZ.imag
    close(second, along(lambda z: ft.grad(f)(fnp.asarray(z))), rtol=1e-7)


@wrapped
@pytest.mark.parametrize("name", R_TO_C)
def test_real_to_complex(name, wrap):
    f = R_TO_C[name]
    x, dx, w = arrays(X, DX, W)
    slope = partial(f, X, 1.0)
    close(wrap(lambda x, t: ft.jvp(f, (x,), (t,))[1])(x, dx), slope * DX)
    back = wrap(lambda x, w: ft.vjp(f, x)[1](w)[0])(x, w)
    close(back, (W * slope).real)
    assert back.dtype == np.float64
    close(wrap(ft.jacfwd(f))(x), slope)


def test_vectors_of_all_kinds_at_once():
    rng = np.random.default_rng(0)
    m = rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3))
    f = lambda p: {"c": m @ p["z"] * p["x"], "r": fnp.sum(abs(p["z"]) ** 2) * p["x"]}
    point = {"z": rng.normal(size=3) + 1j * rng.normal(size=3), "x": rng.normal(size=3)}
    testing.check_grads(f, (point,), order=2)


def test_the_gradient_of_a_quadratic_form_is_its_matrix():
    """f(z) = z^H A z with A Hermitian: the gradient is the conjugate of 2 A z."""
    a = np.array([[2.0, 1 - 1j], [1 + 1j, 3.0]])
    z = np.array([0.3 + 1j, -0.7 + 0.2j])
    f = lambda z: fnp.real(fnp.vdot(z, a @ z))
    close(ft.grad(f)(z), np.conj(2 * a @ z))


def test_what_is_refused():
    message = refusal(lambda: ft.grad(lambda z: z * z)(Z), errors.DifferentiationError)
    says(message.head, "real float")
    says(message.remedy, "holomorphic=True")
    message = refusal(lambda: ft.grad(lambda z: z * z, holomorphic=True)(X), errors.DifferentiationError)
    says(message.head, "complex arguments")
    message = refusal(lambda: ft.grad(abs, holomorphic=True)(Z), errors.DifferentiationError)
    says(message.head, "complex results")
    message = refusal(lambda: ft.jvp(lambda x: x, (fnp.asarray(X),), (fnp.asarray(DZ),)), errors.DifferentiationError)
    says(message.head, "c64[]")
    pull = ft.vjp(lambda x: x, fnp.asarray(X))[1]
    message = refusal(lambda: pull(1j), errors.DifferentiationError)
    says(message.head, "c64[]")
