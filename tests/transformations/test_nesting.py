"""Transformations of transformations, where caches and traces meet; against closed forms."""

import itertools

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp

X = np.linspace(-1.0, 1.2, 4)


def close(got, want, rtol=1e-9):
    np.testing.assert_allclose(np.asarray(got), want, rtol=rtol, atol=1e-11)


def fun(x):
    return fnp.sin(x) * fnp.exp(0.5 * x)


def first(x):
    return np.exp(0.5 * x) * (np.cos(x) + 0.5 * np.sin(x))


def second(x):
    return np.exp(0.5 * x) * (np.cos(x) - 0.75 * np.sin(x))


@pytest.mark.parametrize("jits", list(itertools.product([False, True], repeat=4)), ids=str)
def test_grad_of_vmap_of_grad_with_jit_anywhere(jits):
    wraps = [ft.jit if j else (lambda f: f) for j in jits]
    inner = wraps[0](ft.grad(wraps[1](fun)))
    mapped = wraps[2](lambda x: ft.vmap(inner)(x).sum())
    close(wraps[3](ft.grad(mapped))(X), second(X))


@pytest.mark.parametrize("jits", list(itertools.product([False, True], repeat=3)), ids=str)
def test_vmap_of_jvp_with_jit_anywhere(jits):
    wraps = [ft.jit if j else (lambda f: f) for j in jits]
    tangent = wraps[0](lambda x, t: ft.jvp(wraps[1](fun), (x,), (t,))[1])
    close(wraps[2](ft.vmap(tangent, in_axes=(0, None)))(X, np.float64(2.0)), 2 * first(X))


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["plain", "jit"])
def test_hessians_forward_over_reverse_and_the_other_way(wrap):
    a = np.array([[2.0, -1.0, 0.3, 0.1]] * 4) + np.diag(X)
    loss = wrap(lambda x: fnp.sum(fnp.sin(a @ x)))
    want = -(a.T * np.sin(a @ X)) @ a
    eye = np.eye(4)
    over = ft.vmap(lambda t: ft.jvp(ft.grad(loss), (X,), (t,))[1])(eye)
    under = ft.vmap(lambda t: ft.grad(lambda x: ft.jvp(loss, (x,), (t,))[1])(X))(eye)
    rows = ft.vmap(ft.vjp(ft.grad(loss), X)[1])(eye)[0]
    for got in (over, under, rows):
        close(got, want)


def test_a_jitted_function_used_at_every_level():
    f = ft.jit(fun)
    total = lambda x: f(x) + ft.grad(f)(x) + ft.grad(ft.grad(f))(x)
    close(ft.vmap(total)(X), fun_np(X) + first(X) + second(X))
    close(ft.jit(ft.vmap(ft.jit(total)))(X), fun_np(X) + first(X) + second(X))


def fun_np(x):
    return np.sin(x) * np.exp(0.5 * x)


def test_one_jitted_function_under_many_shapes_and_transformations():
    f = ft.jit(lambda x, w: fnp.sum(fnp.sin(x) * w))
    for n in (1, 2, 5):
        x, w = np.linspace(0, 1, n), np.linspace(1, 2, n)
        for _ in range(2):
            close(f(x, w), np.sum(np.sin(x) * w))
            close(ft.grad(f)(x, w), np.cos(x) * w)
            close(ft.grad(f, argnums=1)(x, w), np.sin(x))
            close(ft.jvp(lambda x, w=w: f(x, w), (x,), (w,))[1], np.sum(np.cos(x) * w * w))
            close(ft.jvp(lambda w, x=x: f(x, w), (w,), (x,))[1], np.sum(np.sin(x) * x))
            close(ft.jvp(f, (x, w), (w, x))[1], np.sum(np.cos(x) * w * w + np.sin(x) * x))
            close(ft.vmap(f, (0, None))(np.stack([x, x + 1]), w), [np.sum(np.sin(y) * w) for y in (x, x + 1)])
            close(ft.vmap(f, (None, 0))(x, np.stack([w, w + 1])), [np.sum(np.sin(x) * v) for v in (w, w + 1)])


