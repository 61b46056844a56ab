"""Random programs that read and write references in nested loops, branches and jitted functions, against NumPy."""

import random

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax

PLAIN = ("add", "mul", "read")
NESTED = (*PLAIN, "cond", "scan", "while", "jit", "jit with an argument", "local")
STARTS = [np.array([1.0, 2.0]), np.array([0.0, -1.0]), np.array([3.0, 0.5])]


def program(rng, depth):
    """Return a list of steps: kind, index of a Ref, small number, and two inner programs."""
    kinds = NESTED if depth else PLAIN
    inside = lambda: program(rng, depth - 1) if depth else []
    return [
        (rng.choice(kinds), rng.randrange(3), rng.randrange(1, 4), inside(), inside()) for _ in range(rng.randint(1, 3))
    ]


def run(steps, refs, total):
    """Run a program on Refs; return the total."""
    for kind, k, n, first, second in steps:
        ref = refs[k]
        if kind == "add":
            ref[n % 2] += 1.0 * n
        elif kind == "mul":
            ref[0] = ref[n % 2] * 0.5 + total * 0.25
        elif kind == "read":
            total = total + ref[...].sum() * (0.1 * n)
        elif kind == "cond":
            yes, no = (lambda t, s=s: run(s, refs, t) for s in (first, second))
            total = lax.cond(ref[0] > n + 0.123, yes, no, total)  # no value equals the threshold, where the slope jumps
        elif kind == "scan":
            total = lax.scan(lambda t, x, s=first: (run(s, refs, t + x), None), total, fnp.arange(float(n)))[0]
        elif kind == "while":
            body = lambda c, s=first: (c[0] + 1, run(s, refs, c[1]))
            total = lax.while_loop(lambda c, n=n: c[0] < n, body, (0, total))[1]
        elif kind == "jit":
            total = ft.jit(lambda t, s=first: run(s, refs, t))(total)
        elif kind == "jit with an argument":
            total = ft.jit(lambda r, t, s=first, k=k: run(s, [*refs[:k], r, *refs[k + 1 :]], t))(ref, total)
        else:
            total = run(first, [*refs[:k], ft.new_ref(ref[...] + total), *refs[k + 1 :]], total)
    return total


def in_numpy(steps, arrays, total):
    """Run the same program on NumPy arrays, which are written in place."""
    for kind, k, n, first, second in steps:
        array = arrays[k]
        if kind == "add":
            array[n % 2] += n
        elif kind == "mul":
            array[0] = array[n % 2] * 0.5 + total * 0.25
        elif kind == "read":
            total = total + array.sum() * (0.1 * n)
        elif kind == "cond":
            total = in_numpy(first if array[0] > n + 0.123 else second, arrays, total)
        elif kind == "scan":
            for x in range(n):
                total = in_numpy(first, arrays, total + x)
        elif kind == "while":
            for _ in range(n):
                total = in_numpy(first, arrays, total)
        elif kind.startswith("jit"):
            total = in_numpy(first, arrays, total)
        else:
            total = in_numpy(first, [*arrays[:k], array + total, *arrays[k + 1 :]], total)
    return total


def has(steps, kind):
    return any(step[0] == kind or has(step[3], kind) or has(step[4], kind) for step in steps)


def double(x):
    return fnp.asarray(x, "float64")


@pytest.mark.parametrize("seed", range(16))
def test_programs_compute_and_write_what_they_do_in_numpy(seed):
    steps = program(random.Random(seed), 2)
    arrays = [a.copy() for a in STARTS]
    want = in_numpy(steps, arrays, 1.0)
    more = [a + 1 for a in STARTS]
    other = in_numpy(steps, more, 2.0)
    how = seed % 4
    refs = [ft.new_ref(double(a)) for a in STARTS]
    if how == 0:
        got = run(steps, refs, double(1.0))
    elif how == 1:
        got = ft.jit(lambda t: run(steps, refs, t))(double(1.0))
    elif how == 2:
        got = ft.jit(lambda r, t: run(steps, r, t))(refs, double(1.0))
    else:
        refs = [ft.new_ref(double(np.stack([a, a + 1]))) for a in STARTS]
        got = ft.vmap(lambda r, t: run(steps, r, t))(refs, double([1.0, 2.0]))
        want, arrays = np.array([want, other]), [np.stack(pair) for pair in zip(arrays, more, strict=True)]
    np.testing.assert_allclose(got, want, rtol=1e-9)
    for ref, array in zip(refs, arrays, strict=True):
        np.testing.assert_allclose(ref[...], array, rtol=1e-9)


@pytest.mark.parametrize("seed", range(100, 112))
def test_derivatives_of_programs_are_those_of_differences(seed):
    steps = program(random.Random(seed), 2)
    arrays = lambda x: [a * x for a in STARTS]
    want = (in_numpy(steps, arrays(1 + 1e-6), 1 + 1e-6) - in_numpy(steps, arrays(1 - 1e-6), 1 - 1e-6)) / 2e-6

    def f(x):
        return run(steps, [ft.new_ref(double(a) * x) for a in STARTS], x)

    slope = ft.jacfwd if has(steps, "while") else ft.grad
    for g in (slope(f), ft.jit(slope(f)), slope(ft.jit(f))):
        np.testing.assert_allclose(g(double(1.0)), want, rtol=1e-5, atol=1e-6)
