"""Running folds and their derivatives agree with NumPy in float64, in each form and at each number of loops."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp

FOLDS = {
    "cumsum": np.add,
    "cumprod": np.multiply,
    "cummax": np.maximum,
    "cummin": np.minimum,
    "cumlogsumexp": np.logaddexp,
}
#: Shapes, axes: rows shorter and longer than one, two and three spans of 32; columns; blocks whose totals a loop folds.
SHAPES = [((33,), 0), ((3, 70), 1), ((2, 1025), 1), ((40, 9), 0), ((3, 65, 5), 1), ((1100, 16), 0), ((36000,), 0)]


def compiled(f, *args):
    f = ft.jit(f)
    f(*args)
    f.optimised()
    return f(*args)


def drawn(name, shape):
    x = np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)
    return 1 + x / np.float32(100) if name == "cumprod" else x


def check(name, reverse, shape, axis):
    x = drawn(name, shape)
    got = compiled(lambda x: getattr(ft.lax, name)(x, axis, reverse), x)
    turn = (lambda v: np.flip(v, axis)) if reverse else np.asarray
    want = turn(FOLDS[name].accumulate(turn(x.astype(np.float64)), axis))
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6 * np.abs(want).max())


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", FOLDS)
def test_values(name, reverse):
    for shape, axis in SHAPES[: 5 if name == "cumlogsumexp" else None]:
        check(name, reverse, shape, axis)


def test_sums_of_many_elements_are_exact():
    x = np.random.default_rng(0).integers(-9, 9, 300_000).astype(np.int32)
    np.testing.assert_array_equal(compiled(fnp.cumsum, x), np.cumsum(x))


@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 1e-6), ("bfloat16", 1e-2)])
def test_gradients_of_running_extremes_keep_their_digits(dtype, rtol):
    """A record that holds for long collects many derivatives."""
    x = np.zeros(300_000, np.float32)
    x[1000] = 1
    weights = fnp.asarray(np.random.default_rng(0).uniform(0.5, 1, x.size), dtype)
    got = compiled(ft.grad(lambda x: fnp.sum(weights.astype("float32") * ft.lax.cummax(x))), fnp.asarray(x, dtype))
    want = np.asarray(weights).astype(np.float64)[1000:].sum()
    np.testing.assert_allclose(float(got[1000]), want, rtol=rtol)


def products(x, dx):
    """Derivative of running products along dx, in float64: the sum over the element that is replaced."""
    x, dx = x.astype(np.float64), dx.astype(np.float64)
    before = np.concatenate([[1.0], np.cumprod(x)[:-1]])
    y = np.zeros_like(x)
    for k in range(len(x)):
        y[k] = (x[k] * y[k - 1] if k else 0) + before[k] * dx[k]
    return y


@pytest.mark.parametrize("zeros", [(), (0,), (40,), (39, 40), (7, 69, 70)])
@pytest.mark.parametrize("n", [20, 71, 1100, 5000])
def test_derivatives_of_products_with_zeros(n, zeros):
    x, dx = drawn("cumprod", (n,)), np.random.default_rng(1).normal(size=n).astype(np.float32)
    x[[k for k in zeros if k < n]] = 0
    want = products(x, dx)
    scale = 1e-5 * (1 + np.abs(want).max())
    got = compiled(lambda x, dx: ft.jvp(fnp.cumprod, (x,), (dx,))[1], x, dx)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=scale)
    # The gradient is the transpose of that: <ct, J dx> = <J^T ct, dx>, compared in each element.
    ct = np.random.default_rng(2).normal(size=n).astype(np.float32)
    found = np.asarray(compiled(lambda x, ct: ft.vjp(fnp.cumprod, x)[1](ct)[0], x, ct))
    tail, grad = 0.0, np.zeros(n)
    before = np.concatenate([[1.0], np.cumprod(x.astype(np.float64))[:-1]])
    for k in reversed(range(n)):
        tail = float(ct[k]) + (tail * float(x[k + 1]) if k + 1 < n else 0)
        grad[k] = before[k] * tail
    np.testing.assert_allclose(found, grad, rtol=1e-5, atol=1e-5 * (1 + np.abs(grad).max()))


@pytest.mark.parametrize("shape", [(5, 40), (3, 100)])
def test_products_of_rows_and_their_second_derivatives(shape):
    x = drawn("cumprod", shape)
    x[1, 3] = 0
    loss = lambda v: (fnp.cumprod(v) ** 2).sum()
    got = compiled(ft.vmap(ft.grad(loss)), x)
    for row, g in zip(x, np.asarray(got), strict=True):
        np.testing.assert_allclose(g, ft.grad(loss)(row), rtol=1e-4, atol=1e-4)
    row = x[1, :6].astype(np.float64)
    hessian = np.asarray(ft.hessian(loss)(row))
    step = 1e-5
    columns = [(ft.grad(loss)(row + step * e) - ft.grad(loss)(row - step * e)) / (2 * step) for e in np.eye(6)]
    np.testing.assert_allclose(hessian, np.stack(columns), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [20, 65, 100, 3000])
def test_derivatives_of_logarithms_of_sums(n, reverse):
    """Weights exp(x[i] - y[k]): elements far below and above the others, and -inf at the start."""
    x = np.random.default_rng(n).normal(size=n).astype(np.float32) * 3
    x[[0, 3, -2]] = -np.inf, -300, 200
    ct = np.random.default_rng(2).uniform(0.5, 1, size=n).astype(np.float32)
    run = lambda v: ft.lax.cumlogsumexp(v, 0, reverse)
    got = np.asarray(compiled(lambda x, ct: ft.vjp(run, x)[1](ct)[0], x, ct))
    turn = (lambda v: v[::-1]) if reverse else (lambda v: v)
    wide, cts = turn(x.astype(np.float64)), turn(ct.astype(np.float64))
    y = np.logaddexp.accumulate(wide)
    with np.errstate(invalid="ignore"):
        tail, want = 0.0, np.zeros(n)
        for k in reversed(range(n)):
            if np.isfinite(y[k]):
                tail = cts[k] + (tail * np.exp(y[k] - y[k + 1]) if k + 1 < n else 0)
                want[k] = np.exp(wide[k] - y[k]) * tail
    np.testing.assert_allclose(got, turn(want), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("n", "m"), [(4096, 64), (4096, 16), (700, 33), (65536, 9)])
@pytest.mark.parametrize("mode", ["full", "same"])
def test_derivatives_of_convolutions_of_one_feature(n, m, mode):
    r = np.random.default_rng(0)
    x, w = r.normal(size=n).astype(np.float32), r.normal(size=m).astype(np.float32)
    y = np.convolve(x.astype(np.float64), w.astype(np.float64), mode)
    ct = r.normal(size=len(y)).astype(np.float32)
    whole = np.zeros(n + m - 1)
    start = (n + m - 1 - len(y)) // 2
    whole[start : start + len(y)] = ct
    want_x = np.correlate(whole, w.astype(np.float64), "valid")
    want_w = np.correlate(whole, x.astype(np.float64), "valid")
    f = lambda x, w: fnp.convolve(x, w, mode)
    got_x, got_w = compiled(lambda x, w, ct: ft.vjp(f, x, w)[1](ct), x, w, ct)
    np.testing.assert_allclose(compiled(f, x, w), y, rtol=1e-4, atol=2e-5 * np.sqrt(m))
    np.testing.assert_allclose(got_x, want_x, rtol=1e-4, atol=2e-5 * np.sqrt(m))
    np.testing.assert_allclose(got_w, want_w, rtol=1e-4, atol=2e-5 * np.sqrt(n))
