"""Sixteen threads that transform and call at once, with different settings in each."""

import faulthandler
import sys
import threading

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.core import EVALUATE, state

THREADS = 16
X = np.linspace(0.1, 0.9, 3)
ROUNDED = {"default_matmul_precision": "BF16_BF16_F32"}  # rounds on every processor, with or without bfloat16 units
ONES = np.full((8, 8), 1 + 2**-12, np.float32)  # becomes 1 in bfloat16, which has eight bits


@pytest.fixture(autouse=True)
def often():
    """Switch threads as often as Python can, and print their stacks if they hang."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    faulthandler.dump_traceback_later(240, exit=False)
    yield
    faulthandler.cancel_dump_traceback_later()
    sys.setswitchinterval(before)


def at_once(work, count=THREADS):
    """Run `work(k)` in threads that start together, and raise the first error of them."""
    gate, errors = threading.Barrier(count), []

    def run(k):
        try:
            gate.wait(60)
            work(k)
            assert state.trace is EVALUATE and state.axes == () and state.source is None
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=run, args=(k,), daemon=True) for k in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(180)
    assert not any(t.is_alive() for t in threads), "deadlock"
    if errors:
        raise errors[0]


def close(got, want):
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-9, atol=1e-10)


def test_transformations_of_functions_of_their_own():
    def work(k):
        c, x = k + 1.0, X + k
        for _ in range(4):
            f = lambda x: fnp.sum(fnp.sin(c * x) ** 2)
            slope, bend = c * np.sin(2 * c * x), np.diag(2 * c * c * np.cos(2 * c * x))
            close(ft.grad(f)(x), slope)
            close(ft.jit(ft.grad(f))(x), slope)
            close(ft.vmap(ft.grad(f), chunk_size=1)(x[None])[0], slope)
            close(ft.jacrev(f)(x), slope)
            close(ft.hessian(f)(x), bend)
            close(ft.hvp(f, (x,), (x,)), bend @ x)
            close(ft.jet(f, (x,), ([x, None],))[1], [slope @ x, x @ bend @ x])
            close(ft.vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")(x), x - x.mean())

    at_once(work)


def test_one_function_and_its_memos_shared_by_all():
    """The first thread makes a derived form; a second thread that needs it meanwhile gets the same one."""
    inner = ft.jit(lambda x: fnp.tanh(x) * x)
    f = ft.jit(lambda x: fnp.sum(inner(x) + inner(2 * x)))
    t = lambda x: np.tanh(x) + x / np.cosh(x) ** 2

    def work(k):
        x = X * (k + 1)
        want = t(x) + 2 * t(2 * x)
        for _ in range(3):
            close(ft.grad(f)(x), want)
            close(ft.vmap(ft.grad(f))(np.stack([x, 2 * x]))[0], want)
            close(ft.jit(ft.grad(f))(x), want)
            close(ft.jacfwd(f)(x), want)
            close(ft.linearize(f, x)[1](x), want @ x)

    at_once(work)


def test_settings_of_one_thread_are_not_seen_by_others():
    product = ft.jit(lambda a, b: a @ b)
    slope = ft.jit(ft.grad(lambda a, b: (a @ b).sum()))
    branches = ft.jit(lambda x: x * 2 if x > 0 else x)
    exact, rounded = 8 * np.float64(ONES[0, 0]) ** 2, 8.0

    def check(want, row):
        np.testing.assert_allclose(np.asarray(product(ONES, ONES)), want, rtol=1e-6)
        np.testing.assert_allclose(np.asarray(slope(ONES, ONES)), row, rtol=1e-6)
        np.testing.assert_allclose(np.asarray(ft.vmap(product)(ONES[None], ONES[None]))[0], want, rtol=1e-6)
        np.testing.assert_allclose(np.asarray(ft.jit(lambda a: a @ a + 0)(ONES)), want, rtol=1e-6)

    def work(k):
        for _ in range(4):
            if k % 4 == 0:
                with ft.backends.flags(ROUNDED):
                    check(rounded, rounded)
            elif k % 4 == 1:
                with ft.disable_jit():
                    assert float(branches(1.0)) == 2  # a Python branch on a value
                    check(exact, exact**0.5 * 8**0.5)
            elif k % 4 == 2:
                with pytest.raises(ft.errors.ConcretizationError):
                    branches(1.0)
            else:
                check(exact, exact**0.5 * 8**0.5)

    at_once(work)


def test_errors_in_some_threads_leave_others_alone():
    def wrong(x):
        return fnp.sum(x) + fnp.zeros(2, x.dtype) + fnp.zeros(3, x.dtype)

    def work(k):
        for _ in range(5):
            if k % 2:
                for transform in (ft.grad, ft.jit, ft.vmap, ft.jacrev, lambda f: ft.vmap(f, axis_name="i")):
                    with pytest.raises(ft.errors.ShapeError):
                        transform(wrong)(X)
            else:
                close(ft.jit(ft.grad(lambda x: fnp.sum(x**2) * k))(X), 2 * X * k)

    at_once(work)


def test_randomness_is_each_threads_own():
    key = ft.random.key(0)
    f = ft.jit(lambda x: x + ft.random.normal(key, ()))
    same = [float(ft.random.normal(key, ()))] * 3
    each = [float(ft.random.normal(ft.random.fold_in(key, i), ())) for i in range(3)]

    def work(k):
        for _ in range(4):
            mode = ("same", "different", "error")[k % 3]
            mapped = ft.vmap(f, randomness=mode)
            if mode == "error":
                with pytest.raises(ft.errors.ArgumentError):
                    mapped(np.zeros(3, np.float32))
            else:
                want = same if mode == "same" else each
                np.testing.assert_allclose(np.asarray(mapped(np.zeros(3, np.float32))), want, rtol=1e-6)

    at_once(work)


def test_a_lazy_name_is_one_object():
    before, found = fnp.__dict__.pop("convolve", None), []
    try:
        at_once(lambda k: found.append(fnp.convolve))
        assert len(found) == THREADS and len({id(f) for f in found}) == 1
    finally:
        if before is not None:
            fnp.__dict__["convolve"] = before
