"""fnp.vectorize against NumPy's."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp

A = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 2, 3)
B = np.linspace(0, 2, 6, dtype=np.float32).reshape(2, 3)


def close(got, want):
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6, atol=1e-6)


def test_scalars_broadcast():
    step = lambda x, y: fnp.where(x > y, x - y, x + y)
    want = np.where(A > B, A - B, A + B)
    close(fnp.vectorize(step)(A, B), want)
    close(ft.jit(fnp.vectorize(step))(A, B), want)
    close(fnp.vectorize(step)(A[:, :1], B[0]), np.where(A[:, :1] > B[0], A[:, :1] - B[0], A[:, :1] + B[0]))
    close(fnp.vectorize(step)(2.0, 1.0), 1.0)
    assert fnp.vectorize(step)(np.zeros((0, 1), np.float32), B[0]).shape == (0, 3)


def test_arguments_by_name_and_excluded_ones():
    scale = lambda x, power, by=1.0: by * x**power
    close(fnp.vectorize(scale, excluded={1})(A, 2), A**2)
    close(fnp.vectorize(scale, excluded={1, "by"})(A, 2, by=3.0), 3 * A**2)
    close(fnp.vectorize(scale, excluded={"power"})(A, power=2, by=B), B * A**2)


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit])
def test_signatures(wrap):
    product = wrap(fnp.vectorize(lambda a, x: a @ x, signature="(n,m),(m)->(n)"))
    close(product(A, B[0]), A @ B[0])
    close(product(A[:, None], B), np.einsum("anm,bm->abn", A, B))
    both = wrap(fnp.vectorize(lambda x: (x.sum(), x[::-1]), signature="(n) -> (), (n)"))
    close(both(A)[0], A.sum(-1))
    close(both(A)[1], A[..., ::-1])


def test_derivatives():
    loss = lambda a, x: fnp.sum(fnp.vectorize(fnp.dot, signature="(n),(n)->()")(a, x) ** 2)
    close(ft.grad(loss, 1)(A, B[0]), 2 * np.einsum("abn,abm,m->n", A, A, B[0]))


def test_messages():
    pair = fnp.vectorize(fnp.dot, signature="(n),(n)->()")
    with pytest.raises(ft.errors.ShapeError, match=r"dimension n of fnp.vectorize\(dot\) is 3, and 2 in argument 1"):
        pair(B, B[:, :2])
    with pytest.raises(ft.errors.ShapeError, match=r"has shape \(\), and an element of it has 1 dimensions \(n\)"):
        pair(1.0, B)
    with pytest.raises(ft.errors.ShapeError, match=r"do not broadcast: shapes \(2, 3\), \(4, 3\)"):
        pair(B, A[:, 0])
    with pytest.raises(ft.errors.ArgumentError, match="has 2 arguments, got 1"):
        pair(B)
    with pytest.raises(ft.errors.ArgumentError, match="has 1 argument, got 2"):
        fnp.vectorize(fnp.sum, signature="(n)->()")(B, B)
    with pytest.raises(ft.errors.ArgumentError, match="is not a signature"):
        fnp.vectorize(fnp.dot, signature="n,n->")
    with pytest.raises(ft.errors.ShapeError, match=r"result 0 of <lambda> has shape \(2,\), and should have"):
        fnp.vectorize(lambda x: fnp.stack([x, x]))(B)
    with pytest.raises(ft.errors.ArgumentError, match="takes a function, got 3"):
        fnp.vectorize(3)