def test_higher_derivatives_of_jitted_control():
    def step(x, n):
        return x if n == 0 else step(fnp.sin(x), n - 1)

    f = ft.jit(step, static_argnums=1)
    eps = 1e-5
    plain = lambda x: np.sin(np.sin(np.sin(x)))
    slope = lambda x: np.cos(np.sin(np.sin(x))) * np.cos(np.sin(x)) * np.cos(x)
    close(f(X, 3), plain(X))
    close(ft.vmap(ft.grad(lambda x: f(x, 3)))(X), slope(X))
    close(ft.vmap(ft.grad(ft.grad(lambda x: f(x, 3))))(X), (slope(X + eps) - slope(X - eps)) / (2 * eps), rtol=1e-6)


def test_results_that_need_no_derivative_pass_a_jit_inside_grad():
    f = ft.jit(lambda x, n: (x * n, n + 1, fnp.argmax(x)))
    loss = lambda x: f(x, 3)[0].sum() + f(x, 3)[1] * x[0] + x[f(x, 2)[2]]
    want = np.full(4, 3.0)
    want[0] += 4
    want[3] += 1
    close(ft.grad(loss)(X), want)


def test_a_jit_with_an_unused_and_an_untouched_argument_inside_grad():
    f = ft.jit(lambda x, unused, same: (x**2, same))
    close(ft.grad(lambda x: (lambda a, b: fnp.sum(a * b))(*f(x, x * 7, x)))(X), 3 * X**2)
    close(ft.jvp(lambda x: f(x, 1.0, x), (X,), (X,))[1][1], X)


def test_a_jit_that_returns_the_same_value_twice():
    f = ft.jit(lambda x: (lambda y: (y, y, x, x))(fnp.sin(x)))
    close(ft.grad(lambda x: sum(fnp.sum(o * k) for k, o in enumerate(f(x), 1)))(X), 3 * np.cos(X) + 7)
    close(ft.vmap(f)(X)[1], np.sin(X))


def test_a_jit_that_returns_a_constant():
    table = np.arange(40.0)
    f = ft.jit(lambda x: (x * 2, fnp.asarray(table)[:4], 1.5))
    close(ft.grad(lambda x: sum(fnp.sum(o) for o in f(x)))(X), np.full(4, 2.0))
    close(ft.vmap(f)(X)[1], np.tile(table[:4], (4, 1)))


def test_many_threads_of_different_depth():
    import threading

    found = []

    def work(depth):
        derived = fun
        for _ in range(depth):
            derived = ft.grad(derived)
        want = [fun_np, first, second][depth]
        found.extend(np.allclose(ft.vmap(ft.jit(derived))(X), want(X)) for _ in range(3))

    threads = [threading.Thread(target=work, args=(d,)) for d in (0, 1, 2, 0, 1, 2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 18 and all(found)


def test_a_callable_s_name_and_annotations_may_be_any_object():

    class Doubling:
        __name__ = 3

        def __call__(self, x):
            return 2.0 * x

    f, x = Doubling(), np.ones(3, np.float32)
    f.__annotations__ = 3
    assert ft.vmap(f)(x).tolist() == ft.jit(f)(x).tolist() == ft.checkpoint(f)(x).tolist() == [2, 2, 2]
    assert ft.numpy.vectorize(f)(x).tolist() == [2, 2, 2]
    assert ft.checkify.checkify(f)(x)[1].tolist() == ft.lax.map(f, x).tolist() == [2, 2, 2]
    assert ft.amp.autocast(f)(x).tolist() == ft.custom_batching.sequential_vmap(f)(x).tolist() == [2, 2, 2]
    assert ft.grad(f)(1.0) == ft.value_and_grad(f)(1.0)[1] == 2
    assert ft.jacfwd(f)(x).shape == ft.hessian(f)(x).shape[:2] == (3, 3)
