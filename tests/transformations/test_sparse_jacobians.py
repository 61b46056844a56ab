"""sparse_jacobian: the entries of the dense Jacobian, from as few directions as the pattern allows."""

import numpy as np
import pytest
from support.messages import refusal, says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors
from functorch_like.transforms.sparse_jacobian import color

N = 12
X = np.linspace(-1, 1.5, N)
BAND = np.abs(np.subtract.outer(np.arange(N), np.arange(N))) <= 1


def heat(x):
    y = fnp.pad(x, (1, 1))
    return (y[:-2] - 2 * x + y[2:]) * fnp.exp(x)


def dense(x):
    y = np.pad(x, 1)
    return np.diag(np.exp(x) * (y[:-2] - 2 * x + y[2:] - 2)) + np.exp(x)[:, None] * (BAND & ~np.eye(N, dtype=bool))


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("mode", ["fwd", "rev", None])
def test_a_band_takes_three_directions(mode, wrap):
    got = wrap(ft.sparse_jacobian(heat, BAND, mode))(X)
    np.testing.assert_allclose(got, dense(X)[BAND], rtol=1e-10)
    got = ft.sparse_jacobian(wrap(heat), BAND, mode, chunk_size=2)(X)
    np.testing.assert_allclose(got, dense(X)[BAND], rtol=1e-10)
    assert color(*np.nonzero(BAND))[1] == 3


@pytest.mark.parametrize("seed", range(4))
def test_random_patterns(seed):
    rng = np.random.default_rng(seed)
    m = rng.normal(size=(7, 10)) * (rng.random((7, 10)) < 0.2)
    f = lambda x, s: (fnp.tanh(m @ x.reshape(-1)) * s).reshape(7, 1)
    x = rng.normal(size=(5, 2))
    want = ((1 - np.tanh(m @ x.ravel()) ** 2)[:, None] * m * 2)[m != 0]
    for mode in ("fwd", "rev"):
        np.testing.assert_allclose(ft.sparse_jacobian(f, m != 0, mode)(x, 2.0), want, rtol=1e-10)
    colors, count = color(*np.nonzero(m))
    for c in range(count):
        assert (np.count_nonzero(m[:, : len(colors)][:, colors == c], axis=1) <= 1).all()


def test_the_way_with_fewer_groups_is_taken():
    """A full row makes every column a group of its own, but two groups of rows are enough."""
    arrow = np.eye(N, dtype=bool)
    arrow[0] = True
    f = lambda x: fnp.concatenate([fnp.sum(x**2)[None], x[1:] ** 2])
    jaxpr = ft.make_jaxpr(ft.sparse_jacobian(f, arrow))(X)
    assert f"f64[2,{N}]" in str(jaxpr) and f"f64[{N},{N}]" not in str(jaxpr)
    want = np.diag(2 * X)
    want[0] = 2 * X
    np.testing.assert_allclose(ft.sparse_jacobian(f, arrow)(X), want[arrow])


def test_a_sparse_hessian():
    f = lambda x: fnp.sum(x[1:] ** 2 * x[:-1])
    np.testing.assert_allclose(ft.sparse_jacobian(ft.grad(f), BAND)(X), np.asarray(ft.hessian(f)(X))[BAND], rtol=1e-10)


def test_no_entries():
    assert ft.sparse_jacobian(lambda x: 0 * x[:2], np.zeros((2, N), bool))(X).shape == (0,)


def test_patterns_that_do_not_fit():
    message = refusal(lambda: ft.sparse_jacobian(heat, BAND[1:])(X), errors.ShapeError)
    says(message.head, f"({N - 1}, {N})", f"f64[{N}]")
    says(message.remedy, f"({N}, {N})")
    message = refusal(lambda: ft.sparse_jacobian(heat, dense(X)), errors.ArgumentError)
    says(message.remedy, "!= 0")
    message = refusal(lambda: ft.sparse_jacobian(heat, BAND, "both"), errors.ArgumentError)
    says(message.head, "'both'")
    message = refusal(lambda: ft.sparse_jacobian(lambda x: x.astype("int32"), BAND)(X), errors.DifferentiationError)
    says(message.head, "i32")
